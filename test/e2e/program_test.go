//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
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
	dir    string
	addr   string
	env    []string
	config string

	cmd  *exec.Cmd
	done chan error
}

// settings are what tests vary.
type settings struct {
	gitea, kubeconfig string
	// extra is appended to the configuration.
	extra string
	// manage is false where a test wants no webhook.
	noWebhook bool
}

// newBot writes the configuration for a repository. The address stays the same
// over restarts.
func newBot(t *testing.T, repo *seed.Repository, s settings) *bot {
	t.Helper()
	ctx := t.Context()
	token, err := world.Gitea.CreateToken(ctx, repo.Bot, world.Name(t), scopes...)
	if err != nil {
		t.Fatal(err)
	}
	b := &bot{t: t, dir: t.TempDir(), addr: freeAddr(t)}
	b.env = []string{
		"SIGNALBOX_GITEA_TOKEN=" + token, "SIGNALBOX_WEBHOOK_SECRET=" + webhookSecret,
		"PATH=" + os.Getenv("PATH"), "HOME=" + b.dir,
	}
	if s.gitea == "" {
		s.gitea = world.Gitea.URL()
	}
	if s.kubeconfig == "" {
		s.kubeconfig = world.Kube.Kubeconfig()
	}
	b.config = filepath.Join(b.dir, "signalbox.yaml")
	text := fmt.Sprintf(`gitea:
  url: %s
  webhook: {url: "http://%s/", manage: %t}
repositories:
  - name: %s
clusters:
  - {name: prod, kubeconfig: %s}
bus:
  embedded: {dir: data}
http: {listen: "%s"}
log: {level: debug, format: json}
%s`, s.gitea, b.addr, !s.noWebhook, repo, s.kubeconfig, b.addr, s.extra)
	if err := os.WriteFile(b.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.kill()
		if t.Failed() {
			t.Logf("the log of signalbox ends with:\n%s", b.logTail(60))
		}
	})
	return b
}

func freeAddr(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
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
	eventually(b.t, 30*time.Second, "signalbox is ready", func() error {
		select {
		case err := <-b.done:
			b.done <- err
			b.t.Fatalf("signalbox ended: %v\n%s", err, b.logTail(30))
		default:
		}
		return b.get("/readyz")
	})
}

// get asks the program for a page.
func (b *bot) get(path string) error {
	ctx, cancel := context.WithTimeout(b.t.Context(), 2*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+b.addr+path, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s: %s", path, resp.Status, body)
	}
	return nil
}

// kill ends the program by SIGKILL, as a power cut would.
func (b *bot) kill() { b.end(syscall.SIGKILL) }

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
