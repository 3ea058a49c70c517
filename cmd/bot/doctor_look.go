package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/agent"
	"signalbox/internal/bus"
	"signalbox/internal/config"
	"signalbox/internal/digest"
	"signalbox/internal/doctor"
	"signalbox/internal/gitea"
	"signalbox/internal/kube"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/yamlfile"
)

// examiner looks at an installation and hands what it sees to package doctor.
type examiner struct {
	config   *config.Config
	warnings yamlfile.Problems
	forge    *gitea.Client
	clusters []kube.Config
	// agents are the clusters that have an agent.
	agents []string
	bus    bus.Config
	// deliveryTime is how long a test delivery of a webhook is waited for.
	deliveryTime time.Duration

	// The rest is of one look.
	self   pull.Person
	pushes func(ctx context.Context, repoID int64) (uint64, error)
	people directory
}

// deliveryTime is longer than Gitea's own timeout for a delivery.
const deliveryTime = 8 * time.Second

// atOnce bounds the repositories, or clusters, in hand at a time.
const atOnce = 4

// look looks at everything. It returns what was found, and what --fix would set.
func (e *examiner) look(ctx context.Context) ([]doctor.Finding, []fix) {
	e.people = directory{forge: e.forge, users: map[string]doctor.Lookup{}, teams: map[string]doctor.Lookup{}}
	// The bus first: whether signalbox runs decides what else can be tried.
	busFindings, done := e.lookBus(ctx)
	defer done()
	findings := configurationFindings(e.warnings)
	forge, usable := e.lookForge(ctx)
	findings = append(findings, forge...)
	operator := e.operator()
	findings = append(findings, doctor.Windows("configuration", operator, time.Now())...)
	rules := []*policy.File{operator}
	follows := map[string][]follow{}
	var fixes []fix
	if usable {
		for _, r := range e.lookRepositories(ctx) {
			findings = append(findings, r.findings...)
			fixes = append(fixes, r.fixes...)
			rules = append(rules, r.rules...)
			for cluster, f := range r.follows {
				follows[cluster] = append(follows[cluster], f)
			}
		}
	}
	findings = append(findings, e.lookClusters(ctx, rules, follows)...)
	return append(findings, busFindings...), fixes
}

// operator are the rules of the configuration, or nil.
func (e *examiner) operator() *policy.File {
	if e.config.Policy == nil {
		return nil
	}
	f := e.config.Policy.File()
	return &f
}

// lookForge looks at Gitea and the token, and reports whether the repositories
// can be looked at.
func (e *examiner) lookForge(ctx context.Context) (findings []doctor.Finding, usable bool) {
	f := doctor.Forge{URL: e.config.Gitea.URL.String(), Account: doctor.Account{Needed: gitea.NeededScopes()}}
	server, err := e.forge.Server(ctx)
	switch {
	case errors.Is(err, gitea.ErrUnauthorized):
		// It refuses a bad token even where it asks for none.
		f.Account.Fault, f.Account.Refused = err.Error(), true
		return f.Judge(), false
	case err != nil:
		f.Fault = err.Error()
		return f.Judge(), false
	}
	f.Version, f.Clock = server.Version, doctor.Clock{Date: server.Date, Before: server.Before, After: server.After}
	account, err := e.forge.Account(ctx)
	a := &f.Account
	a.Login, a.Admin, a.Scopes, a.Complete = account.Login, account.Admin, account.Scopes, account.Complete
	if err != nil {
		a.Fault, a.Refused = err.Error(), errors.Is(err, gitea.ErrUnauthorized)
	}
	e.self = account.Person
	return f.Judge(), !a.Refused
}

// lookClusters looks at every cluster, for what the rules ask about.
func (e *examiner) lookClusters(ctx context.Context, rules []*policy.File, follows map[string][]follow) []doctor.Finding {
	names := e.clusterNames()
	asked, wished := doctor.Objects(names, rules...), doctor.Wishes(names, rules...)
	if c := e.config; len(c.Digests)+len(c.Alerts) > 0 {
		for _, name := range names {
			one := []string{name}
			list := doctor.AddStanding(wished[name], digest.Wishes(one, c.Watch.Checks, c.Watch.Kured), false)
			if len(c.Watch.Kured) == 0 {
				list = doctor.AddStanding(list, digest.Wishes(one, nil, digest.DefaultKured()), true)
			}
			wished[name] = doctor.AddStanding(list, digest.Wishes(one, digest.DefaultChecks(), nil), true)
		}
	}
	seen := make([]doctor.Cluster, len(e.clusters))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, c := range e.clusters {
		group.Go(func() error {
			ctx, cancel := context.WithTimeoutCause(ctx, clusterTime, fmt.Errorf("no answer in %s", clusterTime))
			defer cancel()
			seen[i] = lookCluster(ctx, c, asked[c.Cluster])
			if seen[i].Misconfigured == "" && seen[i].Fault == "" {
				lookWishes(ctx, c, wished[c.Cluster], &seen[i])
				e.lookFollowers(ctx, c, follows[c.Cluster], &seen[i])
			}
			return nil
		})
	}
	_ = group.Wait() // None of them fails.
	doctor.Elsewhere(seen)
	var findings []doctor.Finding
	for _, c := range seen {
		findings = append(findings, c.Judge()...)
	}
	return append(findings, e.lookAgents(ctx)...)
}

// clusterNames are the names of all clusters.
func (e *examiner) clusterNames() []string { return append(clusterNames(e.clusters), e.agents...) }

// lookAgents asks the agents of clusters for a sign of life.
func (e *examiner) lookAgents(ctx context.Context) (findings []doctor.Finding) {
	if len(e.agents) == 0 {
		return nil
	}
	line, err := bus.Dial(e.bus.External, "", slog.New(slog.DiscardHandler), nil)
	if err != nil {
		return nil // The bus says what is wrong with it.
	}
	defer line.Close()
	for _, cluster := range e.agents {
		a := doctor.Agent{Cluster: cluster}
		if err := agent.Answers(ctx, line, cluster); err != nil {
			a.Fault = err.Error()
		}
		findings = append(findings, a.Judge()...)
	}
	return findings
}

// clusterTime bounds a look at one cluster.
const clusterTime = 30 * time.Second

func lookCluster(ctx context.Context, c kube.Config, asked []doctor.Object) doctor.Cluster {
	out := doctor.Cluster{Name: c.Cluster, Asked: asked}
	objects := make([]kube.Object, len(asked))
	for i, o := range asked {
		objects[i] = kube.Object(o)
	}
	seen, err := kube.Inspect(ctx, c, objects)
	if err != nil {
		out.Misconfigured = err.Error()
		return out
	}
	out.Fault, out.Refused, out.Version = seen.Fault, seen.Refused, seen.Version
	out.Clock = doctor.Clock{Date: seen.Date, Before: seen.Before, After: seen.After}
	out.RightsFault = seen.RightsFault
	for _, k := range seen.Kinds {
		out.Kinds = append(out.Kinds, doctor.Kind{Name: k.Kind, Version: k.Version, Why: k.Why, Unread: k.Unread})
	}
	for _, r := range seen.Missing {
		out.Missing = append(out.Missing, r.String())
	}
	for _, r := range seen.Excess {
		out.Excess = append(out.Excess, r.String())
	}
	for _, o := range seen.Absent {
		out.Absent = append(out.Absent, doctor.Object(o))
	}
	for _, o := range seen.Unread {
		out.Unread = append(out.Unread, doctor.Object(o))
	}
	return out
}

// directory finds people and teams, each once.
type directory struct {
	forge *gitea.Client
	mu    sync.Mutex
	users map[string]doctor.Lookup
	teams map[string]doctor.Lookup
}

// user finds an account by its lower-case login.
func (d *directory) user(ctx context.Context, login string) doctor.Lookup {
	return d.find(d.users, login, func() ([]pull.Person, error) {
		p, err := d.forge.UserByName(ctx, login)
		return []pull.Person{p}, err
	})
}

// team finds the members of a team by its key, which is "organisation/team".
func (d *directory) team(ctx context.Context, org, team string) doctor.Lookup {
	return d.find(d.teams, org+"/"+team, func() ([]pull.Person, error) { return d.forge.TeamMembers(ctx, org, team) })
}

func (d *directory) find(known map[string]doctor.Lookup, key string, read func() ([]pull.Person, error)) doctor.Lookup {
	d.mu.Lock()
	l, ok := known[key]
	d.mu.Unlock()
	if ok {
		return l
	}
	people, err := read()
	switch {
	case errors.Is(err, pull.ErrNotFound):
		l.Absent = true
	case refusedBy(err):
		l.Refused = true
	case err != nil:
		l.Fault = err.Error()
	default:
		l.People = people
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	known[key] = l
	return l
}
