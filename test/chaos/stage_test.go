//go:build e2e

package chaos

import (
	"context"
	_ "embed"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
	"signalbox/test/realserver/seed"
)

//go:embed kustomization-crd.yaml
var kustomizationCRD []byte

const policyOfRun = `version: 1
preconditions:
  - name: the tier is Ready
    flux: {kustomization: %s/tier}
approvals:
  - name: keepers
    paths: ["strict/**"]
    from: {users: [alice, carol]}
  - name: keepers of the same
    paths: ["kept/**"]
    from: {users: [alice, carol]}
    survive: identical-diff
override: {from: {users: [alice]}, ttl: 4h}
`

// stage is what a run happens on.
type stage struct {
	t       *testing.T
	random  *rand.Rand
	repo    *seed.Repository
	people  map[string]*sdk.Client
	clone   *realserver.Clone
	bot     *bot.Bot
	alive   bool
	relay   *Relay
	tap     *realserver.Tap
	gitea   *realserver.Proxy
	kube    *realserver.Proxy
	trouble *trouble
	dir     string

	pulls []*pullRequest
	// ready is what the tier says: "ready", "failing" or "gone".
	tier string
	next int
	log  []string
	// known are the ids of the ledger that were seen.
	known map[string]bool
}

// pullRequest is a pull request and what its oracle knows of it.
type pullRequest struct {
	Oracle
	number int64
	branch string
	path   string
	// reviews are those that can be dismissed.
	reviews []int64
	// text is what the change writes.
	text string
}

// did notes what was done in the log.
func (s *stage) did(format string, args ...any) {
	s.log = append(s.log, fmt.Sprintf("%s  ", time.Now().UTC().Format("15:04:05.000"))+fmt.Sprintf(format, args...))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newStage plants a repository and starts signalbox in front of it, behind everything
// that can break.
func newStage(t *testing.T, number uint64) *stage {
	t.Helper()
	ctx := t.Context()
	name := world.Name(t)
	s := &stage{t: t, random: rand.New(rand.NewPCG(number, 0)), tier: "gone", known: map[string]bool{}, people: map[string]*sdk.Client{}, trouble: newTrouble(number)}
	check(t, world.Kube.Apply(ctx, kustomizationCRD))
	check(t, world.Kube.CreateNamespace(ctx, name))
	s.repo = must[*seed.Repository](t)(seed.Plant(ctx, world, seed.Options{Owner: name, Namespace: name, Policy: fmt.Sprintf(policyOfRun, name)}))
	for _, u := range []realserver.User{s.repo.Alice, s.repo.Bob, s.repo.Carol, s.repo.Mallory} {
		s.people[u.Name] = must[*sdk.Client](t)(world.Gitea.API(ctx, u.Token))
	}
	s.clone = must[*realserver.Clone](t)(s.repo.Clone(ctx, s.repo.Bob, t.TempDir()))
	check(t, s.clone.Branch(ctx, "staging", "origin/main"))
	check(t, s.clone.Push(ctx, "staging"))
	s.setTier("ready")

	s.tap = must[*realserver.Tap](t)(realserver.NewTap(world.Gitea.URL()))
	t.Cleanup(s.tap.Close)
	s.gitea = must[*realserver.Proxy](t)(realserver.NewProxy(hostOf(s.tap.URL())))
	t.Cleanup(s.gitea.Close)
	s.kube = must[*realserver.Proxy](t)(realserver.NewProxy(world.Kube.Addr()))
	t.Cleanup(s.kube.Close)
	s.relay = must[*Relay](t)(NewRelay(number))
	t.Cleanup(s.relay.Close)
	s.startBot(name)
	return s
}

func hostOf(url string) string { return strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/") }

func (s *stage) startBot(name string) {
	ctx := s.t.Context()
	// Short, for a socket has to fit.
	dir := must[string](s.t)(os.MkdirTemp("", "chaos-"))
	s.dir = dir
	token := must[string](s.t)(world.Gitea.CreateToken(ctx, s.repo.Bot, name, bot.Scopes()...))
	account := must[realserver.Access](s.t)(bot.Account(ctx, world.Kube, name))
	s.bot = must[*bot.Bot](s.t)(bot.Start(ctx, bot.Options{
		Program: program, Dir: dir, GiteaURL: "http://" + s.gitea.Addr() + "/", Token: token,
		Repositories: []string{s.repo.String()}, Clusters: map[string]realserver.Access{"prod": account.Via(s.kube.Addr())},
		Receiver: s.relay.URL,
		More:     "timing: {reconcile: 5s, clusterSilence: 10s}\nlog: {level: debug, format: json}\n",
	}))
	s.alive = true
	s.relay.Aim(s.bot.URL)
	s.t.Cleanup(func() {
		s.bot.Stop()
		text, err := os.ReadFile(s.bot.Log())
		if err != nil || strings.Contains(string(text), "DATA RACE") {
			s.t.Errorf("the race detector found a race, or the log cannot be read: %v", err)
		}
		if s.t.Failed() {
			s.t.Logf("data and log of signalbox are in %s", dir)
			return
		}
		_ = os.RemoveAll(dir)
	})
}

// admin asks signalbox on its socket.
func (s *stage) admin(path string) (*http.Response, error) {
	client := &http.Client{Transport: socketTransport(filepath.Join(s.dir, "data", "admin", "socket")), Timeout: 20 * time.Second}
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://signalbox"+path, nil)
	if err != nil {
		return nil, err
	}
	return client.Do(req)
}

// pick returns one of several by chance.
func pick[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

// patient bounds what the real servers are asked to do.
func (s *stage) patient() (context.Context, context.CancelFunc) {
	return context.WithTimeout(s.t.Context(), time.Minute)
}
