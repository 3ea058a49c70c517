package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// ForgeReader reads what facts of the forge say. Each method may make several
// calls; [pull.ErrNotFound] and [pull.ErrForbidden] are lasting, other errors
// pass.
type ForgeReader interface {
	CommitStatuses(ctx context.Context, repo pull.Repo, commit string) (fact.Statuses, error)
	// WorkflowRuns returns the newest runs of a workflow: on a commit, or without
	// one of a workflow that is named with its branch, "ci.yaml@refs/heads/main".
	WorkflowRuns(ctx context.Context, repo pull.Repo, workflow, commit string) (fact.Runs, error)
	ActionsOf(ctx context.Context, repo pull.Repo) (fact.Actions, error)
	PullFact(ctx context.Context, owner, name string, number int64) (fact.Pull, error)
	// RenovateOf needs what it said before, or nil, so that no log is read twice.
	RenovateOf(ctx context.Context, repo pull.Repo, main, workflow string, accounts []string, before *fact.Renovate) (fact.Renovate, error)
}

// FactStore keeps facts.
type FactStore interface {
	FactWriter
	Select(source, scope, kind string) []fact.Fact
	Delete(ctx context.Context, key fact.Key) error
}

// ForgeFacts collects the facts that are wished of the forge: each is read when
// it is first wished, when a webhook says that it may have changed, and by the
// clock.
type ForgeFacts struct {
	Forge        ForgeReader
	Repositories *Repositories
	Facts        FactStore
	// RenovateAccounts are logins of which one is Renovate's: an issue of somebody
	// else is no dependency dashboard.
	RenovateAccounts []string
	// Every is the time between two readings by the clock.
	Every time.Duration
	Now   func() time.Time

	mu sync.Mutex
	// reading holds the readings that are under way.
	reading map[fact.Key]*reading
	// read is when a fact was last read, by this process.
	read map[fact.Key]time.Time
}

// reading is one reading of a fact. Who asks while it is under way gets the
// next one, which all share who asked meanwhile.
type reading struct {
	done chan struct{}
	err  error
	next *reading
}

// atOnce is how many facts are read at the same time.
const atOnce = 4

// Collect reads those of the facts that are not known to be kept up to date, and
// returns their keys.
func (f *ForgeFacts) Collect(ctx context.Context, keys []fact.Key) (read []fact.Key, err error) {
	for _, k := range keys {
		if !f.current(k) {
			read = append(read, k)
		}
	}
	if len(read) == 0 {
		return nil, nil
	}
	return read, f.each(ctx, read, f.Read)
}

// current reports whether a fact is held that was read not long ago, so that
// the clock or a webhook has kept it true since.
func (f *ForgeFacts) current(k fact.Key) bool {
	held, ok := f.Facts.Lookup(k)
	if !ok {
		return false
	}
	f.mu.Lock()
	at := f.read[k]
	f.mu.Unlock()
	if held.SeenAt.After(at) {
		at = held.SeenAt
	}
	return f.Now().Sub(at) < 2*f.Every
}

func (f *ForgeFacts) each(ctx context.Context, keys []fact.Key, do func(context.Context, fact.Key) error) error {
	errs := make([]error, len(keys))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, k := range keys {
		group.Go(func() error {
			errs[i] = do(ctx, k)
			return nil
		})
	}
	_ = group.Wait() // Nothing above gives an error: all are read, also after one that failed.
	return errors.Join(errs...)
}

// Refresh reads facts again. One that cannot be read for longer than a while is
// unknown from then on.
func (f *ForgeFacts) Refresh(ctx context.Context, keys []fact.Key) error {
	return f.each(ctx, keys, func(ctx context.Context, k fact.Key) error {
		err := f.Read(ctx, k)
		if err == nil || ctx.Err() != nil || f.current(k) {
			return err
		}
		return errors.Join(err, f.put(ctx, fact.Fact{Key: k, Problem: err.Error()}))
	})
}

// Read reads a fact now and keeps it. Many calls at once for one fact make at
// most two readings, and each returns after one that began later than the call.
func (f *ForgeFacts) Read(ctx context.Context, k fact.Key) error {
	f.mu.Lock()
	if f.reading == nil {
		f.reading, f.read = map[fact.Key]*reading{}, map[fact.Key]time.Time{}
	}
	now, busy := f.reading[k]
	if !busy {
		now = &reading{done: make(chan struct{})}
		f.reading[k] = now
		f.mu.Unlock()
		f.carryOut(ctx, k, now)
		return now.err
	}
	mine := now.next == nil
	if mine {
		now.next = &reading{done: make(chan struct{})}
	}
	next := now.next
	f.mu.Unlock()
	if !mine {
		return await(ctx, next)
	}
	// The one under way ends within the time limits of its calls.
	<-now.done
	f.carryOut(ctx, k, next)
	return next.err
}

func await(ctx context.Context, r *reading) error {
	select {
	case <-r.done:
		return r.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *ForgeFacts) carryOut(ctx context.Context, k fact.Key, r *reading) {
	r.err = f.readNow(ctx, k)
	f.mu.Lock()
	if r.next != nil {
		f.reading[k] = r.next
	} else {
		delete(f.reading, k)
	}
	if r.err == nil {
		f.read[k] = f.Now()
	}
	f.mu.Unlock()
	close(r.done)
}

// readNow reads a fact from the forge and puts it where facts are.
func (f *ForgeFacts) readNow(ctx context.Context, k fact.Key) error {
	v := fact.Fact{Key: k}
	err := f.value(ctx, &v)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		v.Problem = "Gitea has none, or signalbox's account may not see it"
	case errors.Is(err, pull.ErrForbidden):
		v.Problem = "signalbox's account may not read it: " + err.Error()
	case err != nil:
		return fmt.Errorf("read %s %s: %w", k.Kind, k.Object(), err)
	}
	return f.put(ctx, v)
}

// value reads the value of a fact.
func (f *ForgeFacts) value(ctx context.Context, v *fact.Fact) error {
	k := v.Key
	if k.Kind == fact.KindPull {
		owner, name, _ := strings.Cut(k.Namespace, "/")
		number, err := strconv.ParseInt(k.Name, 10, 64)
		if err != nil {
			return fmt.Errorf("fact %s: %w", k, err)
		}
		return set(&v.Pull)(f.Forge.PullFact(ctx, owner, name, number))
	}
	id, err := strconv.ParseInt(k.Namespace, 10, 64)
	if err != nil {
		return fmt.Errorf("fact %s: %w", k, err)
	}
	repo, _, ok, err := f.Repositories.Find(ctx, id)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("repository %d: %w", id, pull.ErrNotFound)
	}
	switch k.Kind {
	case fact.KindStatuses:
		return set(&v.Statuses)(f.Forge.CommitStatuses(ctx, repo, k.Name))
	case fact.KindRuns:
		workflow, commit, _ := strings.Cut(k.Name, "@")
		if strings.HasPrefix(commit, "refs/") {
			workflow, commit = k.Name, ""
		}
		return set(&v.Runs)(f.Forge.WorkflowRuns(ctx, repo, workflow, commit))
	case fact.KindActions:
		return set(&v.Actions)(f.Forge.ActionsOf(ctx, repo))
	case fact.KindRenovate:
		var before *fact.Renovate
		if held, ok := f.Facts.Lookup(k); ok {
			before = held.Renovate
		}
		main := f.Repositories.Main(id)
		return set(&v.Renovate)(f.Forge.RenovateOf(ctx, repo, main, k.Name, f.RenovateAccounts, before))
	default:
		return fmt.Errorf("fact %s: nothing collects this kind", k)
	}
}

func set[T any](to **T) func(T, error) error {
	return func(v T, err error) error {
		if err == nil {
			*to = &v
		}
		return err
	}
}

// put keeps a fact that was read now. A problem keeps what was known before it,
// and the time at which it began.
func (f *ForgeFacts) put(ctx context.Context, v fact.Fact) error {
	if err := f.Facts.Sync(ctx); err != nil {
		return err
	}
	now := f.Now().UTC()
	held, ok := f.Facts.Lookup(v.Key)
	if v.Problem != "" && ok {
		problem := v.Problem
		v = held
		v.Problem = problem
	}
	v.Since, v.SeenAt = now, now
	if ok {
		v.Since = held.Since
		if v.Same(held) {
			return nil
		}
		if v.Problem == "" || held.Problem == "" {
			v.Since = now
		}
	}
	if _, err := f.Facts.Put(ctx, v); err != nil {
		return fmt.Errorf("keep %s %s: %w", v.Key.Kind, v.Key.Object(), err)
	}
	return nil
}

// onDemand are the kinds that are collected on demand.
var onDemand = []string{fact.KindStatuses, fact.KindRuns, fact.KindActions, fact.KindPull, fact.KindRenovate}

// Drop removes the facts that nobody wishes for: they are not kept true any
// more. What was read a moment ago may be of a verdict that is not stored yet.
func (f *ForgeFacts) Drop(ctx context.Context, wished func(fact.Key) bool) error {
	var errs []error
	for _, kind := range onDemand {
		for _, held := range f.Facts.Select(fact.SourceGitea, "", kind) {
			if wished(held.Key) || f.Now().Sub(held.SeenAt) < unstored {
				continue
			}
			errs = append(errs, f.Facts.Delete(ctx, held.Key))
			f.mu.Lock()
			delete(f.read, held.Key)
			f.mu.Unlock()
		}
	}
	return errors.Join(errs...)
}

func compareKeys(a, b fact.Key) int {
	return cmp.Or(
		cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name),
	)
}
