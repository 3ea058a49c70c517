//go:build e2e

package replica

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/gitea/giteatest"
)

// kind is what people do with a pull request.
type kind struct {
	name string
	// path is the file that it changes; a number takes the place of %d.
	path  string
	steps []step
	// preconditions and approval are the statuses in the end; empty where the tier decides.
	preconditions, approval string
	// entries are what the ledger has of it in the end.
	entries []decision.Kind
}

// step is one act of a person.
type step func(ctx context.Context, l *load, c *change) error

func review(as string) step {
	return func(ctx context.Context, l *load, c *change) error {
		_, err := l.st.forge.Review(ctx, l.st.repo, c.number, as, giteatest.Approve, "")
		return err
	}
}

func say(as, text string) step {
	return func(ctx context.Context, l *load, c *change) error {
		id, err := l.st.forge.Comment(ctx, l.st.repo, c.number, as, text)
		l.mu.Lock()
		defer l.mu.Unlock()
		c.commands = append(c.commands, id)
		return err
	}
}

func push(ctx context.Context, l *load, c *change) error {
	_, err := l.st.forge.Push(ctx, l.st.repo, giteatest.Push{
		Branch: c.branch, As: "bob", Files: map[string]string{fmt.Sprintf(c.kind.path, c.id): "a: 2\n"}, Message: "more",
	})
	return err
}

// kinds are the pull requests of a load, in turn.
func kinds() []kind {
	const doc = "docs/%d.md"
	return []kind{
		{name: "plain", path: doc, preconditions: "success", approval: "pending"},
		{name: "tiered", path: "clusters/%d.yaml", approval: "pending"},
		{name: "reviewed", path: doc, steps: []step{review("carol")}, preconditions: "success", approval: "success"},
		{
			name: "approved", path: doc, steps: []step{say("alice", "/approve")},
			preconditions: "success", approval: "success", entries: []decision.Kind{decision.Approve},
		},
		{name: "pushed", path: doc, steps: []step{review("carol"), push}, preconditions: "success", approval: "pending"},
		{
			name: "held", path: doc, steps: []step{review("carol"), say("carol", "/hold until tomorrow")},
			preconditions: "success", approval: "pending", entries: []decision.Kind{decision.Hold},
		},
		{
			name: "merged", path: doc, steps: []step{review("carol"), say("bob", "/merge")},
			entries: []decision.Kind{decision.Merge, decision.Merged},
		},
	}
}

// change is a pull request of a load.
type change struct {
	kind   *kind
	id     int
	branch string
	number int64
	opened time.Time
	// commands are the comments that have one.
	commands []int64
}

// load is people at work: it opens pull requests of all kinds, and has the tier fail and recover.
type load struct {
	st *stage
	// pause is the time between two pull requests, and between two acts on one.
	pause time.Duration

	cancel  context.CancelFunc
	running sync.WaitGroup
	mu      sync.Mutex
	changes []*change
	errs    []error
	ready   bool
}

// begin starts the load.
func (st *stage) begin(pause time.Duration) *load {
	st.t.Helper()
	ctx, cancel := context.WithCancel(st.t.Context())
	l := &load{st: st, pause: pause, cancel: cancel, ready: true}
	st.t.Cleanup(func() {
		cancel()
		l.running.Wait()
	})
	l.running.Go(func() { l.open(ctx) })
	l.running.Go(func() { l.flip(ctx) })
	return l
}

// end lets the people finish what they began, and leaves the tier ready.
func (l *load) end() {
	l.st.t.Helper()
	l.cancel()
	l.running.Wait()
	l.st.tier.is(true)
	l.ready = true
	for _, err := range l.errs {
		l.st.t.Error(err)
	}
}

// open opens pull requests until the context ends, and goes on with each in the background.
func (l *load) open(ctx context.Context) {
	all := kinds()
	for i := 0; ; i++ {
		c, err := l.start(ctx, &all[i%len(all)])
		if err != nil {
			l.failed(err)
			return
		}
		l.running.Go(func() { l.live(c) })
		select {
		case <-ctx.Done():
			return
		case <-time.After(l.pause):
		}
	}
}

// start opens a pull request.
func (l *load) start(ctx context.Context, k *kind) (*change, error) {
	ctx = context.WithoutCancel(ctx)
	l.mu.Lock()
	c := &change{kind: k, id: len(l.changes)}
	l.changes = append(l.changes, c)
	l.mu.Unlock()
	branch := fmt.Sprintf("%s-%d", k.name, c.id)
	_, err := l.st.forge.Push(ctx, l.st.repo, giteatest.Push{
		Branch: branch, From: "main", As: "bob", Files: map[string]string{fmt.Sprintf(k.path, c.id): "a: 1\n"}, Message: branch,
	})
	if err != nil {
		return nil, err
	}
	opened := time.Now()
	number, err := l.st.forge.OpenPull(ctx, l.st.repo, giteatest.NewPull{As: "bob", Title: branch, Head: branch})
	l.mu.Lock()
	defer l.mu.Unlock()
	c.branch, c.number, c.opened = branch, number, opened
	return c, err
}

// live does the steps of a pull request to their end.
func (l *load) live(c *change) {
	for _, s := range c.kind.steps {
		<-time.After(2 * l.pause)
		if err := s(context.Background(), l, c); err != nil {
			l.failed(fmt.Errorf("%s: %w", c.branch, err))
		}
	}
}

// flip has the tier fail and recover.
func (l *load) flip(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(8 * l.pause):
		}
		l.ready = !l.ready
		l.st.tier.is(l.ready)
	}
}

func (l *load) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errs = append(l.errs, err)
}

// all returns the pull requests so far.
func (l *load) all() []*change {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.changes)
}
