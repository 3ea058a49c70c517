package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"signalbox/internal/api"
	"signalbox/internal/bus"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
	"signalbox/internal/web"
)

// bucketSessions holds who signed in to the pages, and bucketSignIns who is about to.
const (
	bucketSessions = "sessions"
	bucketSignIns  = "sign-ins"
)

// sessionsKept is longer than any session lasts, and signInsKept than any sign-in takes;
// not much longer, since anybody can begin one.
const (
	sessionsKept = 24 * time.Hour
	signInsKept  = web.SignInTime + time.Minute
)

// pages are the pages of signalbox and its API; either may be nil.
type pages struct {
	web, api http.Handler
	// end ends what browsers hear, so that the server can end.
	end func()
}

// wirePages makes the pages, if they have an address, and the API, if it has a token.
func (a *app) wirePages(ctx context.Context, records *bus.Bucket[handlers.Record], index *handlers.Index, repositories *handlers.Repositories) error {
	c := a.config.Web
	pulls := standings{records, index, repositories}
	if !c.APIToken.Empty() {
		var err error
		if a.pages.api, err = api.New(api.Config{
			Tokens: []secret.Value{c.APIToken}, URL: cmp.Or(c.URL, a.config.Gitea.Webhook.URL), Clusters: a.clusterNames(),
			Pulls: pulls, Facts: a.bus.Facts(), Decisions: a.ledger, Digests: reports{&a.outlook}, Health: health{a},
			Version: versionText(), Log: a.log, Now: time.Now,
		}); err != nil {
			return fmt.Errorf("make the API: %w", err)
		}
	}
	if c.URL == nil {
		return nil
	}
	sessions, err := bus.OpenBriefBucket[web.Session](ctx, a.bus, bucketSessions, sessionsKept)
	if err != nil {
		return err
	}
	signIns, err := bus.OpenBriefBucket[web.Session](ctx, a.bus, bucketSignIns, signInsKept)
	if err != nil {
		return err
	}
	var signIn *web.SignIn
	if c.ClientID != "" {
		signIn = &web.SignIn{ClientID: c.ClientID, Secret: c.Secret}
	}
	given := &handlers.Pages{
		Requests: a.talk.requests, Records: records, Repositories: repositories, Queue: a.bus.Work(), Address: a.pullPage, Now: time.Now,
	}
	server, err := web.New(web.Config{
		URL: c.URL, Gitea: a.config.Gitea.URL, SignIn: signIn, Public: c.Public, Operators: c.Operators, Clusters: a.clusterNames(),
		Pulls: pulls, Facts: a.bus.Facts(), Decisions: a.ledger,
		Digests: reports{&a.outlook}, Health: health{a}, Rights: a.forge, People: a.talk.directory.People,
		Commands: commands{given}, Changes: a.live, Sessions: sessions, SignIns: signIns, Version: versionText(), Log: a.log, Now: time.Now,
	})
	if err != nil {
		return fmt.Errorf("make the pages: %w", err)
	}
	a.pages.web, a.pages.end = server.Handler(), server.Close
	return nil
}

// route adds them to the server.
func (p pages) route(mux *http.ServeMux) {
	if p.api != nil {
		mux.Handle("/api/", p.api)
	}
	if p.web != nil {
		mux.Handle("/", p.web)
	}
}

// address returns the address of a page, or "" where there are no pages.
func (a *app) address(path ...string) string {
	if a.config.Web.URL == nil {
		return ""
	}
	return a.config.Web.URL.JoinPath(path...).String()
}

// pullPage returns where a pull request can be read about, or "".
func (a *app) pullPage(p pull.Pull) string {
	if a.config.Web.URL == nil {
		return ""
	}
	return web.PullURL(a.config.Web.URL, p.Repo, p.Number)
}

// reportPage returns where the report of a digest can be read, or "". One that was made
// for whoever asked is kept nowhere: what is so now stands on a page of its own.
func (a *app) reportPage(r *digest.Report) string {
	if kept, _, ok := a.outlook.digests.Reports.Get(handlers.ReportKey(r.Name, r.Scheduled)); !ok || !kept.Made.Equal(r.Made) {
		return a.address("digests", "now")
	}
	return a.address("digests", r.Name, r.Scheduled.UTC().Format(time.RFC3339))
}

// standings are the pull requests, for pages and the API.
type standings struct {
	records      *bus.Bucket[handlers.Record]
	index        *handlers.Index
	repositories *handlers.Repositories
}

// All implements [web.Pulls].
func (s standings) All() iter.Seq[policy.Standing] {
	return func(yield func(policy.Standing) bool) {
		for _, r := range s.records.All() {
			if standing, ok := s.standing(&r); ok && !yield(standing) {
				return
			}
		}
	}
}

// Get implements [web.Pulls].
func (s standings) Get(ref pull.Ref) (policy.Standing, bool) {
	r, _, ok := s.records.Get(ref.String())
	if !ok {
		return policy.Standing{}, false
	}
	return s.standing(&r)
}

// standing leaves out what was not read yet.
func (s standings) standing(r *handlers.Record) (policy.Standing, bool) {
	out := handlers.StandingOf(r)
	out.Observed = s.repositories.Observed(out.Pull.Repo.ID)
	return out, out.Pull.Number != 0
}

// Readers implements [web.Pulls].
func (s standings) Readers(key fact.Key) []pull.Ref { return s.index.Readers(key) }

// Repositories implements [web.Pulls].
func (s standings) Repositories() []pull.Repo { return s.repositories.Known() }

// reports are the digests, for pages and the API.
type reports struct{ *outlook }

// Reports implements [web.Digests].
func (r reports) Reports() []digest.Report {
	var out []digest.Report
	for _, report := range r.digests.Reports.All() {
		out = append(out, report)
	}
	slices.SortFunc(out, func(a, b digest.Report) int { return b.Scheduled.Compare(a.Scheduled) })
	return out
}

// lookTime bounds a look for a page.
const lookTime = 5 * time.Second

// looked is what was last found for pages, which many may ask for at once.
type looked struct {
	mu    sync.Mutex
	at    time.Time
	found digest.Result
}

// lookAge is how old what a page shows may be.
const lookAge = 2 * time.Second

// Now implements [web.Digests].
func (r reports) Now() digest.Result {
	r.looked.mu.Lock()
	defer r.looked.mu.Unlock()
	if time.Since(r.looked.at) > lookAge {
		r.looked.found, r.looked.at = r.look(), time.Now()
		r.looked.found.Blind = r.looked.found.Told()
	}
	return r.looked.found
}

// look finds how things stand. While the bus is away nothing can be known.
func (r reports) look() digest.Result {
	ctx, cancel := context.WithTimeout(context.Background(), lookTime)
	defer cancel()
	found, err := r.outlook.outlook.Look(ctx, handlers.About{Sections: digest.Sections()}, time.Time{})
	if err != nil {
		for _, s := range digest.Sections() {
			found.Blind = append(found.Blind, digest.Blind{Section: s, Why: "signalbox cannot look at what it keeps: " + err.Error()})
		}
	}
	return found
}

// Trend implements [web.Digests].
func (r reports) Trend() []digest.Sample { return r.samples.Held(time.Now()) }

// commands hands what is said on a page on.
type commands struct{ pages *handlers.Pages }

// Give implements [web.Commands].
func (c commands) Give(ctx context.Context, cmd web.Command) error {
	return c.pages.Give(ctx, cmd.Cause, cmd.By, cmd.Ref, cmd.Line, cmd.Head)
}

// health is how signalbox itself stands.
type health struct{ *app }

// Health implements [web.Health].
func (h health) Health(ctx context.Context) overview.Health {
	out := overview.Health{Version: versionText(), Started: h.started, Parts: h.parts(ctx)}
	lags, err := h.bus.Reader().Lags(ctx)
	if err != nil {
		h.log.WarnContext(ctx, "lag not known", "error", err)
	}
	for _, l := range lags {
		out.Lag = append(out.Lag, overview.Lag{Consumer: l.Stream + " " + l.Consumer, Waiting: l.Waiting, InHand: l.InHand, Again: l.Again})
	}
	if out.DeadLetters, err = h.bus.Dead().Count(ctx); err != nil {
		h.log.WarnContext(ctx, "dead letters not counted", "error", err)
	}
	return out
}

// parts are the parts of signalbox and what it depends on.
func (h health) parts(ctx context.Context) []overview.Part {
	bus := overview.Part{Name: "Bus", State: overview.OK}
	if err := h.bus.Health(ctx); err != nil {
		bus.State, bus.Detail = overview.Failing, err.Error()
	}
	parts := []overview.Part{bus, h.gitea(ctx)}
	for _, cluster := range h.clusterNames() {
		parts = append(parts, h.cluster(cluster))
	}
	if h.chats == nil {
		return parts
	}
	for platform, made := range h.chats.adapters {
		p := overview.Part{Name: string(platform), State: overview.OK}
		if why := made.Trouble(); why != "" {
			p.State, p.Detail = overview.Failing, why
		}
		parts = append(parts, p)
	}
	slices.SortStableFunc(parts[2+len(h.clusterNames()):], func(a, b overview.Part) int { return strings.Compare(a.Name, b.Name) })
	return parts
}

// gitea asks Gitea for its version, which costs it nothing.
func (h health) gitea(ctx context.Context) overview.Part {
	p := overview.Part{Name: "Gitea", State: overview.OK}
	ctx, cancel := context.WithTimeout(ctx, healthTime)
	defer cancel()
	if version, err := h.forge.Version(ctx); err != nil {
		p.State, p.Detail = overview.Failing, err.Error()
	} else {
		p.Detail = "version " + version
	}
	return p
}

// cluster tells whether a cluster is heard from, and which of its kinds are not read.
func (h health) cluster(name string) overview.Part {
	p := overview.Part{Name: "Cluster " + name, State: overview.Unknown, Detail: "was not heard from yet"}
	beat, ok := h.bus.Facts().Lookup(fact.HeartbeatKey(name))
	if !ok || beat.Heartbeat == nil {
		return p
	}
	p.Since = beat.Since
	if beat.Heartbeat.Silent {
		p.State, p.Detail = overview.Failing, "is silent"
		return p
	}
	p.State, p.Detail = overview.OK, ""
	of, ok := h.bus.Facts().Lookup(fact.ClusterKey(name))
	if !ok || of.Cluster == nil {
		return p
	}
	var kinds []string
	for kind, w := range of.Cluster.Kinds {
		if w.State == fact.WatchFailing {
			kinds = append(kinds, kind)
		}
	}
	if len(kinds) > 0 {
		slices.Sort(kinds)
		p.State, p.Detail = overview.Failing, "cannot read "+strings.Join(kinds, ", ")+": "+of.Cluster.Kinds[kinds[0]].Message
	}
	return p
}

// DeadLetters implements [web.Health].
func (h health) DeadLetters(ctx context.Context, limit int) ([]overview.DeadLetter, int, error) {
	newest, total, err := h.bus.Reader().DeadLetters(ctx, limit)
	var out []overview.DeadLetter
	for _, d := range newest {
		out = append(out, overview.DeadLetter{
			ID: d.ID, At: d.Time, Stream: d.Stream, Subject: d.Subject, Consumer: d.Consumer, Reason: d.Reason, Deliveries: d.Deliveries,
		})
	}
	return out, total, err
}

// Retry implements [web.Health].
func (h health) Retry(ctx context.Context, id uint64) error {
	return deadLetter(h.bus.Dead().Retry(ctx, id))
}

// Drop implements [web.Health].
func (h health) Drop(ctx context.Context, id uint64) error {
	return deadLetter(h.bus.Dead().Drop(ctx, id))
}

func deadLetter(err error) error {
	if errors.Is(err, bus.ErrNoDeadLetter) {
		return fmt.Errorf("%w: %w", web.ErrNoDeadLetter, err)
	}
	return err
}
