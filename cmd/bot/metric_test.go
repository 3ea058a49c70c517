package main

import (
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/config"
	"signalbox/internal/kube"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// metricsDocument lists the metrics.
const metricsDocument = "../../docs/metrics.md"

// family is a row of the list.
type family struct{ name, kind, labels, help string }

func (f family) row() string {
	labels := ""
	if f.labels != "" {
		labels = "`" + strings.ReplaceAll(f.labels, ",", "`, `") + "`"
	}
	return fmt.Sprintf("| `%s` | %s | %s | %s |\n", f.name, f.kind, labels, f.help)
}

// TestMetricsAreTheDocumentedOnes compares what the whole program registers with the
// list, both ways. With -update it writes the list.
func TestMetricsAreTheDocumentedOnes(t *testing.T) {
	families := registered(t, wholeProgram(t))
	var table strings.Builder
	for _, f := range families {
		table.WriteString(f.row())
	}
	data, err := os.ReadFile(metricsDocument)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), tableHead)
	if !ok {
		t.Fatalf("%s has no table that begins with\n%s", metricsDocument, tableHead)
	}
	list, after, _ := strings.Cut(rest, "\n\n")
	if *update {
		text := head + tableHead + strings.TrimSuffix(table.String(), "\n") + "\n\n" + after
		if err := os.WriteFile(metricsDocument, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table.String(), list+"\n"); diff != "" {
		t.Errorf("the list is not what is registered; see it through, and run: go test -tags goolm ./cmd/bot -run %s -update\n(-registered +documented):\n%s", t.Name(), diff)
	}
}

const tableHead = "| Metric | Type | Labels | |\n|---|---|---|---|\n"

// wholeProgram wires everything that signalbox has, and runs nothing of it.
func wholeProgram(t *testing.T) *prometheus.Registry {
	t.Helper()
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	nowhere := &url.URL{Scheme: "http", Host: listener.Addr().String(), Path: "/"}
	c := &config.Config{
		Gitea:        config.Gitea{URL: nowhere, Token: secret.New("a token"), Timeout: time.Second, Budget: 5000},
		Repositories: []config.Repository{{Owner: owner, Name: repoName}},
		Timing:       config.Timing{Reconcile: time.Hour, ClusterSilence: time.Minute},
		Chat: config.Chat{
			Slack:  &config.Slack{BotToken: secret.New("xoxb-a-token"), AppToken: secret.New("xapp-a-token"), APIURL: nowhere.String()},
			Matrix: &config.Matrix{Homeserver: nowhere, Token: secret.New("a token")},
		},
	}
	cluster := kubetest.New()
	a, err := newApp(t.Context(), appConfig{
		config: c, listener: listener, log: bustest.Logger(t), makeAdapters: adaptersOf(c),
		clusters: []kube.Config{{Cluster: "prod", Client: cluster.Client(), Probe: cluster.Probe, Discovery: cluster.Discovery()}},
		agents:   []string{"far"},
		bus:      bus.Config{Embedded: bus.Embedded{Dir: t.TempDir(), SyncInterval: time.Minute}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	a.routes()
	return a.registry
}

var described = regexp.MustCompile(`^Desc\{fqName: "([^"]+)", help: (".*"), unit: ".*", constLabels: \{(.*)\}, variableLabels: \{(.*)\}\}$`)

// registered returns signalbox's own families, by name.
func registered(t *testing.T, registry *prometheus.Registry) []family {
	t.Helper()
	kinds := gathered(t, registry)
	descs := make(chan *prometheus.Desc)
	go func() {
		registry.Describe(descs)
		close(descs)
	}()
	byName := map[string]family{}
	for d := range descs {
		m := described.FindStringSubmatch(d.String())
		if m == nil {
			t.Fatalf("%s is not understood", d)
		}
		if !strings.HasPrefix(m[1], "signalbox_") {
			continue
		}
		var labels []string
		for l := range strings.SplitSeq(m[3]+","+m[4], ",") {
			if name, _, _ := strings.Cut(l, "="); name != "" {
				labels = append(labels, name)
			}
		}
		help, err := strconv.Unquote(m[2])
		if err != nil {
			t.Fatal(err)
		}
		f := family{name: m[1], kind: kinds[m[1]], labels: strings.Join(labels, ","), help: help}
		if f.kind == "" {
			f.kind = kindByName(f.name)
		}
		if other, ok := byName[f.name]; ok && other != f {
			t.Errorf("%s is registered as %v and as %v", f.name, other, f)
		}
		byName[f.name] = f
	}
	var out []family
	for _, f := range byName {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b family) int { return strings.Compare(a.name, b.name) })
	return out
}

// kindByName is the type of a family that has no value yet. TestMetricsOfALife sees
// whether that is true.
func kindByName(name string) string {
	switch {
	case strings.HasSuffix(name, "_total"):
		return "counter"
	case strings.HasSuffix(name, "_seconds") && !strings.HasSuffix(name, "_oldest_seconds"):
		return "histogram"
	}
	return "gauge"
}

// gathered returns the types of the families that have values.
func gathered(t *testing.T, registry prometheus.Gatherer) map[string]string {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]string{}
	for _, f := range families {
		kinds[f.GetName()] = strings.ToLower(f.GetType().String())
	}
	return kinds
}

// TestMetricsOfALife looks at what is told while signalbox works: the types are those
// of the list, the names are as Prometheus advises, and no label grows with pull
// requests or people.
func TestMetricsOfALife(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{adjust: func(c *config.Config) { c.Gitea.Budget = 1000 }})
	number := w.open("a", clusterChange)
	w.shows(number, "success", "pending")
	w.say(number, "alice", "/hold because of the weather")
	w.eventually("the hold is counted", func() string {
		if n := w.metric(`signalbox_decisions_total{kind="hold"}`); n != 1 {
			return fmt.Sprint(n)
		}
		return ""
	})
	w.quiet()

	list, err := os.ReadFile(metricsDocument)
	w.must(err)
	for name, kind := range gathered(t, w.app.registry) {
		if strings.HasPrefix(name, "signalbox_") && !strings.Contains(string(list), "| `"+name+"` | "+kind+" |") {
			t.Errorf("%s is a %s, which the list does not say", name, kind)
		}
	}
	problems, err := testutil.GatherAndLint(w.app.registry)
	w.must(err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "signalbox_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for labels, want := range map[string]float64{
		`signalbox_verdict_changes_total{from="none",to="waiting"}`: 1,
		`signalbox_decisions_total{kind="override"}`:                0,
		`signalbox_pulls{state="waiting"}`:                          1,
		`signalbox_pulls{state="clear"}`:                            0,
		`signalbox_cluster_silent{cluster="prod"}`:                  0,
		`signalbox_bus_dead_letters_kept{}`:                         0,
		`signalbox_bus_consumer_oldest_seconds{consumer="work"}`:    0,
		`signalbox_gitea_budget_calls{}`:                            1000,
	} {
		if got := w.metric(labels); got != want {
			t.Errorf("%s is %v, want %v", labels, got, want)
		}
	}
	for _, labels := range []string{`signalbox_bus_events_total{result="ok",type="pull.changed"}`, `signalbox_bus_events_total{result="ok",type="comment.changed"}`} {
		if got := w.metric(labels); got < 1 {
			t.Errorf("%s is %v, want at least 1", labels, got)
		}
	}
	left, silence := w.metric("signalbox_gitea_budget_left_calls{}"), w.metric(`signalbox_cluster_silence_seconds{cluster="prod"}`)
	if left >= 1000 || left < 800 || silence < 0 || silence > 30 {
		t.Errorf("%v calls are left, and the cluster is silent for %v", left, silence)
	}
	w.unbounded("7", "bob", "alice", "Move the profile", fmt.Sprintf("#%d", number))
}

// metric returns the value of a metric that is written with its labels sorted.
func (w *world) metric(name string) float64 {
	w.t.Helper()
	value, ok := w.hasMetric(name)
	if !ok {
		w.t.Fatalf("there is no %s", name)
	}
	return value
}

func (w *world) hasMetric(name string) (value float64, ok bool) {
	w.t.Helper()
	families, err := w.app.registry.Gather()
	w.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName()+"{"+labelsOf(m)+"}" == name {
				return m.GetCounter().GetValue() + m.GetGauge().GetValue(), true
			}
		}
	}
	return 0, false
}

// reconciled waits for the end of the first reconcile, so that it finds no pull request
// before its webhook does.
func (w *world) reconciled() {
	w.t.Helper()
	w.eventually("the first reconcile is done", func() string {
		if n, _ := w.hasMetric(`signalbox_bus_handled_total{consumer="reconcile",result="ok"}`); n == 0 {
			return "it is not"
		}
		return ""
	})
}

func labelsOf(m *dto.Metric) string {
	var out []string
	for _, l := range m.GetLabel() {
		out = append(out, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
	}
	return strings.Join(out, ",")
}

// unbounded looks for labels that name a pull request or a person.
func (w *world) unbounded(values ...string) {
	w.t.Helper()
	families, err := w.app.registry.Gather()
	w.must(err)
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if slices.Contains(values, l.GetValue()) {
					w.t.Errorf("%s has a label %s=%q, of which there are more and more", f.GetName(), l.GetName(), l.GetValue())
				}
			}
		}
	}
}

// TestLateWorkShows slows Gitea down, and looks at how old the work is said to be.
func TestLateWorkShows(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	number := w.open("a", clusterChange)
	w.shows(number, "success", "pending")
	w.quiet()
	const oldest = `signalbox_bus_consumer_oldest_seconds{consumer="work"}`
	w.forge.Slow(time.Second)
	w.must(w.app.bus.Work().Soon(t.Context(), bus.Item{Ref: pull.Ref{RepoID: w.repo.ID, Number: number}, Kind: bus.Full}))
	w.eventually("work that is in hand is seen", func() string {
		if w.metric(oldest) > 0 {
			return ""
		}
		return "none is"
	})
	w.forge.Slow(0)
	w.eventually("it is done", func() string {
		if age := w.metric(oldest); age > 0 {
			return fmt.Sprintf("some is %v seconds old", age)
		}
		return ""
	})
}
