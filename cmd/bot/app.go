package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/agent"
	"signalbox/internal/bus"
	"signalbox/internal/chat"
	"signalbox/internal/config"
	"signalbox/internal/doctor"
	"signalbox/internal/events"
	"signalbox/internal/gitea"
	"signalbox/internal/handlers"
	"signalbox/internal/kube"
	"signalbox/internal/pull"
	"signalbox/internal/render"
	"signalbox/internal/schedule"
	"signalbox/internal/secret"
	"signalbox/internal/trace"
)

// appConfig is what an app is made of.
type appConfig struct {
	config   *config.Config
	listener net.Listener
	// clusters are those that are watched from here, and agents the names of those that
	// have an agent.
	clusters []kube.Config
	agents   []string
	bus      bus.Config
	log      *slog.Logger
	// tracer is nil where nothing is traced. Whoever makes an app closes it.
	tracer *trace.Tracer
	// makeAdapters connect to the chats that are configured.
	makeAdapters map[chat.Platform]makeAdapter
}

// app is signalbox, wired together.
type app struct {
	appConfig
	registry *prometheus.Registry
	bus      *bus.Bus
	forge    *gitea.Client
	watchers []*kube.Watcher
	ledger   *bus.Ledger

	events     *handlers.Events
	facts      *handlers.Facts
	evaluator  *handlers.Evaluator
	reconciler *handlers.Reconciler
	silence    *handlers.Silence
	demand     *handlers.Demand
	// hub speaks with agents; nil where there are none.
	hub *agent.Hub
	// wished is sent to after what verdicts wish for changed.
	wished chan struct{}
	talk   talk
	// outlook tells how things stand.
	outlook outlook
	// live tells what changes.
	live *live
	// chats is nil where no chat is configured.
	chats *chats
	pages pages
	// started is when this process began.
	started time.Time
}

// Names of the durable consumers. They stay the same for ever: a new name
// starts with the oldest event.
const (
	consumerEvents    = "events"
	consumerFacts     = "facts"
	consumerReconcile = "reconcile"
)

// bucketPulls holds the record of each pull request.
const bucketPulls = "pulls"

// newApp opens the bus and wires the parts; nothing runs yet. It fails only for
// what is wrong here: Gitea and the clusters may be down.
func newApp(ctx context.Context, c appConfig) (_ *app, err error) {
	a := &app{appConfig: c, registry: prometheus.NewRegistry(), live: newLive(), started: time.Now().UTC()}
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	if err := registerBuild(a.registry); err != nil {
		return nil, err
	}
	c.bus.Tracer = c.tracer
	if a.bus, err = bus.Open(ctx, c.bus, c.log, a.registry); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, a.close())
		}
	}()
	if a.forge, err = newForge(c.config, c.log, a.registry); err != nil {
		return nil, err
	}
	for _, cluster := range c.clusters {
		w, err := kube.New(cluster, newSink(a.bus), c.log, a.registry)
		if err != nil {
			return nil, err
		}
		a.watchers = append(a.watchers, w)
	}
	return a, a.wire(ctx)
}

func newForge(c *config.Config, log *slog.Logger, registry prometheus.Registerer) (*gitea.Client, error) {
	return gitea.New(gitea.Config{
		URL: c.Gitea.URL.String(), Token: c.Gitea.Token, Timeout: c.Gitea.Timeout,
		UserAgent: "signalbox/" + versionText(), Budget: c.Gitea.Budget,
	}, log, registry)
}

// grace is how long a new head may be without a status while its first
// evaluation reads the pull request.
const grace = 400 * time.Millisecond

// ripen is how long a comment with a command is left alone: longer than Gitea
// takes to tell that somebody edited it.
const ripen = 1500 * time.Millisecond

// wishPatience is how long the first verdict that wishes for something of a
// cluster waits for it.
const wishPatience = 2 * time.Second

// wire makes the handlers.
func (a *app) wire(ctx context.Context) error {
	records, err := bus.OpenBucket[handlers.Record](ctx, a.bus, bucketPulls)
	if err != nil {
		return err
	}
	if a.ledger, err = bus.OpenLedger(ctx, a.bus); err != nil {
		return err
	}
	index := handlers.NewIndex()
	records.OnChange(index.Change)
	policies, err := handlers.NewPolicies(a.config.Policy)
	if err != nil {
		return err
	}
	queue := a.bus.Work()
	account := handlers.NewAccount(a.forge)
	repositories := handlers.NewRepositories(a.forge, repositorySettings(a.config))
	queue.NameBy(func(ref pull.Ref) string { return pullName(repositories, ref) })
	meter, err := newMeter(a.registry)
	if err != nil {
		return err
	}
	a.ledger.OnChange(meter.decided)
	if err := a.registerGauges(records); err != nil {
		return err
	}
	if err := a.wireDemand(ctx, index, records, repositories); err != nil {
		return err
	}
	a.events = &handlers.Events{
		Queue: queue, Records: records, Index: index, Account: account, Ledger: a.ledger,
		Repositories: repositories, Forge: a.demand.Forge, Log: a.log,
	}
	if err := a.wireTalk(ctx); err != nil {
		return err
	}
	if err := a.wireOutlook(ctx, records, repositories, account); err != nil {
		return err
	}
	a.facts = &handlers.Facts{Queue: queue, Records: records, Index: index}
	a.silence = &handlers.Silence{
		Facts: a.bus.Facts(), Beats: a.bus.Beats(), Clusters: a.clusterNames(),
		Limit: a.config.Timing.ClusterSilence, Now: time.Now,
	}
	a.reconciler = &handlers.Reconciler{
		Repositories: repositories, Forge: a.forge, Queue: queue, Records: records,
		EnsureHook: a.ensureHook, Gaps: a.gaps, Facts: a.bus.Facts(), Refresh: a.demand.Refresh,
		Every: a.config.Timing.Reconcile, Now: time.Now, Log: a.log,
	}
	a.evaluator = &handlers.Evaluator{
		Forge: a.forge, Repositories: repositories, Account: account,
		Records: records, Index: index, Facts: a.bus.Facts(), Demand: a.demand, Queue: queue, Policies: policies,
		Ledger: a.ledger, People: a.talk.directory.People, Finder: handlers.NewFinder(),
		Requests: a.talk.requests, Directory: a.talk.directory, Outbox: a.talk.outbox, Page: a.pullPage,
		Clusters: a.clusterNames(), Bots: bots(a.config),
		Meter: meter, Log: a.log, Now: time.Now, Grace: grace, Ripen: ripen,
		Shared: len(a.appConfig.bus.External.URLs) > 0,
	}
	a.live.follow(records, a.bus.Facts(), a.ledger)
	if err := a.wireChats(ctx, records, index, repositories); err != nil {
		return err
	}
	return a.wirePages(ctx, records, index, repositories)
}

// wireDemand makes what has facts collected that verdicts wish for.
func (a *app) wireDemand(ctx context.Context, index *handlers.Index, records handlers.Syncer, repositories *handlers.Repositories) error {
	a.wished = make(chan struct{}, 1)
	index.OnWish(func() {
		select {
		case a.wished <- struct{}{}:
		default:
		}
	})
	clusters, err := a.wireHub(ctx)
	if err != nil {
		return err
	}
	a.demand = &handlers.Demand{
		Index: index, Records: records, Clusters: clusters, Patience: wishPatience, Now: time.Now,
		Forge: &handlers.ForgeFacts{
			Forge: a.forge, Repositories: repositories, Facts: a.bus.Facts(), RenovateAccounts: a.config.Bots,
			Every: a.config.Timing.Reconcile, Now: time.Now, Log: a.log,
		},
	}
	return nil
}

// pullName is what the log calls a pull request: by the ids while the name of its
// repository is not known.
func pullName(repositories *handlers.Repositories, ref pull.Ref) string {
	for _, repo := range repositories.Known() {
		if repo.ID == ref.RepoID {
			return repo.Numbered(ref.Number)
		}
	}
	return ref.String()
}

// clusterCollectors are the watchers by the names of their clusters.
func clusterCollectors(clusters []kube.Config, watchers []*kube.Watcher) map[string]handlers.ClusterCollector {
	out := make(map[string]handlers.ClusterCollector, len(watchers))
	for i, w := range watchers {
		out[clusters[i].Cluster] = w
	}
	return out
}

// run runs all parts until ctx ends. The intake stops first, then the
// consumers finish what they are at, then the bus closes.
func (a *app) run(ctx context.Context) error {
	a.log.InfoContext(ctx, "signalbox starts", "version", versionText(), "config", *a.config, "address", a.listener.Addr().String())
	a.outlook.outlook.Began = time.Now()
	// What an earlier life knew of a cluster may be old: say so before anything
	// is decided by it.
	if err := a.silence.Look(ctx); err != nil {
		return errors.Join(err, a.close())
	}
	if err := a.beginDigests(ctx); err != nil {
		return errors.Join(err, a.close())
	}
	a.demand.Tell()
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return a.serve(ctx) })
	group.Go(func() error { return a.serveAdmin(ctx) })
	for _, w := range a.watchers {
		group.Go(func() error { return w.Run(ctx) })
	}
	if a.hub != nil {
		group.Go(func() error { return a.hub.Run(ctx) })
	}
	group.Go(func() error { return a.demand.Run(ctx, a.wished) })
	group.Go(func() error {
		return a.silence.Run(ctx, func(err error) { a.log.ErrorContext(ctx, "heartbeats not looked at", "error", err) })
	})
	group.Go(func() error {
		return a.bus.ConsumeEvents(ctx, consumerEvents, []string{events.SubjectRoot + ".gitea.>"}, a.events.Handle)
	})
	group.Go(func() error {
		return a.bus.ConsumeEvents(ctx, consumerReconcile, []string{events.Tick{Name: handlers.ReconcileTick}.BusSubject()}, a.reconciler.Handle)
	})
	group.Go(func() error { return a.bus.Facts().Consume(ctx, consumerFacts, a.facts.Handle) })
	settled := sync.OnceFunc(func() { a.settle(ctx) })
	group.Go(func() error {
		settled()
		return a.bus.Work().Consume(ctx, a.evaluator.Handle)
	})
	a.outlook.run(ctx, group, a, settled)
	if a.chats != nil {
		a.chats.run(ctx, group, a.bus)
	}
	clock := schedule.Interval{Name: handlers.ReconcileTick, Every: a.config.Timing.Reconcile, Publish: a.bus.Publish, Log: a.log}
	group.Go(func() error { return clock.Run(ctx) })
	err := group.Wait()
	a.log.InfoContext(ctx, "signalbox stops")
	return errors.Join(err, a.close())
}

// settleTime bounds how long work waits at the start for the clusters.
const settleTime = 5 * time.Second

// settle waits until it is known what the clusters have, so that a start by
// itself changes no verdict: what is still being read is unknown, which every
// open pull request would say for a moment. A cluster that cannot be read by
// then is unknown in truth.
func (a *app) settle(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	awaitSettled(ctx, a.watchers)
	// The clusters were heard from, which the next look would tell late.
	if err := a.silence.Look(ctx); err != nil && ctx.Err() == nil {
		a.log.ErrorContext(ctx, "heartbeats not looked at", "error", err)
	}
}

// awaitSettled waits until all clusters are known, or ctx ends.
func awaitSettled(ctx context.Context, watchers []*kube.Watcher) {
	for _, w := range watchers {
		select {
		case <-w.Settled():
		case <-ctx.Done():
			return
		}
	}
}

// closeTime bounds the end of the bus.
const closeTime = 10 * time.Second

func (a *app) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeTime)
	defer cancel()
	return a.bus.Close(ctx)
}

// ensureHook registers the webhook of a repository, if signalbox is to do so. A
// token that may not is told once what a person has to do.
func (a *app) ensureHook(ctx context.Context, repo pull.Repo) error {
	hook := a.config.Gitea.Webhook
	if !hook.Manage {
		return nil
	}
	spec := gitea.HookSpec{URL: hook.Receiver(), Secret: hook.Secret}
	result, err := a.forge.EnsureHook(ctx, repo, spec)
	switch {
	case errors.Is(err, gitea.ErrForbidden), errors.Is(err, gitea.ErrNotFound):
		return fmt.Errorf("%w\nsignalbox's account does not administer %s; give it that right, or make the webhook by hand and set gitea.webhook.manage: false\n%s",
			err, repo, spec.Instructions())
	case err != nil:
		return err
	case result.Change != gitea.HookUnchanged:
		a.log.InfoContext(ctx, "webhook put right", "repo", repo.String(), "change", string(result.Change), "why", result.Why)
	}
	return nil
}

// gaps asks what protects a branch, and judges it as bot doctor does.
func (a *app) gaps(ctx context.Context, repo pull.Repo, branch string) ([]string, error) {
	p, protected, err := a.forge.Protection(ctx, repo, branch)
	if err != nil {
		return nil, err
	}
	on := doctor.Branch{
		Name:     branch,
		Contexts: []string{render.PreconditionsContext(branch), render.ApprovalContext(branch)},
	}
	if protected {
		on.Protection = &p
	}
	var gaps []string
	for _, f := range on.Judge(repo.String()) {
		if f.Severity == doctor.Problem {
			gaps = append(gaps, f.What)
		}
	}
	return gaps, nil
}

// webhookSecrets are the secrets that deliveries may be signed with.
func webhookSecrets(c *config.Config) []secret.Value {
	return []secret.Value{c.Gitea.Webhook.Secret, c.Gitea.Webhook.PreviousSecret}
}

func repositorySettings(c *config.Config) []handlers.RepositorySetting {
	out := make([]handlers.RepositorySetting, len(c.Repositories))
	for i, r := range c.Repositories {
		out[i] = handlers.RepositorySetting{Owner: r.Owner, Name: r.Name, Observe: r.Observe}
	}
	return out
}

// clusterNames are the names of all clusters.
func (c appConfig) clusterNames() []string { return append(clusterNames(c.clusters), c.agents...) }

func clusterNames(clusters []kube.Config) []string {
	names := make([]string, len(clusters))
	for i, c := range clusters {
		names[i] = c.Cluster
	}
	return names
}

func bots(c *config.Config) []pull.Person {
	out := make([]pull.Person, len(c.Bots))
	for i, login := range c.Bots {
		out[i] = pull.Person{Login: login}
	}
	return out
}

// replica names this process among others that share a bus.
func replica() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return fmt.Sprintf("%s-%d", host, os.Getpid())
}
