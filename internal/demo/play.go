package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Options say how the demo is shown.
type Options struct {
	Out io.Writer
	// In gives the lines of the prompt; nil means that there is no prompt. Play
	// reads it in a goroutine: a read from a terminal cannot be interrupted, so
	// that goroutine ends with In, or with the process.
	In io.Reader
	// Width of the screen in cells; 100 if it is not positive.
	Width int
	// Color marks states by colors too.
	Color bool
	// Pause between two steps; zero plays as fast as signalbox is.
	Pause time.Duration
	// Deadline of what must come true in one step; 20s if it is zero.
	Deadline time.Duration
	// Ready waits until signalbox knows the cluster. It must be set.
	Ready func(context.Context) error
	// Reconcile makes signalbox look for what no webhook told, which it
	// otherwise does every few minutes. It must be set if In is.
	Reconcile func(context.Context) error
	// Silence is how long signalbox waits for a cluster that is silent.
	Silence time.Duration
}

// player plays on a world, in front of a screen.
type player struct {
	Options
	world  *World
	eye    *eye
	screen *screen
}

// Play plays the story and then, if there is input, answers the prompt until
// that ends. Signalbox must run on the world meanwhile. It returns the error of
// the context if that ends first, [ErrOutput] if Out fails, and an error that
// says what is missing if a step does not come true.
func Play(ctx context.Context, w *World, o Options) error {
	if o.Width <= 0 {
		o.Width = 100
	}
	if o.Deadline == 0 {
		o.Deadline = 20 * time.Second
	}
	p := &player{Options: o, world: w, eye: newEye(w), screen: &screen{out: o.Out, width: o.Width, color: o.Color}}
	defer p.eye.http.CloseIdleConnections()
	if err := p.story(ctx); err != nil {
		return err
	}
	if o.In == nil {
		return p.screen.failed()
	}
	return p.prompt(ctx)
}

const (
	// poll is the time between two looks at Gitea.
	poll = 20 * time.Millisecond
	// quiet is how long nothing may change until it counts as all there is.
	quiet = 400 * time.Millisecond
)

// seen is what came of an action.
type seen struct {
	before, now *view
	// after says when that which is there now came, counted from the action.
	after map[string]time.Duration
}

// lateError is what did not come true in time.
type lateError struct {
	limit   time.Duration
	missing error
}

func (e *lateError) Error() string { return fmt.Sprintf("not so within %s: %v", e.limit, e.missing) }

// watch looks at the pull request until what is wanted is true and nothing has
// changed for a while, or until the limit. Then it returns a [lateError] beside
// what was seen.
func (p *player) watch(ctx context.Context, before *view, want func(*view) error, limit time.Duration) (*seen, error) {
	start := time.Now()
	s := &seen{before: before, after: map[string]time.Duration{}}
	marks, changed := before.marks(), start
	for {
		var err error
		if s.now, err = p.eye.look(ctx); err != nil {
			return nil, err
		}
		now := time.Now()
		for mark, value := range s.now.marks() {
			if marks[mark] != value {
				marks[mark], changed = value, now
				s.after[mark] = now.Sub(start)
			}
		}
		missing := want(s.now)
		if missing == nil && now.Sub(changed) >= quiet {
			return s, nil
		}
		if now.Sub(start) > limit {
			return s, &lateError{limit, missing}
		}
		if err := wait(ctx, poll); err != nil {
			return nil, err
		}
	}
}

func late(err error) bool {
	_, ok := errors.AsType[*lateError](err)
	return ok
}

func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// report shows what was posted, and only that. It reports whether there was
// anything.
func (p *player) report(s *seen) bool {
	shown := false
	for _, st := range s.now.statuses {
		old, known := s.before.status(st.Context)
		if known && old == st {
			continue
		}
		shown = true
		p.screen.stamped(statusLine(st), s.after[st.mark()])
		p.screen.description(st)
	}
	for _, c := range s.now.comments {
		shown = p.comment(s, c) || shown
	}
	return shown
}

// comment shows what is new in a comment of signalbox.
func (p *player) comment(s *seen, c comment) bool {
	after, changed := s.after[c.mark()]
	if !changed {
		return false
	}
	blocks, verb := p.screen.markdown(c.Body), "commented"
	if i := slices.IndexFunc(s.before.comments, func(o comment) bool { return o.ID == c.ID }); i >= 0 {
		old := s.before.comments[i]
		if old.Body == c.Body {
			p.screen.stamped(line{{"signalbox", bold}, {" put its comment back, word for word", plain}}, after)
			return true
		}
		verb = "edited its comment; new in it:"
		if blocks = newBlocks(p.screen.markdown(old.Body), blocks); len(blocks) == 0 {
			verb = "edited its comment; what is new is folded, or was taken out"
		}
	}
	p.screen.stamped(line{{"signalbox", bold}, {" " + verb, plain}}, after)
	p.screen.blocks(blocks)
	return true
}

// newBlocks returns the blocks that were not there before.
func newBlocks(before, now []block) []block {
	known := map[string]bool{}
	for _, b := range before {
		known[b.source] = true
	}
	return slices.DeleteFunc(slices.Clone(now), func(b block) bool { return known[b.source] })
}

// stillTime is how long nothing may be posted: several times what signalbox
// needs to post something.
const stillTime = 1200 * time.Millisecond

// rest waits until Gitea is called no more.
func (p *player) rest(ctx context.Context) error {
	for start, calls := time.Now(), -1; calls != p.world.Gitea.TotalCalls(); {
		if time.Since(start) > p.Deadline {
			return fmt.Errorf("signalbox has called Gitea for %s without an end", p.Deadline)
		}
		calls = p.world.Gitea.TotalCalls()
		if err := wait(ctx, quiet); err != nil {
			return err
		}
	}
	return nil
}

// progress lets Flux reconcile and come to the result that it had. Signalbox
// must post nothing then, and not even ask Gitea for anything.
func (p *player) progress(ctx context.Context) error {
	before, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	if err := p.rest(ctx); err != nil {
		return err
	}
	p.world.Gitea.ResetCalls()
	if err := p.world.reconcile(ctx); err != nil {
		return err
	}
	if err := wait(ctx, stillTime); err != nil {
		return err
	}
	if calls := p.world.Gitea.Calls(); len(calls) > 0 {
		return fmt.Errorf("nothing has changed, but Gitea was called: %s", strings.Join(slices.Sorted(maps.Keys(calls)), ", "))
	}
	now, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	if !now.same(before) {
		return errors.New("nothing has changed, but something was posted")
	}
	p.screen.say(gutter, run{"signalbox posted nothing, and did not call Gitea once.", plain})
	return nil
}
