//go:build e2e

package replica

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
)

const (
	webhookSecret = "a secret that all replicas share"
	// patience is how long anything may take on a machine that is busy.
	patience = time.Minute
)

// stage is a NATS cluster with several replicas of signalbox, and a stand-in for Gitea that records what
// they do to it.
type stage struct {
	t      *testing.T
	nats   *realserver.NATSCluster
	forge  *giteatest.Server
	effect *effects
	front  *front
	repo   pull.Repo
	token  string
	eyes   *gitea.Client
	admin  *sdk.Client
	tier   tier
	more   string

	replicas []*replica
}

// replica is one process of signalbox. It reaches each server of NATS through a proxy of its own, and Gitea
// through a tap.
type replica struct {
	*bot.Bot
	name  string
	links []*realserver.Proxy
	gitea *realserver.Tap
}

// options are what tests vary.
type options struct {
	replicas int
	// more is added to the configuration of each replica.
	more string
}

// newStage starts everything and waits until all replicas are ready.
func newStage(t *testing.T, o options) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	st := &stage{t: t, front: newFront(t), tier: newTier(t), more: o.more}
	var err error
	dir := filepath.Join(t.ArtifactDir(), "nats")
	if st.nats, err = realserver.StartNATS(ctx, realserver.Options{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			for _, n := range st.nats.Nodes() {
				t.Logf("the log of %s ends with:\n%s", n.Name, tail(filepath.Join(dir, "logs", n.Name+".log"), 25))
			}
		}
		st.nats.Stop()
	})
	st.makeForge(ctx)
	for range o.replicas {
		st.addReplica(ctx)
	}
	st.front.to(st.replicas...)
	st.eventually(patience, "one webhook is registered", st.hooked)
	return st
}

// makeForge makes the people and the repository.
func (st *stage) makeForge(ctx context.Context) {
	st.t.Helper()
	forge, err := giteatest.New(giteatest.Options{})
	if err != nil {
		st.t.Fatal(err)
	}
	st.t.Cleanup(forge.Close)
	st.forge = forge
	var alice string
	for _, login := range []string{"alice", "bob", "carol", "signalbox"} {
		_, token, err := forge.CreateUser(ctx, login)
		st.must(err)
		switch login {
		case "alice":
			alice = token
		case "signalbox":
			st.token = token
		}
	}
	st.repo, err = forge.CreateRepo(ctx, "alice", "home-gitops", map[string]string{
		policy.Path: fmt.Sprintf(policyText, st.tier.name), "clusters/prod.yaml": "a: 1\n",
	})
	st.must(err)
	st.must(forge.Grant(ctx, st.repo, "bob", giteatest.Write))
	st.must(forge.Grant(ctx, st.repo, "carol", giteatest.Write))
	st.must(forge.Grant(ctx, st.repo, "signalbox", giteatest.Admin))
	st.eyes, err = gitea.New(gitea.Config{URL: forge.URL(), Token: secret.New(alice)}, nil, nil)
	st.must(err)
	st.admin, err = sdk.NewClient(forge.URL(), sdk.SetToken(alice))
	st.must(err)
	st.effect = watch(forge)
}

// policyText is about what lies under clusters; the rest needs an approval alone.
const policyText = `version: 1
merge: {enabled: true}
targets:
  - {cluster: prod, paths: ["clusters/**"]}
preconditions:
  - name: the tier is Ready
    paths: ["clusters/**"]
    flux: {kustomization: flux-system/%s}
approvals:
  - name: somebody else has looked at it
    from: {users: [alice, carol]}
`

// hooked is nil when Gitea has one webhook, which leads to the front.
func (st *stage) hooked() error {
	hooks, _, err := st.admin.ListRepoHooks(st.repo.Owner, st.repo.Name, sdk.ListHooksOptions{})
	if err != nil {
		return err
	}
	if len(hooks) != 1 || !strings.HasPrefix(hooks[0].Config["url"], st.front.url()) {
		return fmt.Errorf("there are %d: %v", len(hooks), hooks)
	}
	return nil
}

// addReplica starts one more replica.
func (st *stage) addReplica(ctx context.Context) {
	st.t.Helper()
	r := &replica{name: fmt.Sprintf("replica-%d", len(st.replicas))}
	var urls []string
	for _, n := range st.nats.Nodes() {
		link, err := realserver.NewProxy(n.Addr())
		st.must(err)
		st.t.Cleanup(link.Close)
		r.links = append(r.links, link)
		urls = append(urls, "nats://"+link.Addr())
	}
	var err error
	r.gitea, err = realserver.NewTap(st.forge.URL())
	st.must(err)
	st.t.Cleanup(r.gitea.Close)
	dir := filepath.Join(st.t.ArtifactDir(), r.name)
	st.must(os.MkdirAll(dir, 0o755))
	r.Bot, err = bot.Start(ctx, bot.Options{
		Program: program, Dir: dir, GiteaURL: r.gitea.URL(), Token: st.token,
		Repositories: []string{st.repo.String()}, Clusters: map[string]realserver.Access{"prod": member},
		Secret: webhookSecret, Receiver: st.front.url(),
		Bus: fmt.Sprintf("{nats: {urls: [%s], nkey: %q, replicas: 3}}", strings.Join(urls, ", "), st.nats.Seed()),
		// The reconciler comes at the start alone, so that it hides nothing that is lost later.
		More: "timing: {reconcile: 1h}\nlog: {level: debug, format: json}\n" + st.more,
	})
	st.must(err)
	st.t.Cleanup(func() {
		r.Stop()
		if st.t.Failed() {
			st.t.Logf("the log of %s ends with:\n%s", r.name, tail(r.Log(), 40))
		}
	})
	st.replicas = append(st.replicas, r)
}

func (st *stage) must(err error) {
	st.t.Helper()
	if err != nil {
		st.t.Fatal(err)
	}
}

// eventually waits until f returns nil.
func (st *stage) eventually(limit time.Duration, what string, f func() error) time.Duration {
	st.t.Helper()
	began := time.Now()
	for {
		err := f()
		if err == nil {
			return time.Since(began)
		}
		if time.Since(began) > limit {
			st.t.Fatalf("%s: not within %s: %v", what, limit, err)
		}
		select {
		case <-st.t.Context().Done():
			st.t.Fatalf("%s: %v", what, st.t.Context().Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// pass lets a time pass in which people work.
func (st *stage) pass(d time.Duration) {
	st.t.Helper()
	select {
	case <-time.After(d):
	case <-st.t.Context().Done():
		st.t.Fatal(st.t.Context().Err())
	}
}

// ready is nil while a replica says that it takes events.
func (r *replica) ready(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.URL+"readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s is not ready: %s", r.name, resp.Status)
	}
	return nil
}

// tail returns the last lines of a file.
func tail(path string, lines int) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	all := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
