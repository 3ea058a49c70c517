package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"

	"signalbox/internal/policy"
	"signalbox/internal/trace"
)

// tidings is a log that is read while it is written.
type tidings struct {
	mu    sync.Mutex
	lines []map[string]any
}

// Write takes one line of JSON.
func (n *tidings) Write(line []byte) (int, error) {
	var fields map[string]any
	if err := json.Unmarshal(line, &fields); err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.lines = append(n.lines, fields)
	return len(line), nil
}

// log is a logger as signalbox makes it.
func (n *tidings) log() *slog.Logger {
	return slog.New(trace.Logs(slog.NewJSONHandler(n, &slog.HandlerOptions{Level: slog.LevelDebug})))
}

// of returns the lines in which a key has a value.
func (n *tidings) of(key, value string) []map[string]any {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out []map[string]any
	for _, l := range n.lines {
		if l[key] == value {
			out = append(out, l)
		}
	}
	return out
}

// found returns those of some messages that the lines have, in the order of the lines.
func found(lines []map[string]any, messages ...string) []string {
	var out []string
	for _, l := range lines {
		if m := fmt.Sprint(l["msg"]); slices.Contains(messages, m) && !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}

// TestTheLogTellsTheStoryOfOnePullRequest looks for one pull request by its id, among
// two: what came, what was decided, what was posted, who commanded, how it ended.
func TestTheLogTellsTheStoryOfOnePullRequest(t *testing.T) {
	news := &tidings{}
	w := newWorld(t, worldOptions{files: map[string]string{policy.Path: deciding}})
	w.ready()
	w.start(worldOptions{log: news.log()})
	w.reconciled()
	number := w.open("a", clusterChange)
	other := w.open("b", map[string]string{"clusters/base/other.yaml": "o: 1\n"})
	w.shows(number, "success", "pending")
	w.shows(other, "success", "pending")
	w.reacts(w.say(number, "alice", "/approve\n/merge"), "+1")
	story := []string{"event received", "work asked for", "status posted", "comment written", "verdict changed", "command carried out", "merged", "pull request left"}
	id := w.repo.Numbered(number)
	w.eventually("the log tells the story", func() string {
		if got := found(news.of("pull", id), story...); !slices.Equal(got, story) {
			return strings.Join(got, ", ")
		}
		return ""
	})
	for _, l := range news.of("pull", id) {
		if l["event"] == nil {
			t.Errorf("the line %v does not tell which event led to it", l)
		}
		if l["traceId"] != nil {
			t.Errorf("the line %v has a trace, and nothing is traced", l)
		}
	}
	// It ended because of an event that came for this pull request.
	lines := news.of("pull", id)
	end := slices.IndexFunc(lines, func(l map[string]any) bool { return l["msg"] == "pull request left" })
	event := fmt.Sprint(lines[end]["event"])
	if got := found(news.of("event", event), "event received", "pull request left"); len(got) != 2 {
		t.Errorf("by the event %s the log tells %v", event, got)
	}
	w.stop()
	w.wellNamed(news)
}

// wellNamed looks at the ids in all lines.
func (w *world) wellNamed(news *tidings) {
	w.t.Helper()
	for _, l := range news.lines {
		name, ok := l["pull"].(string)
		if l["pull"] != nil && (!ok || !strings.HasPrefix(name, w.repo.String()+"#")) {
			w.t.Errorf("%v does not name its pull request as all others do", l)
		}
	}
}

// spans keeps what is traced.
type spans struct {
	mu  sync.Mutex
	all []sdk.ReadOnlySpan
}

// ExportSpans implements [sdk.SpanExporter].
func (s *spans) ExportSpans(_ context.Context, all []sdk.ReadOnlySpan) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, all...)
	return nil
}

// Shutdown implements [sdk.SpanExporter].
func (*spans) Shutdown(context.Context) error { return nil }

// above returns the names of a span and those above it, the outermost first.
func (s *spans) above(span sdk.ReadOnlySpan) []string {
	names := []string{span.Name()}
	for _, o := range s.all {
		if o.SpanContext().SpanID() == span.Parent().SpanID() && o.SpanContext().TraceID() == span.SpanContext().TraceID() {
			return append(s.above(o), names...)
		}
	}
	return names
}

// path reports whether some span has just these above it, and itself last.
func (s *spans) path(names ...string) bool {
	return slices.ContainsFunc(s.all, func(o sdk.ReadOnlySpan) bool { return slices.Equal(s.above(o), names) })
}

// Names of spans of calls to Gitea.
const (
	postStatus  = "POST /repos/:owner/:repo/statuses/:sha"
	postComment = "POST /repos/:owner/:repo/issues/:n/comments"
)

// TestOneTraceLeadsFromTheWebhookToTheStatus follows a webhook, and then a change of
// the cluster, over the bus to what is posted.
func TestOneTraceLeadsFromTheWebhookToTheStatus(t *testing.T) {
	traced, news := &spans{}, &tidings{}
	tracer := trace.NewTo(traced, trace.Config{Ratio: 1})
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{tracer: tracer, log: news.log()})
	w.reconciled()
	number := w.open("a", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()
	w.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", "a text of a controller")
	w.shows(number, "pending", "pending", "a text of a controller")
	w.quiet()
	w.stop()
	w.must(tracer.Close(t.Context()))

	toWork := func(before ...string) []string { return append(before, "handle work", "evaluate") }
	webhook := toWork("webhook", "publish event", "handle events")
	changed := toWork("write fact", "handle facts")
	for _, path := range [][]string{
		append(slices.Clone(webhook), postStatus),
		append(slices.Clone(webhook), postComment),
		append(slices.Clone(changed), postStatus),
	} {
		if !traced.path(path...) {
			t.Errorf("no trace leads along %v", path)
		}
	}
	if t.Failed() {
		for _, s := range traced.all {
			t.Log(traced.above(s))
		}
	}
	traced.tellNothing(t, "Move the profile", "a text of a controller", "a webhook secret", w.token, "clusters/base", "platform-config")
	traced.matchTheLog(t, news)
}

// tellNothing looks for texts that have no place in a trace.
func (s *spans) tellNothing(t *testing.T, texts ...string) {
	t.Helper()
	for _, o := range s.all {
		all := fmt.Sprint(o.Name(), o.Attributes(), o.Status(), o.Events())
		for _, text := range texts {
			if strings.Contains(all, text) {
				t.Errorf("the span %s tells %q: %s", o.Name(), text, all)
			}
		}
	}
}

// matchTheLog finds the verdict that changed last in the log by its trace.
func (s *spans) matchTheLog(t *testing.T, news *tidings) {
	t.Helper()
	changes := news.of("msg", "verdict changed")
	last := changes[len(changes)-1]
	event := fmt.Sprint(last["event"])
	if !strings.HasPrefix(event, "facts/kube.prod.kustomization.flux-system.platform-config@") {
		t.Errorf("the verdict changed because of the event %s", event)
	}
	for _, o := range s.all {
		if o.Name() == "evaluate" && o.SpanContext().TraceID().String() == last["traceId"] {
			return
		}
	}
	t.Errorf("no evaluation is in the trace that the log names: %v", last)
}
