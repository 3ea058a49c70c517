package bus_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/events"
	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/trace"
)

// spans keeps what is traced.
type spans struct {
	mu  sync.Mutex
	all []sdk.ReadOnlySpan
}

func (s *spans) ExportSpans(_ context.Context, all []sdk.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, all...)
	return nil
}

func (*spans) Shutdown(context.Context) error { return nil }

// named returns the spans of a name.
func (s *spans) named(name string) []sdk.ReadOnlySpan {
	return slices.DeleteFunc(slices.Clone(s.all), func(o sdk.ReadOnlySpan) bool { return o.Name() != name })
}

// TestGatheredWorkIsLinkedToItsCauses asks for the same work three times while it
// waits for more.
func TestGatheredWorkIsLinkedToItsCauses(t *testing.T) {
	traced := &spans{}
	tracer := trace.NewTo(traced, trace.Config{Ratio: 1})
	b := bustest.Open(t, bus.Config{Debounce: time.Second, MaxWait: 30 * time.Second, Tracer: tracer})
	item := bus.Item{Ref: pull.Ref{RepoID: 7, Number: 12}, Kind: bus.Full}
	causes := map[string]string{}
	for i := range 3 {
		ctx, span := tracer.Begin(trace.WithEvent(t.Context(), fmt.Sprint("gitea/", i)), trace.Takes, "cause")
		if err := b.Work().Soon(ctx, item); err != nil {
			t.Fatal(err)
		}
		causes[trace.Of(ctx).Parent] = fmt.Sprint("gitea/", i)
		span.End(nil)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	var event string
	err := b.Work().Consume(ctx, func(ctx context.Context, _ bus.Item) error {
		event = trace.Event(ctx)
		cancel()
		return nil
	})
	if err != nil || event != "gitea/0" {
		t.Fatalf("the work is of the event %q, %v", event, err)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	handled := traced.named("handle work")
	if len(handled) != 1 {
		t.Fatalf("%d pieces of work were handled, want 1", len(handled))
	}
	of := func(id, span fmt.Stringer) string { return causes["00-"+id.String()+"-"+span.String()+"-01"] }
	got := []string{of(handled[0].Parent().TraceID(), handled[0].Parent().SpanID())}
	for _, l := range handled[0].Links() {
		got = append(got, of(l.SpanContext.TraceID(), l.SpanContext.SpanID()))
	}
	if want := []string{"gitea/0", "gitea/1", "gitea/2"}; !cmp.Equal(got, want) {
		t.Errorf("the work is below and linked to %v, want %v", got, want)
	}
}

// TestEveryHandlerKnowsTheEvent hands on an event, and a fact that was written because
// of it and one that was not.
func TestEveryHandlerKnowsTheEvent(t *testing.T) {
	b := bustest.New(t)
	e, err := events.New("gitea/1", "gitea", time.Now(), events.PullChanged{Repo: events.Repo{ID: 7}, Number: 12})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), e); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	key := func(name string) fact.Key { return fact.Kube("prod", "kustomization", "flux-system", name) }
	put := func(ctx context.Context, name string) {
		if _, err := b.Facts().Put(ctx, fact.Fact{Key: key(name)}); err != nil {
			t.Error(err)
		}
	}
	eventsCtx, eventsDone := context.WithCancel(ctx)
	err = b.ConsumeEvents(eventsCtx, "test", []string{"event.>"}, func(ctx context.Context, _ events.Event) error {
		put(ctx, "caused")
		eventsDone()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	put(ctx, "seen")
	seen := map[string]string{}
	err = b.Facts().Consume(ctx, "test", func(ctx context.Context, k fact.Key) error {
		if seen[k.Name] = trace.Event(ctx); len(seen) == 2 {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"caused": "gitea/1", "seen": fmt.Sprintf("facts/%s@%d", key("seen"), b.Facts().Revision(key("seen")))}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
