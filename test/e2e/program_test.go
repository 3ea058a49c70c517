//go:build e2e

package e2e

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver/seed"
)

const webhookSecret = "a secret of the end-to-end tests"

// scopes are those that the documentation asks for. The SDK only knows names of
// older versions.
var scopes = []sdk.AccessTokenScope{"write:repository", "write:issue", "read:organization", "read:user"}

// bot is signalbox as an operator runs it: a process with a configuration file
// and secrets in its environment.
type bot struct {
	t      *testing.T
	repo   *seed.Repository
	dir    string
	addr   string
	env    []string
	config string
	// hooked says that Gitea tells this bot what happens.
	hooked bool

	cmd  *exec.Cmd
	done chan error
}

// settings are what tests vary. The zero value suits most.
type settings struct {
	// gitea and kubeconfig are how signalbox reaches its peers; empty is the
	// straight way.
	gitea, kubeconfig string
	// bus and cluster are a bus, an embedded one if it is empty, and a further cluster, as
	// flow mappings in the configuration.
	bus, cluster string
	// extra is appended to the configuration.
	extra string
	// noWebhook keeps Gitea from telling what happens.
	noWebhook bool
}

// newBot makes a bot for a repository; it does not run yet. The address stays
// the same over restarts.
func newBot(t *testing.T, repo *seed.Repository, s settings) *bot {
	t.Helper()
	b := &bot{t: t, repo: repo, dir: t.TempDir(), addr: freeAddr(t)}
	b.config = filepath.Join(b.dir, "signalbox.yaml")
	b.newToken()
	b.configure(s)
	t.Cleanup(func() {
		b.kill()
		if strings.Contains(b.log(), "DATA RACE") {
			t.Error("the race detector found a race")
		}
		if t.Failed() {
			t.Logf("the log of signalbox ends with:\n%s", b.logTail(60))
		}
	})
	return b
}

// newToken gives the bot a token, from its next start on, and returns the name
// of the token.
func (b *bot) newToken() string {
	b.t.Helper()
	name := world.Name(b.t)
	token, err := b.repo.World.Gitea.CreateToken(b.t.Context(), b.repo.Bot, name, scopes...)
	if err != nil {
		b.t.Fatal(err)
	}
	b.env = []string{
		"SIGNALBOX_GITEA_TOKEN=" + token, "SIGNALBOX_WEBHOOK_SECRET=" + webhookSecret,
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir,
	}
	return name
}

// configure writes the configuration of the next start.
func (b *bot) configure(s settings) {
	b.t.Helper()
	if s.gitea == "" {
		s.gitea = b.repo.World.Gitea.URL()
	}
	if s.kubeconfig == "" {
		s.kubeconfig = b.repo.World.Kube.Kubeconfig()
	}
	b.hooked = !s.noWebhook
	if s.cluster != "" {
		s.cluster = "\n  - " + s.cluster
	}
	text := fmt.Sprintf(`gitea:
  url: %s
  webhook: {url: "http://%s/", manage: %t}
repositories:
  - name: %s
clusters:
  - {name: prod, kubeconfig: %s}%s
bus: %s
http: {listen: "%s"}
log: {level: debug, format: json}
%s`, s.gitea, b.addr, b.hooked, b.repo, s.kubeconfig, s.cluster, cmp.Or(s.bus, "{embedded: {dir: data}}"), b.addr, s.extra)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// freeAddr returns an address that nobody listens on. It lies below those that
// systems pick the local end of a connection from, so that it is free again
// when a program that was killed comes back, and below those of the servers.
func freeAddr(t *testing.T) string {
	t.Helper()
	const first, last = 12000, 19999
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", first+rand.IntN(last-first+1)))
		if err != nil {
			continue
		}
		defer func() { _ = l.Close() }()
		return l.Addr().String()
	}
	t.Fatal("no free port was found in 100 tries")
	return ""
}

// start starts the program and waits until it is ready.
func (b *bot) start() {
	b.t.Helper()
	log, err := os.OpenFile(b.logFile(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		b.t.Fatal(err)
	}
	defer func() { _ = log.Close() }()
	b.cmd = exec.Command(program, "run", "--config", b.config)
	b.cmd.Env, b.cmd.Dir, b.cmd.Stdout, b.cmd.Stderr = b.env, b.dir, log, log
	// Nothing outlives the test binary.
	b.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := b.cmd.Start(); err != nil {
		b.t.Fatal(err)
	}
	b.done = make(chan error, 1)
	go func(cmd *exec.Cmd, done chan error) { done <- cmd.Wait() }(b.cmd, b.done)
	eventually(b.t, patience, "signalbox is ready", func() error {
		select {
		case err := <-b.done:
			b.done <- err
			b.t.Fatalf("signalbox ended: %v\n%s", err, b.logTail(30))
		default:
		}
		_, err := b.get("/readyz")
		return err
	})
	if b.hooked {
		eventually(b.t, patience, "the webhook is registered", b.isHooked)
	}
}

// isHooked is nil when Gitea knows the address of the bot.
func (b *bot) isHooked() error {
	alice, err := b.repo.World.Gitea.API(b.t.Context(), b.repo.Alice.Token)
	if err != nil {
		return err
	}
	hooks, _, err := alice.ListRepoHooks(b.repo.Owner, b.repo.Name, sdk.ListHooksOptions{})
	if err != nil {
		return err
	}
	for _, h := range hooks {
		if h.Active && strings.HasPrefix(h.Config["url"], "http://"+b.addr+"/") {
			return nil
		}
	}
	return fmt.Errorf("there are %d others", len(hooks))
}

// restart kills the program, if it runs, and starts it again.
func (b *bot) restart() {
	b.t.Helper()
	b.kill()
	b.start()
}

// get asks the program for a page.
func (b *bot) get(path string) (string, error) {
	ctx, cancel := context.WithTimeout(b.t.Context(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+path, nil)
	if err != nil {
		return "", err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return string(body), nil
}

// metric adds up a metric over all series that have the labels, each written
// as name="value".
func (b *bot) metric(t *testing.T, name string, labels ...string) int {
	t.Helper()
	text, err := b.get("/metrics")
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for line := range strings.Lines(text) {
		series, value, ok := strings.Cut(strings.TrimSpace(line), " ")
		if family, _, _ := strings.Cut(series, "{"); !ok || family != name {
			continue
		}
		if slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		if err != nil {
			t.Fatalf("metric %s: %v", series, err)
		}
		sum += v
	}
	return int(sum)
}

// kill ends the program by SIGKILL, as a power cut would.
func (b *bot) kill() { _ = b.end(syscall.SIGKILL) }

// stop ends the program in order and returns its error.
func (b *bot) stop() error { return b.end(syscall.SIGTERM) }

func (b *bot) end(sig syscall.Signal) error {
	if b.cmd == nil {
		return nil
	}
	// It may have ended already.
	_ = b.cmd.Process.Signal(sig)
	err := <-b.done
	b.cmd = nil
	return err
}

func (b *bot) logFile() string { return filepath.Join(b.dir, "log") }

func (b *bot) log() string {
	data, err := os.ReadFile(b.logFile())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		b.t.Fatal(err)
	}
	return string(data)
}

func (b *bot) logTail(lines int) string {
	all := strings.Split(strings.TrimSpace(b.log()), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

// run runs another command of the program with the same settings and returns
// its output and exit code.
func (b *bot) run(args ...string) (string, int) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), program, args...)
	var out bytes.Buffer
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = b.env, b.dir, &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		b.t.Fatal(err)
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// patience is how long a test waits for what takes a moment on an idle machine.
const patience = time.Minute

// eventually waits until f returns nil.
func eventually(t *testing.T, limit time.Duration, what string, f func() error) {
	t.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: %v", what, t.Context().Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
