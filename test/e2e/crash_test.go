//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// trap stops one request of signalbox on its way to Gitea until signalbox is
// dead.
type trap struct {
	// method and path say which request; path is a part of it.
	method, path string
	// skip is how many like it pass first.
	skip int
	// done carries the request out and holds the answer back; without, the
	// request never arrives.
	done bool

	target string
	mu     sync.Mutex
	sprung chan struct{}
}

// set puts the trap into a tap in front of target.
func (x *trap) set(tap *realserver.Tap, target string) {
	x.target, x.sprung = strings.TrimSuffix(target, "/"), make(chan struct{})
	tap.Intercept(x.intercept)
}

func (x *trap) intercept(r *http.Request) *realserver.Answer {
	if r.Method != x.method || !strings.Contains(r.URL.Path, x.path) {
		return nil
	}
	x.mu.Lock()
	if x.skip > 0 {
		x.skip--
		x.mu.Unlock()
		return nil
	}
	first := x.skip == 0
	x.skip = -1
	x.mu.Unlock()
	var err error
	if first {
		if x.done {
			err = x.carryOut(r)
		}
		close(x.sprung)
	}
	// The others of the same evaluation stop here too. Nobody reads the answer.
	<-r.Context().Done()
	return &realserver.Answer{Status: http.StatusBadGateway, Body: fmt.Sprint(err)}
}

// carryOut does what the tap would do, and keeps the answer.
func (x *trap) carryOut(r *http.Request) error {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	// Not with the context of the client, who is about to die.
	req, err := http.NewRequestWithContext(context.WithoutCancel(r.Context()), r.Method, x.target+r.URL.RequestURI(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = r.Header.Clone()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// TestKilled: killed at any point, signalbox says the truth after its next
// start, in one comment.
func TestKilled(t *testing.T) {
	withoutFlux(t)
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: tierPolicy(name, name) + `approvals:
  - name: keepers
    paths: ["first/**"]
    from: {users: [alice, carol]}
`})
	base := st.tip(t)
	k := newTier(t, name, "tier")
	k.ready(base)
	tap, err := realserver.NewTap(world.Gitea.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()

	statuses, comments := "/statuses/", "/comments"
	// opened is killed while the first verdict of a new pull request is made.
	for name, x := range map[string]*trap{
		"before anything is read":  {method: http.MethodGet, path: "/pulls/"},
		"while the files are read": {method: http.MethodGet, path: "/files", done: true},
		"before the first status":  {method: http.MethodPost, path: statuses},
		"after the first status":   {method: http.MethodPost, path: statuses, done: true},
		"before the second status": {method: http.MethodPost, path: statuses, skip: 1},
		"after the second status":  {method: http.MethodPost, path: statuses, skip: 1, done: true},
		"before the comment":       {method: http.MethodPost, path: comments},
		"after the comment":        {method: http.MethodPost, path: comments, done: true},
	} {
		t.Run("opened, "+name, func(t *testing.T) {
			x.set(tap, world.Gitea.URL())
			branch := "opened-" + world.Name(t)
			p := st.open(t, branch, write("first/"+branch+".yaml", "a: 1\n"))
			st.bot.dies(t, x, tap)
			// What is true changes while nobody looks.
			review(t, st.repo, st.repo.Carol, p.number, sdk.ReviewStateApproved)
			st.bot.start()
			_, took := p.shows(patience, "success", "success", "Clear to merge")
			t.Logf("true after %s", took)
			p.close()
		})
	}

	// changed is killed while a changed fact is made known.
	p := st.open(t, "changed", write("first/changed.yaml", "a: 1\n"))
	p.shows(patience, "success", "pending")
	s, _ := p.shows(patience, "success", "pending")
	id := s.comments[0].ID
	for name, x := range map[string]*trap{
		"before the status":  {method: http.MethodPost, path: statuses},
		"after the status":   {method: http.MethodPost, path: statuses, done: true},
		"before the comment": {method: http.MethodPatch, path: comments},
		"after the comment":  {method: http.MethodPatch, path: comments, done: true},
	} {
		t.Run("changed, "+name, func(t *testing.T) {
			p.t = t
			x.set(tap, world.Gitea.URL())
			k.failing(base, "broken "+name)
			st.bot.dies(t, x, tap)
			st.bot.start()
			_, took := p.shows(patience, "pending", "pending", "broken "+name)
			t.Logf("true after %s", took)

			// Once more, and it is as before when signalbox is back.
			k.ready(base)
			p.shows(patience, "success", "pending", "is Ready at "+base[:10])
			again := &trap{method: x.method, path: x.path, done: x.done}
			again.set(tap, world.Gitea.URL())
			k.failing(base, "broken again")
			st.bot.dies(t, again, tap)
			k.ready(base)
			st.bot.start()
			s, took := p.shows(patience, "success", "pending", "is Ready at "+base[:10])
			t.Logf("true as before after %s", took)
			if s.comments[0].ID != id {
				t.Errorf("the comment is %d, was %d", s.comments[0].ID, id)
			}
		})
	}
}

// dies kills the program when the trap has sprung, and takes the trap away.
func (b *bot) dies(t *testing.T, x *trap, tap *realserver.Tap) {
	t.Helper()
	select {
	case <-x.sprung:
	case <-time.After(patience):
		t.Fatalf("no %s …%s… came", x.method, x.path)
	}
	b.kill()
	tap.Intercept(nil)
}

// TestKilledAfterTheAnswer: an event that was answered is not lost, although
// nobody else tells of it.
func TestKilledAfterTheAnswer(t *testing.T) {
	t.Parallel()
	st := plantStage(t, seed.Options{Policy: approvalPolicy})
	tap, err := realserver.NewTap(world.Gitea.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	// Nothing can be listed, so that the reconciler finds nothing.
	tap.Intercept(func(r *http.Request) *realserver.Answer {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/pulls") {
			return &realserver.Answer{Status: http.StatusForbidden}
		}
		return nil
	})
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL(), noWebhook: true})
	st.bot.start()
	for i := range 5 {
		branch := fmt.Sprintf("answered-%d", i)
		head := st.push(t, branch, "origin/main", write("clusters/"+branch+".yaml", "a: 1\n"))
		p := st.request(t, branch, "main")
		h := p.pullHook(t, "pull_request", "opened", "answered-"+head, head)
		if got := st.bot.deliver(t, h); got != http.StatusNoContent {
			t.Fatalf("answered with %d", got)
		}
		// At once, and ever later.
		<-time.After(time.Duration(i) * 150 * time.Millisecond)
		st.bot.restart()
		_, took := p.shows(patience, "success", "pending", "Needs 1 approval")
		t.Logf("killed %d ms after the answer, true after %s", i*150, took)
	}
}

// TestRestartIsQuiet: a restart by itself changes nothing on any page, also
// where the cluster is far away.
func TestRestartIsQuiet(t *testing.T) {
	withoutFlux(t)
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: tierPolicy(name, name)})
	newTier(t, name, "tier").ready(st.tip(t))
	proxy, err := realserver.NewProxy(world.Kube.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	if err := realserver.WriteKubeconfig(kubeconfig, map[string]realserver.Access{"far": world.Kube.Access().Via(proxy.Addr())}); err != nil {
		t.Fatal(err)
	}
	proxy.Delay(75 * time.Millisecond)
	st.bot = newBot(t, st.repo, settings{kubeconfig: kubeconfig})
	st.bot.start()
	p := st.open(t, "quiet", write("first/quiet.yaml", "a: 1\n"))
	p.shows(patience, "success", "success", "Clear to merge")
	posted := func() int {
		return st.bot.metric(t, "signalbox_gitea_requests_total", `method="POST"`) + st.bot.metric(t, "signalbox_gitea_requests_total", `method="PATCH"`)
	}
	// The first time it learns how the base is protected, which nothing told.
	for i, kill := range []bool{true, false, true} {
		if kill {
			st.bot.kill()
		} else if err := st.bot.stop(); err != nil {
			t.Fatal(err)
		}
		mark := len(st.bot.log())
		st.bot.start()
		eventually(t, patience, "the cluster is known again and the pull request was looked at", func() error {
			log := st.bot.log()[mark:]
			if !strings.Contains(log, `"kind":"kustomization","state":"synced"`) || st.bot.metric(t, "signalbox_evaluations_total", `kind="full"`) == 0 {
				return fmt.Errorf("not yet")
			}
			return nil
		})
		if flips := watchFlips(t, p, 3*time.Second); i > 0 && (flips > 0 || posted() > 0) {
			t.Errorf("after a restart the statuses changed %d times; %d requests changed something:\n%s", flips, posted(), st.bot.log()[mark:])
		}
	}
}
