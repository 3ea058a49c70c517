package handlers_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/handlers"
	"signalbox/internal/pull"
)

// factStore holds facts in memory.
type factStore struct {
	mu     sync.Mutex
	facts  map[fact.Key]fact.Fact
	writes int
}

func (s *factStore) Lookup(k fact.Key) (fact.Fact, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, ok := s.facts[k]
	return f, ok
}

func (s *factStore) Put(_ context.Context, f fact.Fact) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.facts == nil {
		s.facts = map[fact.Key]fact.Fact{}
	}
	if old, ok := s.facts[f.Key]; ok && (f.Same(old) || !f.Newer(old)) {
		return false, nil
	}
	s.writes++
	s.facts[f.Key] = f
	return true, nil
}

func (s *factStore) Select(source, scope, kind string) []fact.Fact {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []fact.Fact
	for k, f := range s.facts {
		if k.Source == source && k.Scope == scope && k.Kind == kind {
			out = append(out, f)
		}
	}
	return out
}

func (s *factStore) Delete(_ context.Context, k fact.Key) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.facts, k)
	return nil
}

func (*factStore) Sync(context.Context) error { return nil }

// forgeReader answers with what it is told, and notes what it is asked.
type forgeReader struct {
	handlers.ForgeReader
	mu     sync.Mutex
	asked  []string
	err    error
	state  string
	before []*fact.Renovate
	// hold keeps an answer back until it is closed.
	hold chan struct{}
}

func (r *forgeReader) CommitStatuses(_ context.Context, repo pull.Repo, commit string) (fact.Statuses, error) {
	r.mu.Lock()
	r.asked = append(r.asked, fmt.Sprintf("statuses of %s in %s", commit, repo))
	err, state, hold := r.err, r.state, r.hold
	r.mu.Unlock()
	if hold != nil {
		<-hold
	}
	return fact.Statuses{Statuses: []fact.Status{{Context: "ci", State: state}}}, err
}

func (r *forgeReader) WorkflowRuns(_ context.Context, _ pull.Repo, workflow, commit string) (fact.Runs, error) {
	r.asked = append(r.asked, fmt.Sprintf("runs of %s on %q", workflow, commit))
	return fact.Runs{}, r.err
}

func (r *forgeReader) PullFact(_ context.Context, owner, name string, number int64) (fact.Pull, error) {
	r.asked = append(r.asked, fmt.Sprintf("%s/%s#%d", owner, name, number))
	return fact.Pull{}, r.err
}

func (r *forgeReader) RenovateOf(_ context.Context, _ pull.Repo, main, workflow string, accounts []string, before *fact.Renovate) (fact.Renovate, error) {
	r.asked = append(r.asked, fmt.Sprintf("renovate in %s of %s by %v", workflow, main, accounts))
	r.before = append(r.before, before)
	return fact.Renovate{Last: &fact.RenovateRun{ID: "1"}}, r.err
}

func (r *forgeReader) ActionsOf(context.Context, pull.Repo) (fact.Actions, error) {
	r.asked = append(r.asked, "actions")
	return fact.Actions{}, r.err
}

// pass lets time pass within a bubble of synctest.
func pass(d time.Duration) { <-time.After(d) }

// oneRepo has one repository.
type oneRepo struct{}

func (oneRepo) Repo(context.Context, string, string) (pull.Repo, string, error) {
	return pull.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, "main", nil
}

func (oneRepo) RepoByID(ctx context.Context, _ int64) (pull.Repo, string, error) {
	return oneRepo{}.Repo(ctx, "", "")
}

func newForgeFacts(r *forgeReader, s *factStore) *handlers.ForgeFacts {
	return &handlers.ForgeFacts{
		Forge: r, Facts: s, Every: 5 * time.Minute, Now: time.Now, RenovateAccounts: []string{"renovate"}, Log: slog.New(slog.DiscardHandler),
		Repositories: handlers.NewRepositories(oneRepo{}, []handlers.RepositorySetting{{Owner: "ops", Name: "home-gitops"}}),
	}
}

func TestForgeFactsAreReadWhereTheyAre(t *testing.T) {
	r, s := &forgeReader{}, &factStore{}
	f := newForgeFacts(r, s)
	keys := []fact.Key{
		fact.StatusesKey(7, "abc"), fact.RunsKey(7, "ci.yaml", "abc"), fact.RunsKey(7, "ci.yaml", "refs/heads/main"),
		fact.ActionsKey(7), fact.PullKey("Ops", "Home-Gitops", 3), fact.RenovateKey(7, "renovate.yaml"),
	}
	for _, k := range keys {
		if err := f.Read(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if v, ok := s.Lookup(k); !ok || v.Problem != "" || v.Since.IsZero() || v.SeenAt.IsZero() {
			t.Errorf("%s is held as %+v", k, v)
		}
	}
	if err := f.Read(t.Context(), keys[5]); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"statuses of abc in ops/home-gitops", `runs of ci.yaml on "abc"`, `runs of ci.yaml@refs/heads/main on ""`, "actions", "ops/home-gitops#3",
		"renovate in renovate.yaml of main by [renovate]", "renovate in renovate.yaml of main by [renovate]",
	}
	if diff := cmp.Diff(want, r.asked); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.before[0] != nil || r.before[1] == nil || r.before[1].Last.ID != "1" {
		t.Errorf("what was known before is %+v", r.before)
	}
	asked := len(r.asked)
	for _, k := range []fact.Key{fact.StatusesKey(8, "abc"), fact.PullKey("boss", "private", 1)} {
		if err := f.Read(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		if v, _ := s.Lookup(k); v.Problem == "" || len(r.asked) != asked {
			t.Errorf("%s was read of a repository that is not configured", k)
		}
	}
}

func TestForgeFactsSayWhatCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &forgeReader{state: "success"}, &factStore{}
		f := newForgeFacts(r, s)
		k := fact.StatusesKey(7, "abc")
		read := func() fact.Fact {
			t.Helper()
			if err := f.Read(t.Context(), k); err != nil {
				t.Fatal(err)
			}
			v, _ := s.Lookup(k)
			return v
		}
		good := read()
		if again := read(); s.writes != 1 || !again.Since.Equal(good.Since) {
			t.Errorf("%d writes of one truth", s.writes)
		}
		pass(time.Minute)
		r.err = fmt.Errorf("%w: no such scope", pull.ErrForbidden)
		bad := read()
		if bad.Problem == "" || bad.Statuses == nil || !bad.Since.After(good.Since) {
			t.Errorf("held is %+v", bad)
		}
		pass(time.Minute)
		r.err = pull.ErrNotFound
		if worse := read(); worse.Problem == bad.Problem || !worse.Since.Equal(bad.Since) {
			t.Errorf("a problem that goes on began at %v, not %v", worse.Since, bad.Since)
		}
		pass(time.Minute)
		r.err = nil
		if well := read(); well.Problem != "" || !well.Since.After(bad.Since) {
			t.Errorf("held is %+v", well)
		}
	})
}

func TestForgeFactsThatFailTooLongAreUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &forgeReader{state: "success"}, &factStore{}
		f := newForgeFacts(r, s)
		k := fact.StatusesKey(7, "abc")
		if began, err := f.Collect(t.Context(), []fact.Key{k}); err != nil || len(began) != 1 {
			t.Fatal(began, err)
		}
		r.err = errors.New("502 Bad Gateway")
		if began, err := f.Collect(t.Context(), []fact.Key{k}); err != nil || len(began) != 0 {
			t.Errorf("what is current was read again: %v, %v", began, err)
		}
		problem := func() string {
			if err := f.Refresh(t.Context(), []fact.Key{k}); err != nil {
				t.Errorf("one fact that cannot be read fails all: %v", err)
			}
			v, _ := s.Lookup(k)
			return v.Problem
		}
		pass(5 * time.Minute)
		if p := problem(); p != "" {
			t.Errorf("one failure makes it unknown: %s", p)
		}
		pass(5 * time.Minute)
		if p := problem(); p == "" {
			t.Error("it is held for true after ten minutes of failures")
		}
		if _, err := f.Collect(t.Context(), []fact.Key{fact.StatusesKey(7, "def")}); err == nil {
			t.Error("a first reading that failed is no error")
		}
	})
}

// TestManyReadingsAreTwo: whoever asks while a reading is under way gets the
// next one, and all who ask meanwhile share it.
func TestManyReadingsAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &forgeReader{state: "pending", hold: make(chan struct{})}, &factStore{}
		f := newForgeFacts(r, s)
		k := fact.StatusesKey(7, "abc")
		var done sync.WaitGroup
		ask := func() {
			done.Go(func() {
				if err := f.Read(t.Context(), k); err != nil {
					t.Error(err)
				}
			})
		}
		ask()
		synctest.Wait()
		for range 50 {
			ask()
		}
		synctest.Wait()
		r.mu.Lock()
		r.state = "success"
		hold := r.hold
		r.hold = nil
		r.mu.Unlock()
		close(hold)
		done.Wait()
		if len(r.asked) != 2 {
			t.Errorf("it was read %d times, want 2", len(r.asked))
		}
		if v, _ := s.Lookup(k); v.Statuses.Statuses[0].State != "success" {
			t.Errorf("held is %+v", v.Statuses)
		}
	})
}

func TestForgeFactsThatNobodyWishesForAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &factStore{}
		f := newForgeFacts(&forgeReader{}, s)
		kept, dropped, fresh := fact.StatusesKey(7, "a"), fact.StatusesKey(7, "b"), fact.StatusesKey(7, "c")
		protection := fact.ProtectionKey(7, "main")
		for _, k := range []fact.Key{kept, dropped, protection} {
			_, _ = s.Put(t.Context(), fact.Fact{Key: k, SeenAt: time.Now()})
		}
		pass(time.Hour)
		_, _ = s.Put(t.Context(), fact.Fact{Key: fresh, SeenAt: time.Now()})
		if err := f.Drop(t.Context(), func(k fact.Key) bool { return k == kept }); err != nil {
			t.Fatal(err)
		}
		var left []fact.Key
		for k := range s.facts {
			left = append(left, k)
		}
		for _, k := range []fact.Key{kept, fresh, protection} {
			if !slices.Contains(left, k) {
				t.Errorf("%s was dropped", k)
			}
		}
		if slices.Contains(left, dropped) {
			t.Error("what nobody wishes for is held")
		}
	})
}

// TestSlowReplica: a reading that another replica overtook is made again, and
// puts no old value back.
func TestSlowReplica(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, k := &factStore{}, fact.StatusesKey(7, "abc")
		slow := &forgeReader{state: "success", hold: make(chan struct{})}
		quick := newForgeFacts(&forgeReader{state: "failure"}, s)
		done := make(chan error, 1)
		go func() { done <- newForgeFacts(slow, s).Read(t.Context(), k) }()
		synctest.Wait()
		pass(time.Second)
		if err := quick.Read(t.Context(), k); err != nil {
			t.Fatal(err)
		}
		slow.mu.Lock()
		hold := slow.hold
		slow.hold, slow.state = nil, "failure"
		slow.mu.Unlock()
		close(hold)
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if v, _ := s.Lookup(k); v.Statuses.Statuses[0].State != "failure" {
			t.Errorf("held is %+v", v.Statuses)
		}
	})
}

// TestReadingOutlivesItsCaller: one that is gone, or that panics, keeps nobody
// else from it.
func TestReadingOutlivesItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, s := &forgeReader{state: "success", hold: make(chan struct{})}, &factStore{}
		f, k := newForgeFacts(r, s), fact.StatusesKey(7, "abc")
		ctx, cancel := context.WithCancel(t.Context())
		first, second := make(chan error, 1), make(chan error, 1)
		go func() { first <- f.Read(ctx, k) }()
		synctest.Wait()
		go func() { second <- f.Read(t.Context(), k) }()
		synctest.Wait()
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) {
			t.Errorf("the first caller got %v", err)
		}
		close(r.hold)
		if err := <-second; err != nil {
			t.Errorf("the second caller got %v", err)
		}
	})
	f := newForgeFacts(nil, &factStore{})
	f.Forge = nil
	for range 2 {
		if err := f.Read(t.Context(), fact.ActionsKey(7)); err == nil {
			t.Error("a panic is no error")
		}
	}
}

// TestWebhookBeforeTheVerdictIsStored: what is held is read again, whether a
// stored verdict wishes for it or not.
func TestWebhookBeforeTheVerdictIsStored(t *testing.T) {
	r, s := &forgeReader{state: "success"}, &factStore{}
	f, k := newForgeFacts(r, s), fact.StatusesKey(7, "abc")
	h := &handlers.Events{Records: records{}, Index: handlers.NewIndex(), Forge: f, Account: handlers.NewAccount(self{}), Log: slog.New(slog.DiscardHandler)}
	if _, err := f.Collect(t.Context(), []fact.Key{k}); err != nil {
		t.Fatal(err)
	}
	r.state = "failure"
	e, err := events.New("1", "gitea", time.Now(), events.StatusPosted{Repo: events.Repo{ID: 7, Owner: "ops", Name: "home-gitops"}, SHA: "abc", Context: "ci", State: "failure"})
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Handle(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	if v, _ := s.Lookup(k); v.Statuses.Statuses[0].State != "failure" {
		t.Errorf("held is %+v", v.Statuses)
	}
}
