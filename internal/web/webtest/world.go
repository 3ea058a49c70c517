// Package webtest has stand-ins for everything that the pages are made of, all of
// them in memory: a [World] is set up by a test, and changed while pages are
// looked at. Its fields that are maps and slices are guarded by its methods; those
// that are not must be set before the pages are served.
package webtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"sync"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/overview"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
	"signalbox/internal/web"
)

// Now is the time in a world whose Clock is nil.
var Now = time.Date(2026, 9, 7, 3, 0, 0, 0, time.UTC)

// The accounts of every world.
var (
	Alice = pull.Person{ID: 1, Login: "alice"}
	Bob   = pull.Person{ID: 2, Login: "bob"}
	Carol = pull.Person{ID: 3, Login: "carol"}
	// Root is an operator.
	Root = pull.Person{ID: 9, Login: "root"}
)

// The repositories of every world.
var (
	Home   = pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}
	Apps   = pull.Repo{ID: 8, Owner: "ops", Name: "apps"}
	Secret = pull.Repo{ID: 9, Owner: "vault", Name: "private"}
)

// World is what pages show. The zero value is not ready; use [New].
type World struct {
	// Clock tells the time; nil is always [Now].
	Clock func() time.Time
	// RightsError, if set, is the answer to every question of rights.
	RightsError error
	// PeopleError, if set, is the answer to every question of accounts.
	PeopleError error

	mu        sync.Mutex
	repos     []pull.Repo
	pulls     map[pull.Ref]*policy.Standing
	facts     map[fact.Key]fact.Fact
	ledger    decision.Ledger
	reports   []digest.Report
	result    digest.Result
	trend     []digest.Sample
	health    overview.Health
	dead      []overview.DeadLetter
	rights    map[string]pull.Permission
	asked     int
	people    map[int64]pull.Person
	given     []web.Command
	giveError error
	sessions  map[string]kept
	signIns   *Sessions
	revision  uint64
	followers map[int]func(web.Change)
	next      int
}

type kept struct {
	session  web.Session
	revision uint64
}

// New makes a world with its accounts and repositories, and no pull request.
// Alice may write in ops/home-gitops and read ops/apps, Bob may read
// ops/home-gitops, Carol may read nothing. Nobody but the operator sees
// vault/private.
func New() *World {
	return &World{
		repos: []pull.Repo{Apps, Home, Secret},
		pulls: map[pull.Ref]*policy.Standing{},
		facts: map[fact.Key]fact.Fact{},
		rights: map[string]pull.Permission{
			"alice ops/home-gitops": pull.PermissionWrite,
			"alice ops/apps":        pull.PermissionRead,
			"bob ops/home-gitops":   pull.PermissionRead,
		},
		people:    map[int64]pull.Person{1: Alice, 2: Bob, 3: Carol, 9: Root},
		sessions:  map[string]kept{},
		signIns:   &Sessions{sessions: map[string]kept{}},
		followers: map[int]func(web.Change){},
	}
}

// Config is that of pages of the world at https://signalbox.example.org/.
func (w *World) Config() web.Config {
	return web.Config{
		URL:       &url.URL{Scheme: "https", Host: "signalbox.example.org", Path: "/"},
		Gitea:     &url.URL{Scheme: "https", Host: "gitea.example.org", Path: "/"},
		SignIn:    &web.SignIn{ClientID: "signalbox", Secret: secret.New("the-client-secret")},
		Operators: []string{"Root"},
		Clusters:  []string{"prod", "test"},
		Pulls:     w, Facts: w, Decisions: decisions{w}, Digests: digests{w}, Health: w, Rights: w, People: w,
		Commands: w, Changes: w, Sessions: (*Sessions)(w), SignIns: w.signIns,
		Version: "v0.0.0-test", Log: slog.New(slog.DiscardHandler), Now: w.now,
	}
}

func (w *World) now() time.Time {
	if w.Clock != nil {
		return w.Clock()
	}
	return Now
}

// locked runs f alone.
func (w *World) locked(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// SetRepositories replaces the repositories.
func (w *World) SetRepositories(repos ...pull.Repo) { w.locked(func() { w.repos = repos }) }

// SetPull adds or replaces an open pull request, and tells who follows.
func (w *World) SetPull(s policy.Standing) {
	w.locked(func() { w.pulls[s.Pull.Ref()] = &s })
	w.Changed(web.Change{Ref: s.Pull.Ref()})
}

// EndPull takes a pull request away, as when it was merged, and tells who follows.
func (w *World) EndPull(ref pull.Ref) {
	w.locked(func() { delete(w.pulls, ref) })
	w.Changed(web.Change{Ref: ref})
}

// SetFact adds or replaces a fact.
func (w *World) SetFact(f fact.Fact) { w.locked(func() { w.facts[f.Key] = f }) }

// Enter adds entries to the ledger.
func (w *World) Enter(entries ...decision.Entry) {
	w.locked(func() {
		for _, e := range entries {
			e.Seq = uint64(len(w.ledger) + 1)
			w.ledger = append(w.ledger, e)
		}
	})
}

// SetDigests replaces the reports, what is found now, and the samples.
func (w *World) SetDigests(reports []digest.Report, now digest.Result, trend []digest.Sample) {
	w.locked(func() { w.reports, w.result, w.trend = reports, now, trend })
}

// SetHealth replaces how signalbox stands, and its dead letters.
func (w *World) SetHealth(h overview.Health, dead ...overview.DeadLetter) {
	w.locked(func() { w.health, w.dead = h, dead })
}

// SetPermission says what somebody may do in a repository.
func (w *World) SetPermission(login string, repo pull.Repo, p pull.Permission) {
	w.locked(func() { w.rights[login+" "+repo.String()] = p })
}

// SetPerson renames an account, or removes it if the login is empty.
func (w *World) SetPerson(id int64, login string) {
	w.locked(func() {
		delete(w.people, id)
		if login != "" {
			w.people[id] = pull.Person{ID: id, Login: login}
		}
	})
}

// RefuseCommands makes every command fail, or none if err is nil.
func (w *World) RefuseCommands(err error) { w.locked(func() { w.giveError = err }) }

// Given returns the commands that were given.
func (w *World) Given() []web.Command {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.given)
}

// Asked returns how often it was asked for a right.
func (w *World) Asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked
}

// Followers returns how many follow what changes.
func (w *World) Followers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.followers)
}

// Changed tells those who follow.
func (w *World) Changed(c web.Change) {
	w.mu.Lock()
	followers := slices.Collect(maps.Values(w.followers))
	w.mu.Unlock()
	for _, f := range followers {
		f(c)
	}
}

// All implements [web.Pulls].
func (w *World) All() iter.Seq[policy.Standing] {
	w.mu.Lock()
	all := slices.Collect(maps.Values(w.pulls))
	w.mu.Unlock()
	return func(yield func(policy.Standing) bool) {
		for _, s := range all {
			if !yield(*s) {
				return
			}
		}
	}
}

// Get implements [web.Pulls].
func (w *World) Get(ref pull.Ref) (policy.Standing, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s, ok := w.pulls[ref]
	if !ok {
		return policy.Standing{}, false
	}
	return *s, true
}

// Readers implements [web.Pulls].
func (w *World) Readers(key fact.Key) []pull.Ref {
	w.mu.Lock()
	defer w.mu.Unlock()
	var refs []pull.Ref
	for ref, s := range w.pulls {
		if slices.Contains(s.Verdict.Reads, key) {
			refs = append(refs, ref)
		}
	}
	slices.SortFunc(refs, func(a, b pull.Ref) int {
		return cmp.Or(cmp.Compare(a.RepoID, b.RepoID), cmp.Compare(a.Number, b.Number))
	})
	return refs
}

// Repositories implements [web.Pulls].
func (w *World) Repositories() []pull.Repo {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.repos)
}

// Lookup implements [web.Facts].
func (w *World) Lookup(key fact.Key) (fact.Fact, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, ok := w.facts[key]
	return f, ok
}

// Select implements [web.Facts].
func (w *World) Select(source, scope, kind string) []fact.Fact {
	w.mu.Lock()
	defer w.mu.Unlock()
	var facts []fact.Fact
	for k, f := range w.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			facts = append(facts, f)
		}
	}
	slices.SortFunc(facts, func(a, b fact.Fact) int { return cmp.Compare(a.Key.String(), b.Key.String()) })
	return facts
}

// Health implements [web.Health].
func (w *World) Health(context.Context) overview.Health {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.health
}

// DeadLetters implements [web.Health].
func (w *World) DeadLetters(_ context.Context, limit int) ([]overview.DeadLetter, int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.dead[:min(limit, len(w.dead))]), len(w.dead), nil
}

// Retry implements [web.Health]: the letter is gone, as it is handed out again.
func (w *World) Retry(_ context.Context, id uint64) error { return w.drop(id) }

// Drop implements [web.Health].
func (w *World) Drop(_ context.Context, id uint64) error { return w.drop(id) }

func (w *World) drop(id uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	i := slices.IndexFunc(w.dead, func(d overview.DeadLetter) bool { return d.ID == id })
	if i < 0 {
		return fmt.Errorf("dead letter %d: %w", id, web.ErrNoDeadLetter)
	}
	w.dead = slices.Delete(w.dead, i, i+1)
	return nil
}

// Permission implements [web.Rights].
func (w *World) Permission(_ context.Context, repo pull.Repo, login string) (pull.Permission, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if w.RightsError != nil {
		return "", w.RightsError
	}
	return cmp.Or(w.rights[login+" "+repo.String()], pull.PermissionNone), nil
}

// ByID implements [web.People].
func (w *World) ByID(_ context.Context, id int64) (pull.Person, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.PeopleError != nil {
		return pull.Person{}, w.PeopleError
	}
	p, ok := w.people[id]
	if !ok {
		return pull.Person{}, fmt.Errorf("account %d: %w", id, pull.ErrNotFound)
	}
	return p, nil
}

// Give implements [web.Commands].
func (w *World) Give(_ context.Context, c web.Command) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.giveError != nil {
		return w.giveError
	}
	w.given = append(w.given, c)
	return nil
}

// Follow implements [web.Changes].
func (w *World) Follow(f func(web.Change)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.next++
	id := w.next
	w.followers[id] = f
	return func() { w.locked(func() { delete(w.followers, id) }) }
}

// decisions is the ledger of a world.
type decisions struct{ w *World }

func (d decisions) All() decision.Ledger {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return slices.Clone(d.w.ledger)
}

func (d decisions) Entries(ref pull.Ref) decision.Ledger { return d.All().Of(ref) }

// digests are the reports of a world.
type digests struct{ w *World }

func (d digests) Reports() []digest.Report {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return slices.Clone(d.w.reports)
}

func (d digests) Now() digest.Result {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return d.w.result
}

func (d digests) Trend() []digest.Sample {
	d.w.mu.Lock()
	defer d.w.mu.Unlock()
	return slices.Clone(d.w.trend)
}

// SignIns are those that are under way.
func (w *World) SignIns() *Sessions { return w.signIns }

// Sessions are those of a world.
type Sessions World

// ErrRevision is of a session that was changed meanwhile.
var ErrRevision = errors.New("wrong revision")

// Get implements [web.Sessions].
func (s *Sessions) Get(key string) (web.Session, uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k, ok := s.sessions[key]
	return k.session, k.revision, ok
}

// Put implements [web.Sessions].
func (s *Sessions) Put(_ context.Context, key string, session web.Session, revision uint64) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[key].revision != revision {
		return 0, fmt.Errorf("keep session: %w", ErrRevision)
	}
	s.revision++
	s.sessions[key] = kept{session, s.revision}
	return s.revision, nil
}

// Delete implements [web.Sessions].
func (s *Sessions) Delete(_ context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, key)
	return nil
}

// Sync implements [web.Sessions].
func (s *Sessions) Sync(context.Context) error { return nil }

// Keys returns what sessions are kept under, sorted.
func (s *Sessions) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.sessions))
}
