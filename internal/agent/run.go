package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"signalbox/internal/fact"
)

// Watcher watches the cluster and writes to the remote.
type Watcher interface {
	// Wish sets everything that is wished of the cluster beside what is always told.
	Wish(wishes []fact.Wish)
	// Await reports whether each of the facts was written since it was wished, and
	// waits for that until ctx ends.
	Await(ctx context.Context, keys []fact.Key) bool
}

// ErrOtherStore says that the hub holds its facts in another store than before, as after
// it was made anew or restored: what was told is not held there.
var ErrOtherStore = errors.New("the hub has a new store of facts; start the agent again, so that it tells everything")

// Pauses between tries to reach the hub.
const (
	firstPause = 500 * time.Millisecond
	lastPause  = 15 * time.Second
)

// Load reads what the hub holds of the cluster, and what is wished of it, which it tells
// the watcher. It tries until it succeeds, and reports false if ctx ends before.
func (r *Remote) Load(ctx context.Context, w Watcher) (loaded bool) {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.load(ctx)
		if err == nil {
			err = r.hear(ctx, w)
		}
		if err == nil || ctx.Err() != nil {
			return err == nil
		}
		r.log.WarnContext(ctx, "the hub is not reached, and is tried again: is signalbox running, and does its configuration say of this cluster that it has an agent?",
			"cluster", r.cluster, "error", err)
		select {
		case <-ctx.Done():
			return false
		case <-time.After(pause):
		}
	}
}

// Run passes on what is wished of the cluster and answers the hub, until ctx ends. It
// fails with [ErrOtherStore] when everything has to be told anew.
func (r *Remote) Run(ctx context.Context, w Watcher) error {
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error {
		return r.line.Serve(ctx, agentSubject(r.cluster, verbAwait), "agent", func(ctx context.Context, _ string, data []byte) []byte {
			return encode(handle(data, func(a await) (awaitAnswer, error) { return r.await(ctx, w, a) }))
		})
	})
	group.Go(func() error {
		return r.line.Serve(ctx, agentSubject(r.cluster, verbChanged), "", func(context.Context, string, []byte) []byte {
			r.nudge()
			return nil
		})
	})
	group.Go(func() error { return r.listen(ctx, w) })
	return group.Wait()
}

// listen hears what is wished when that may have changed.
func (r *Remote) listen(ctx context.Context, w Watcher) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-r.lost:
			return ErrOtherStore
		case <-r.wake:
		}
		if err := r.hear(ctx, w); err != nil && ctx.Err() == nil {
			// The next heartbeat brings it up again.
			r.log.WarnContext(ctx, "what is wished of the cluster is not known", "cluster", r.cluster, "error", err)
		}
	}
}

// hear asks what is wished and tells the watcher.
func (r *Remote) hear(ctx context.Context, w Watcher) error {
	r.hearing.Lock()
	defer r.hearing.Unlock()
	out, err := askHub[wishesAnswer](ctx, r.line, r.cluster, verbWishes, struct{}{})
	if err != nil {
		return err
	}
	if out.Mark != r.wished() {
		w.Wish(out.Wishes) // It looks facts up, so no lock of theirs is held.
		r.mu.Lock()
		defer r.mu.Unlock()
		r.mark = out.Mark
	}
	return nil
}

// await answers whether facts are of the present life of the watcher. It asks for the
// wishes first: the hub stored them before it asked.
func (r *Remote) await(ctx context.Context, w Watcher, a await) (awaitAnswer, error) {
	if a.Within <= 0 {
		return awaitAnswer{}, fmt.Errorf("wait for %s: nobody waits so short", a.Within)
	}
	ctx, cancel := context.WithTimeout(ctx, min(a.Within, maxWithin))
	defer cancel()
	if err := r.hear(ctx, w); err != nil {
		return awaitAnswer{}, err
	}
	return awaitAnswer{Settled: w.Await(ctx, a.Keys)}, nil
}

// Reach asks the hub for a sign of life, and returns why there is none.
func (r *Remote) Reach(ctx context.Context) error {
	_, err := askHub[wishesAnswer](ctx, r.line, r.cluster, verbWishes, struct{}{})
	return err
}

// Heard returns when the hub last answered a heartbeat; zero for never.
func (r *Remote) Heard() time.Time {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.heard
}
