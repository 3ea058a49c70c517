package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/handlers"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
	"signalbox/internal/secret"
	"signalbox/internal/trace"
)

const (
	owner      = "ops"
	repoName   = "home-gitops"
	noMatches  = `StorageProfile/longhorn dry-run failed: no matches for kind "StorageProfile" in version "cdi.kubevirt.io/v1beta1"`
	testPolicy = `version: 1
targets:
  - {cluster: prod, paths: ["clusters/**", "platform*/**", "apps/**"]}
preconditions:
  - name: platform-config is Ready
    paths: ["platform-config*/**", "clusters/**"]
    flux: {kustomization: flux-system/platform-config}
approvals:
  - name: platform owners
    paths: ["clusters/**"]
    from: {teams: [maintainers], users: [alice]}
    survive: identical-diff
`
)

// world is signalbox with stand-ins for Gitea and one cluster.
type world struct {
	t       testing.TB
	forge   *giteatest.Server
	cluster *kubetest.Cluster
	repo    pull.Repo
	bot     pull.Person
	token   string
	// eyes reads Gitea as a person does.
	eyes *gitea.Client
	dir  string
	// listener is kept over restarts, as the address of a service is.
	addr string

	// patience is how long something may take to happen, if that is not the usual.
	patience time.Duration

	app  *app
	stop func()
}

type worldOptions struct {
	// alone keeps the test from running beside others, for one that changes the
	// environment.
	alone bool
	files map[string]string
	// adjust changes the configuration.
	adjust func(*config.Config)
	// unread does not wait for the cluster.
	unread bool
	// shared is a bus that other replicas, or agents, use too; nil means one of its own.
	shared *bus.External
	// remote says that an agent watches the cluster.
	remote bool
	// chats are those that signalbox talks in.
	chats map[chat.Platform]makeAdapter
	// clock is that of the decisions; nil is that of the machine.
	clock func() time.Time
	// ripen is how long a command is left alone; 50 ms if it is zero.
	ripen time.Duration
	// log takes the log, if it is set, and tracer the spans.
	log    *slog.Logger
	tracer *trace.Tracer
}

// newWorld makes the world; signalbox is not started yet.
func newWorld(t testing.TB, o worldOptions) *world {
	t.Helper()
	if beside, ok := t.(*testing.T); ok && !o.alone {
		// A world spends most of its time waiting.
		beside.Parallel()
	}
	ctx := t.Context()
	forge, err := giteatest.New(giteatest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(forge.Close)
	w := &world{t: t, forge: forge, cluster: kubetest.New(), dir: t.TempDir()}
	var eyes string
	for _, login := range []string{"alice", "bob", "carol", "mallory", "signalbox"} {
		p, token, err := forge.CreateUser(ctx, login)
		w.must(err)
		switch login {
		case "signalbox":
			w.bot, w.token = p, token
		case "alice":
			eyes = token
		}
	}
	w.must(forge.CreateOrg(ctx, owner))
	w.must(forge.SetTeam(ctx, owner, "maintainers", "carol", "signalbox"))
	files := map[string]string{policy.Path: testPolicy, "clusters/base/platform.yaml": "a: 1\n", "platform-config/profile.yaml": "b: 1\n"}
	maps.Copy(files, o.files)
	w.repo, err = forge.CreateRepo(ctx, owner, repoName, files)
	w.must(err)
	for _, login := range []string{"bob", "carol"} {
		w.must(forge.Grant(ctx, w.repo, login, giteatest.Write))
	}
	w.must(forge.Grant(ctx, w.repo, "alice", giteatest.Admin))
	w.must(forge.Grant(ctx, w.repo, "signalbox", giteatest.Admin))
	w.eyes, err = gitea.New(gitea.Config{URL: forge.URL(), Token: secret.New(eyes)}, nil, nil)
	w.must(err)
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// start starts signalbox and stops it when the test ends, or when stop is
// called.
func (w *world) start(o worldOptions) {
	w.t.Helper()
	var lc net.ListenConfig
	if w.addr == "" {
		w.addr = "127.0.0.1:0"
	}
	listener, err := lc.Listen(w.t.Context(), "tcp", w.addr)
	w.must(err)
	w.addr = listener.Addr().String()
	root, err := url.Parse(w.forge.URL())
	w.must(err)
	self, err := url.Parse("http://" + w.addr + "/")
	w.must(err)
	c := &config.Config{
		Gitea: config.Gitea{
			URL: root, Token: secret.New(w.token), Timeout: 5 * time.Second,
			Webhook: config.Webhook{URL: self, Manage: true, Secret: secret.New("a webhook secret")},
		},
		Repositories: []config.Repository{{Owner: owner, Name: repoName}},
		Timing:       config.Timing{Reconcile: time.Hour, ClusterSilence: time.Minute},
	}
	if o.adjust != nil {
		o.adjust(c)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	if o.log == nil {
		o.log = bustest.Logger(w.t)
	}
	made := appConfig{
		config: c, listener: listener, log: o.log, tracer: o.tracer, makeAdapters: o.chats,
		bus: bus.Config{Debounce: 20 * time.Millisecond, MaxWait: 200 * time.Millisecond},
	}
	if o.shared != nil {
		made.bus.External = *o.shared
	} else {
		made.bus.Embedded = bus.Embedded{Dir: w.dir, SyncInterval: time.Minute}
	}
	if o.remote {
		made.agents = []string{"prod"}
	} else {
		made.clusters = []kube.Config{w.watched()}
	}
	w.app, err = newApp(ctx, made)
	w.must(err)
	w.app.evaluator.Ripen = cmp.Or(o.ripen, 50*time.Millisecond)
	if o.clock != nil {
		w.app.evaluator.Now = o.clock
	}
	if w.app.chats != nil {
		w.app.chats.handler.Glance = 0 // A test reads quickly.
	}
	done := make(chan error, 1)
	go func() { done <- w.app.run(ctx) }()
	stopped := false
	w.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
	w.t.Cleanup(w.stop)
	w.eventually("the webhook is registered and the cluster is known", func() string {
		if err := w.hooked(); err != nil {
			return err.Error()
		}
		if o.unread {
			return ""
		}
		beat, _ := w.app.bus.Facts().Lookup(fact.HeartbeatKey("prod"))
		if beat.Heartbeat == nil || beat.Heartbeat.Silent {
			return "the cluster has not been heard from"
		}
		known, _ := w.app.bus.Facts().Lookup(fact.ClusterKey("prod"))
		if known.Cluster == nil || known.Cluster.Kinds["kustomization"].State != fact.WatchSynced {
			return "the Kustomizations are not known"
		}
		return ""
	})
}

// watched is the cluster as it is watched from here.
func (w *world) watched() kube.Config {
	return kube.Config{
		Cluster: "prod", Client: w.cluster.Client(), Probe: w.cluster.Probe, Discovery: w.cluster.Discovery(),
		Limits: kube.Limits{ProbeEvery: 200 * time.Millisecond},
	}
}

// hooked reports whether the webhook is registered as it should be.
func (w *world) hooked() error {
	admin, err := gitea.New(gitea.Config{URL: w.forge.URL(), Token: secret.New(w.token)}, nil, nil)
	if err != nil {
		return err
	}
	result, err := admin.EnsureHook(w.t.Context(), w.repo, gitea.HookSpec{
		URL: w.app.config.Gitea.Webhook.Receiver(), Secret: w.app.config.Gitea.Webhook.Secret,
	})
	if err == nil && result.Change != gitea.HookUnchanged {
		err = fmt.Errorf("the webhook was %s by the test", result.Change)
	}
	return err
}

// eventually waits until f returns nothing; f returns what is still wrong.
func (w *world) eventually(what string, f func() string) {
	w.t.Helper()
	// Only a machine that is busy with other things needs so long.
	deadline := time.Now().Add(cmp.Or(w.patience, 45*time.Second))
	for {
		wrong := f()
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("%s: %s", what, wrong)
		}
		select {
		case <-w.t.Context().Done():
			w.t.Fatal("the test ended")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// open opens bob's pull request, which changes files on a branch of its own.
func (w *world) open(branch string, files map[string]string) int64 {
	w.t.Helper()
	ctx := w.t.Context()
	_, err := w.forge.Push(ctx, w.repo, giteatest.Push{Branch: branch, From: "main", As: "bob", Files: files, Message: branch})
	w.must(err)
	n, err := w.forge.OpenPull(ctx, w.repo, giteatest.NewPull{As: "bob", Title: "Move the profile", Head: branch, Base: "main"})
	w.must(err)
	return n
}

// shown is what a person sees of signalbox on a pull request.
type shown struct {
	preconditions, approval pull.Status
	comments                []pull.Comment
}

func (w *world) look(number int64) (shown, error) {
	ctx := w.t.Context()
	p, err := w.eyes.Pull(ctx, w.repo, number)
	if err != nil {
		return shown{}, err
	}
	statuses, err := w.eyes.Statuses(ctx, w.repo, p.Head.SHA)
	if err != nil {
		return shown{}, err
	}
	var s shown
	for _, st := range statuses {
		switch st.Context {
		case render.PreconditionsContext(p.Base.Name):
			s.preconditions = st
		case render.ApprovalContext(p.Base.Name):
			s.approval = st
		}
	}
	all, err := w.eyes.Comments(ctx, w.repo, number)
	for _, c := range all {
		if c.Author.Is(w.bot) && !strings.HasPrefix(c.Body, "<!-- signalbox reply") {
			s.comments = append(s.comments, c)
		}
	}
	return s, err
}

// shows waits until a pull request shows two states, exactly one comment, and
// all of the texts in the comment.
func (w *world) shows(number int64, preconditions, approval string, texts ...string) shown {
	w.t.Helper()
	var s shown
	w.eventually(fmt.Sprintf("pull request %d shows %s and %s", number, preconditions, approval), func() string {
		var err error
		if s, err = w.look(number); err != nil {
			return err.Error()
		}
		if s.preconditions.State != preconditions || s.approval.State != approval {
			return fmt.Sprintf("statuses are %q (%s) and %q (%s)", s.preconditions.State, s.preconditions.Description, s.approval.State, s.approval.Description)
		}
		if len(s.comments) != 1 {
			return fmt.Sprintf("there are %d comments", len(s.comments))
		}
		for _, text := range texts {
			if !strings.Contains(plain(s.comments[0].Body), text) {
				return fmt.Sprintf("the comment lacks %q:\n%s", text, s.comments[0].Body)
			}
		}
		return ""
	})
	return s
}

// plain takes the escapes out of a comment.
func plain(body string) string {
	return strings.NewReplacer("\\", "", "\u2060", "", "`", "").Replace(body)
}

// observe keeps signalbox from posting.
func observe(c *config.Config) {
	for i := range c.Repositories {
		c.Repositories[i].Observe = true
	}
}

// tick is what makes the reconciler look.
func tick(t testing.TB) events.Event {
	t.Helper()
	tick := events.Tick{Name: handlers.ReconcileTick, At: time.Now()}
	e, err := events.New(tick.ID(), "clock", tick.At, tick)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
