package handlers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
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
	Log   *slog.Logger

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

// readTime bounds one reading, which may be of several logs.
const readTime = 3 * time.Minute

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

// Held reports whether a fact is held.
func (f *ForgeFacts) Held(k fact.Key) bool {
	_, ok := f.Facts.Lookup(k)
	return ok
}

// HeldOf returns the facts of some kinds that are held of a repository, sorted.
func (f *ForgeFacts) HeldOf(repo int64, kinds ...string) []fact.Key {
	var keys []fact.Key
	for _, kind := range kinds {
		for _, held := range f.Facts.Select(fact.SourceGitea, "", kind) {
			if held.Key.Namespace == strconv.FormatInt(repo, 10) {
				keys = append(keys, held.Key)
			}
		}
	}
	slices.SortFunc(keys, compareKeys)
	return keys
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

// ReadAll reads facts now; see [ForgeFacts.Read].
func (f *ForgeFacts) ReadAll(ctx context.Context, keys []fact.Key) error {
	return f.each(ctx, keys, f.Read)
}

// Refresh reads facts again. One that cannot be read for longer than a while is
// unknown from then on; one fact that cannot be read is no failure of all.
func (f *ForgeFacts) Refresh(ctx context.Context, keys []fact.Key) error {
	return f.each(ctx, keys, func(ctx context.Context, k fact.Key) error {
		err := f.Read(ctx, k)
		if err == nil || ctx.Err() != nil {
			return err
		}
		f.Log.WarnContext(ctx, "a fact of Gitea could not be read again", "fact", k.String(), "error", err)
		if f.current(k) {
			return nil
		}
		// The words of the error would change at each try.
		return f.put(ctx, fact.Fact{Key: k, Problem: "Gitea has not answered for a while; the log of signalbox has more"}, nil)
	})
}

// Read reads a fact now and keeps it. Many calls at once for one fact make at
// most two readings, and each returns after one that began later than the call.
// A reading goes on for the others when one of its callers is gone.
func (f *ForgeFacts) Read(ctx context.Context, k fact.Key) error {
	f.mu.Lock()
	if f.reading == nil {
		f.reading, f.read = map[fact.Key]*reading{}, map[fact.Key]time.Time{}
	}
	mine := &reading{done: make(chan struct{})}
	if now, busy := f.reading[k]; !busy {
		f.reading[k] = mine
		go f.carryOut(context.WithoutCancel(ctx), k, mine)
	} else if now.next == nil {
		now.next = mine
	} else {
		mine = now.next
	}
	f.mu.Unlock()
	select {
	case <-mine.done:
		return mine.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// carryOut makes a reading, and then the one that was asked for meanwhile.
func (f *ForgeFacts) carryOut(ctx context.Context, k fact.Key, r *reading) {
	for r != nil {
		began := f.Now()
		r.err = f.readSafely(ctx, k)
		f.mu.Lock()
		if r.err == nil {
			f.read[k] = began
		}
		next := r.next
		if next != nil {
			f.reading[k] = next
		} else {
			delete(f.reading, k)
		}
		f.mu.Unlock()
		close(r.done)
		r = next
	}
}

// readSafely turns a panic into an error, and bounds the time.
func (f *ForgeFacts) readSafely(ctx context.Context, k fact.Key) (err error) {
	ctx, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			f.Log.ErrorContext(ctx, "a reading panicked", "fact", k.String(), "panic", p, "stack", string(debug.Stack()))
			err = fmt.Errorf("read %s %s: it panicked", k.Kind, k.Object())
		}
	}()
	return f.readNow(ctx, k)
}

// maxOvertaken bounds how often a reading is made again because another replica
// kept a newer one meanwhile.
const maxOvertaken = 3

// readNow reads a fact from the forge and puts it where facts are. A reading
// that another one overtook, which began later, is made again: nobody can tell
// which of the two saw more.
func (f *ForgeFacts) readNow(ctx context.Context, k fact.Key) error {
	for range maxOvertaken {
		if err := f.Facts.Sync(ctx); err != nil {
			return err
		}
		before, held := f.Facts.Lookup(k)
		v := fact.Fact{Key: k, SeenAt: f.Now().UTC(), Version: laterVersion(before, f.Now())}
		err := f.value(ctx, &v)
		switch {
		case errors.Is(err, errNotOurs):
			v.Problem = "signalbox does not look after that repository"
		case errors.Is(err, pull.ErrNotFound):
			v.Problem = "Gitea has none, or signalbox's account may not see it"
		case errors.Is(err, pull.ErrForbidden):
			v.Problem = "signalbox's account may not read it: " + err.Error()
		case errors.Is(err, pull.ErrIncomplete):
			v.Problem = "Gitea does not tell all of it: " + err.Error()
		case err != nil:
			return fmt.Errorf("read %s %s: %w", k.Kind, k.Object(), err)
		}
		var known *fact.Fact
		if held {
			known = &before
		}
		err = f.put(ctx, v, known)
		if !errors.Is(err, errOvertaken) {
			return err
		}
	}
	return fmt.Errorf("read %s %s: %w, %d times in a row", k.Kind, k.Object(), errOvertaken, maxOvertaken)
}

var (
	errOvertaken = errors.New("another reading was newer")
	errNotOurs   = errors.New("the repository is not configured")
)

// laterVersion is a version that is newer than what was held when a reading
// began, whatever the clocks of replicas say.
func laterVersion(held fact.Fact, now time.Time) string {
	version := now.UnixNano()
	if before, err := strconv.ParseInt(held.Version, 10, 64); err == nil && before >= version {
		version = before + 1
	}
	return strconv.FormatInt(version, 10)
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
		if !f.Repositories.Named(owner, name) {
			return errNotOurs
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
		return errNotOurs
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

// put keeps what was read; before is what was held when that began. A problem
// keeps what was known before it, and the time at which it began.
func (f *ForgeFacts) put(ctx context.Context, v fact.Fact, before *fact.Fact) error {
	if before == nil {
		if held, ok := f.Facts.Lookup(v.Key); ok {
			before = &held
		}
	}
	if v.SeenAt.IsZero() {
		v.SeenAt = f.Now().UTC()
	}
	if v.Problem != "" && before != nil {
		kept := *before
		kept.Problem, kept.SeenAt, kept.Version = v.Problem, v.SeenAt, v.Version
		v = kept
	}
	v.Since = v.SeenAt
	if before != nil {
		v.Since = before.Since
		if !v.Same(*before) && (v.Problem == "" || before.Problem == "") {
			v.Since = v.SeenAt
		}
	}
	changed, err := f.Facts.Put(ctx, v)
	if err != nil {
		return fmt.Errorf("keep %s %s: %w", v.Key.Kind, v.Key.Object(), err)
	}
	if held, ok := f.Facts.Lookup(v.Key); !changed && ok && !held.Same(v) {
		return errOvertaken
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
