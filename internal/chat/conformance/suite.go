package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"signalbox/internal/chat"
)

// patience bounds each case.
const patience = time.Minute

// Run runs the suite. Each case has a backend of its own, which ends with the test
// that it is made for.
func Run(t *testing.T, backend func(*testing.T) Backend) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, *env)
	}{
		{"mention", mention},
		{"mention in a thread", mentionInThread},
		{"direct conversation", direct},
		{"talk among others", talk},
		{"edited messages", edited},
		{"own and other programs' messages", programs},
		{"buttons", press},
		{"long text comes in", longIn},
		{"not taken", notTaken},
		{"delivered twice", deliveredTwice},
		{"connection cut", connectionCut},
		{"post and edit", postAndEdit},
		{"post in a thread", postInThread},
		{"whisper", whisper},
		{"post twice", postTwice},
		{"answer lost", answerLost},
		{"no answer", noAnswer},
		{"rate limited", rateLimited},
		{"removed from the room", removed},
		{"token refused", refused},
		{"long text goes out", longOut},
		{"hostile text", hostile},
		{"picture", attach},
		{"picture in a thread", attachInThread},
		{"picture whose answer was lost", attachAgain},
		{"picture without an answer", attachHanging},
		{"pictures are limited", attachLimited},
		{"picture after being removed", attachRemoved},
		{"picture with a refused token", attachRefused},
		{"bad pictures", attachBad},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, newEnv(t, backend(t))) })
	}
}

// env is what a case works with.
type env struct {
	Backend
	*receiver

	poster chat.Poster
	room   chat.Room
}

func newEnv(t *testing.T, b Backend) *env {
	t.Helper()
	e := &env{Backend: b, receiver: &receiver{news: make(chan struct{}, 1)}}
	ctx := within(t)
	var err error
	e.room, err = b.Room(ctx, "deploy")
	must(t, err)
	e.poster, err = b.Start(ctx, e.receiver)
	must(t, err)
	return e
}

// within returns a context for one case.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), patience, errors.New("the case took too long"))
	t.Cleanup(cancel)
	return ctx
}

// must ends a test on an error, and skips what the backend cannot do.
func must(t *testing.T, err error) {
	t.Helper()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("the backend cannot do that:", err)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (e *env) in() Place { return Place{Room: e.room} }

// said says a mention and returns its id.
func (e *env) said(ctx context.Context, t *testing.T, in Place, who Person, text string) string {
	t.Helper()
	id, err := e.Mention(ctx, in, who, text)
	must(t, err)
	return id
}

// item is what a receiver got.
type item struct {
	Cause   string
	Message *chat.Message
	Press   *chat.Press
}

func (i item) String() string {
	if i.Press != nil {
		return fmt.Sprintf("%s: %+v", i.Cause, *i.Press)
	}
	return fmt.Sprintf("%s: %+v", i.Cause, *i.Message)
}

// receiver notes what it got, and takes it unless refuse says otherwise.
type receiver struct {
	news chan struct{}

	mu sync.Mutex
	// all is everything, also what was refused.
	all    []item
	taken  []item
	read   int
	refuse func(context.Context, item) error
}

// Said implements [chat.Receiver].
func (r *receiver) Said(ctx context.Context, cause string, m chat.Message) error {
	return r.take(ctx, item{Cause: cause, Message: &m})
}

// Pressed implements [chat.Receiver].
func (r *receiver) Pressed(ctx context.Context, cause string, p chat.Press) error {
	return r.take(ctx, item{Cause: cause, Press: &p})
}

func (r *receiver) take(ctx context.Context, i item) error {
	r.mu.Lock()
	refuse := r.refuse
	r.mu.Unlock()
	var err error
	if refuse != nil {
		err = refuse(ctx, i)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, i)
	// As the bus does, it keeps one of a cause.
	if err == nil && !slices.ContainsFunc(r.taken, func(other item) bool { return other.Cause == i.Cause }) {
		r.taken = append(r.taken, i)
	}
	select {
	case r.news <- struct{}{}:
	default:
	}
	return err
}

// setRefuse sets what refuses.
func (r *receiver) setRefuse(refuse func(context.Context, item) error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refuse = refuse
}

// next waits for the next cause that was taken.
func (r *receiver) next(ctx context.Context, t *testing.T) item {
	t.Helper()
	var got item
	r.wait(ctx, t, func() bool {
		if r.read == len(r.taken) {
			return false
		}
		got = r.taken[r.read]
		r.read++
		return true
	})
	return got
}

// wait waits until something is so, looking whenever something came.
func (r *receiver) wait(ctx context.Context, t *testing.T, ready func() bool) {
	t.Helper()
	for {
		r.mu.Lock()
		ok := ready()
		r.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-r.news:
		case <-ctx.Done():
			t.Fatalf("nothing came: %v", context.Cause(ctx))
		}
	}
}

// last is said last, to see that nothing came before it.
const last = "that is all"

// rest says something more, and returns what came before it.
func (e *env) rest(ctx context.Context, t *testing.T, in Place) []item {
	t.Helper()
	e.said(ctx, t, in, Bob, last)
	var before []item
	for {
		i := e.next(ctx, t)
		if i.Message != nil && i.Message.Text == last {
			return before
		}
		before = append(before, i)
	}
}

// texts is what alice sees.
func (e *env) texts(ctx context.Context, t *testing.T, in Place) []string {
	t.Helper()
	shown, err := e.Shown(ctx, in, Alice)
	must(t, err)
	var out []string
	for _, s := range shown {
		out = append(out, s.Text)
	}
	return out
}

// eventually looks again and again until something is so.
func eventually(ctx context.Context, t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for !ok() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, context.Cause(ctx))
		}
	}
}
