package trace_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"signalbox/internal/trace"
)

// kept is an exporter that keeps what it is given.
type kept struct {
	mu    sync.Mutex
	spans []sdk.ReadOnlySpan
}

func (k *kept) ExportSpans(_ context.Context, spans []sdk.ReadOnlySpan) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.spans = append(k.spans, spans...)
	return nil
}

func (*kept) Shutdown(context.Context) error { return nil }

// ended closes a tracer and returns its spans by name.
func (k *kept) ended(t *testing.T, tracer *trace.Tracer) map[string]sdk.ReadOnlySpan {
	t.Helper()
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	out := map[string]sdk.ReadOnlySpan{}
	for _, s := range k.spans {
		out[s.Name()] = s
	}
	return out
}

// overTheBus returns what comes out of the headers that an origin is put into.
func overTheBus(o trace.Origin) trace.Origin {
	h := http.Header{}
	trace.Inject(o, h.Set)
	return trace.Read(h.Get)
}

func TestATraceGoesOnOverTheBus(t *testing.T) {
	spans := &kept{}
	tracer := trace.NewTo(spans, trace.Config{Ratio: 1})

	begin := func(event string) trace.Origin {
		ctx, span := tracer.Begin(trace.WithEvent(t.Context(), event), trace.Takes, event)
		defer span.End(nil)
		return trace.Of(ctx)
	}
	first, second := begin("gitea/1"), begin("gitea/2")
	both := overTheBus(first.Join(second).Join(second))
	ctx, handle := tracer.Resume(t.Context(), both, "handle", trace.Text("consumer", "work"))
	if got := trace.Event(ctx); got != "gitea/1" {
		t.Errorf("the event is %q", got)
	}
	inner, span := trace.Start(ctx, trace.Asks, "ask")
	span.End(errors.New("a secret"))
	later := overTheBus(trace.Of(inner).Later())
	handle.End(nil)
	_, wake := tracer.Resume(t.Context(), later, "wake")
	wake.End(nil)

	got := spans.ended(t, tracer)
	one := got["gitea/1"].SpanContext().TraceID()
	for _, name := range []string{"handle", "ask"} {
		if id := got[name].SpanContext().TraceID(); id != one {
			t.Errorf("%s is in trace %s, want %s", name, id, one)
		}
	}
	if parent := got["handle"].Parent().SpanID(); parent != got["gitea/1"].SpanContext().SpanID() {
		t.Errorf("the handler is below %s", parent)
	}
	links := got["handle"].Links()
	if len(links) != 1 || links[0].SpanContext.TraceID() != got["gitea/2"].SpanContext().TraceID() {
		t.Errorf("the handler has the links %v, want one to the second event", links)
	}
	if links := got["wake"].Links(); got["wake"].SpanContext().TraceID() == one || len(links) != 1 || links[0].SpanContext.TraceID() != one {
		t.Errorf("what is due later is in trace %s with links %v, want a trace of its own with a link", got["wake"].SpanContext().TraceID(), links)
	}
	if status := got["ask"].Status(); status.Code.String() != "Error" || status.Description != "" {
		t.Errorf("the status is %v, want an error without its text", status)
	}
}

func TestOriginIsBounded(t *testing.T) {
	spans := &kept{}
	tracer := trace.NewTo(spans, trace.Config{Ratio: 1})
	var all trace.Origin
	for range 100 {
		ctx, span := tracer.Begin(t.Context(), trace.Takes, "event")
		all = all.Join(trace.Of(ctx))
		span.End(nil)
	}
	if n := len(all.Links); n != 16 {
		t.Errorf("%d links, want 16", n)
	}
	if got := overTheBus(all); !cmp.Equal(got, all) {
		t.Errorf("over the bus it is %v", got)
	}
	spans.ended(t, tracer)
}

// TestHeadersAreNotBelieved resumes from headers that nobody of signalbox wrote.
func TestHeadersAreNotBelieved(t *testing.T) {
	spans := &kept{}
	tracer := trace.NewTo(spans, trace.Config{Ratio: 1})
	for _, o := range []trace.Origin{
		{Parent: "x"},
		{Parent: "00-00000000000000000000000000000000-0000000000000000-01"},
		{Parent: strings.Repeat("0", 10000)},
		{Links: []string{"", "x", "00-zz"}},
	} {
		_, span := tracer.Resume(t.Context(), o, "handle")
		span.End(nil)
	}
	spans.ended(t, tracer)
	for _, s := range spans.spans {
		if s.Parent().IsValid() || len(s.Links()) > 0 {
			t.Errorf("a span has the parent %v and the links %v", s.Parent(), s.Links())
		}
	}
	if o := (trace.Origin{Event: "a\r\nNats-Rollup: all"}); overTheBus(o).Event != "aNats-Rollup: all" {
		t.Errorf("an id breaks the headers: %q", overTheBus(o).Event)
	}
}

// TestSampling traces nothing of a ratio of zero, also on the other side of the bus.
func TestSampling(t *testing.T) {
	spans := &kept{}
	none := trace.NewTo(spans, trace.Config{Ratio: 0})
	ctx, span := none.Begin(t.Context(), trace.Takes, "event")
	o := overTheBus(trace.Of(ctx))
	span.End(nil)
	all := trace.NewTo(spans, trace.Config{Ratio: 1})
	_, span = all.Resume(t.Context(), o, "handle")
	span.End(nil)
	spans.ended(t, all)
	if got := spans.ended(t, none); len(got) > 0 {
		t.Errorf("there are the spans %v", got)
	}
}

// receiver takes spans as a collector does.
func receiver(t *testing.T, code int) (address *url.URL, received func() (paths []string, body string)) {
	t.Helper()
	var mu sync.Mutex
	var paths []string
	var all bytes.Buffer
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type"))
		_, _ = io.Copy(&all, r.Body)
		w.WriteHeader(code)
	}))
	t.Cleanup(s.Close)
	address, err := url.Parse(s.URL + "/v1/traces")
	if err != nil {
		t.Fatal(err)
	}
	return address, func() ([]string, string) {
		mu.Lock()
		defer mu.Unlock()
		return paths, all.String()
	}
}

func TestSpansAreSent(t *testing.T) {
	address, received := receiver(t, http.StatusOK)
	tracer, err := trace.New(t.Context(), trace.Config{Endpoint: address, Ratio: 1, Version: "v1.2.3", Replica: "one"}, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	ctx, span := tracer.Begin(t.Context(), trace.Takes, "webhook", trace.Text("repo", "ops/home-gitops"), trace.Number("pull", 12))
	_, inner := trace.Start(ctx, trace.Inside, "evaluate")
	inner.Tell(trace.Text("state", "waiting"))
	inner.End(nil)
	span.End(nil)
	if err := tracer.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	paths, body := received()
	if !cmp.Equal(paths, []string{"POST /v1/traces application/x-protobuf"}) {
		t.Errorf("requests: %v", paths)
	}
	for _, text := range []string{"webhook", "evaluate", "signalbox.repo", "ops/home-gitops", "signalbox.pull", "waiting", "v1.2.3", "one"} {
		if !strings.Contains(body, text) {
			t.Errorf("what was sent lacks %q", text)
		}
	}
}

func TestAReceiverThatRefusesIsTold(t *testing.T) {
	address, _ := receiver(t, http.StatusUnauthorized)
	failures := make(chan error, 1)
	tracer, err := trace.New(t.Context(), trace.Config{Endpoint: address, Ratio: 1}, func(err error) { failures <- err })
	if err != nil {
		t.Fatal(err)
	}
	_, span := tracer.Begin(t.Context(), trace.Takes, "webhook")
	span.End(nil)
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
	select {
	case err := <-failures:
		if !strings.Contains(err.Error(), "401") {
			t.Errorf("the failure is %v", err)
		}
	default:
		t.Error("nobody was told")
	}
}

func TestWithoutATracer(t *testing.T) {
	var tracer *trace.Tracer
	ctx, span := tracer.Begin(t.Context(), trace.Takes, "webhook")
	span.Tell(trace.Text("a", "b"))
	ctx, inner := trace.Start(ctx, trace.Inside, "evaluate")
	inner.End(nil)
	span.End(nil)
	ctx, handle := tracer.Resume(ctx, trace.Origin{Event: "gitea/1", Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "handle")
	handle.End(errors.New("no"))
	if want := (trace.Origin{Event: "gitea/1"}); !cmp.Equal(trace.Of(ctx), want) {
		t.Errorf("the origin is %v, want %v", trace.Of(ctx), want)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestLogs(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(trace.Logs(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))).With("pull", "ops/home-gitops#12")
	tracer := trace.NewTo(&kept{}, trace.Config{Ratio: 1})
	log.InfoContext(t.Context(), "nothing")
	ctx := trace.WithEvent(t.Context(), "gitea/1")
	log.InfoContext(ctx, "an event")
	log.InfoContext(ctx, "an event of its own", "event", "other")
	ctx, span := tracer.Resume(ctx, trace.Origin{Event: "gitea/1", Parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}, "handle")
	log.WithGroup("g").InfoContext(ctx, "a trace", "k", "v")
	span.End(nil)
	want := `level=INFO msg=nothing pull=ops/home-gitops#12
level=INFO msg="an event" pull=ops/home-gitops#12 event=gitea/1
level=INFO msg="an event of its own" pull=ops/home-gitops#12 event=other
level=INFO msg="a trace" pull=ops/home-gitops#12 g.k=v g.event=gitea/1 g.traceId=4bf92f3577b34da6a3ce929d0e0e4736
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if err := tracer.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// BenchmarkOff is what a span costs where nothing is traced.
func BenchmarkOff(b *testing.B) {
	var tracer *trace.Tracer
	ctx := trace.WithEvent(b.Context(), "gitea/1")
	b.ReportAllocs()
	for b.Loop() {
		ctx, span := tracer.Resume(ctx, trace.Origin{}, "handle", trace.Text("consumer", "work"))
		_, inner := trace.Start(ctx, trace.Inside, "evaluate", trace.Number("pull", 12))
		inner.Tell(trace.Text("state", "clear"))
		inner.End(nil)
		span.End(nil)
	}
}
