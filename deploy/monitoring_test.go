package deploy

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	metricName = regexp.MustCompile(`\bsignalbox_[a-z0-9_]+`)
	metricRow  = regexp.MustCompile("(?m)^\\| `(signalbox_[a-z0-9_]+)` \\| [a-z]+ \\| ([^|]*)\\|")
	matched    = regexp.MustCompile(`(signalbox_[a-z0-9_]+)\{([^}]*)\}`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=|!=|=~|!~)\s*"`)
)

// documented are the metrics of docs/metrics.md, with their labels.
func documented(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range metricRow.FindAllStringSubmatch(string(text), -1) {
		out[m[1]] = m[2]
	}
	if len(out) < 20 {
		t.Fatalf("only %d metrics were found in the document", len(out))
	}
	return out
}

// known complains of metrics and labels of an expression that there are not.
func known(t *testing.T, where, expr string) {
	t.Helper()
	all := documented(t)
	base := func(name string) string {
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if histogram, ok := strings.CutSuffix(name, suffix); ok && strings.HasSuffix(histogram, "_seconds") {
				return histogram
			}
		}
		return name
	}
	for _, name := range metricName.FindAllString(expr, -1) {
		if _, ok := all[base(name)]; !ok {
			t.Errorf("%s asks for %s, which signalbox does not have", where, name)
		}
	}
	for _, m := range matched.FindAllStringSubmatch(expr, -1) {
		for _, label := range matcher.FindAllStringSubmatch(m[2], -1) {
			if !strings.Contains(all[base(m[1])], "`"+label[1]+"`") {
				t.Errorf("%s asks for the label %s of %s", where, label[1], m[1])
			}
		}
	}
}

type alert struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func alerts(t *testing.T) []alert {
	t.Helper()
	text, ok := render(t, "single").rest[schema.GroupKind{Group: "monitoring.coreos.com", Kind: "PrometheusRule"}]
	if !ok {
		t.Fatal("there is no PrometheusRule")
	}
	rule := decode(t, text, &struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Groups []struct {
				Name  string  `json:"name"`
				Rules []alert `json:"rules"`
			} `json:"groups"`
		} `json:"spec"`
	}{})
	var out []alert
	for _, g := range rule.Spec.Groups {
		out = append(out, g.Rules...)
	}
	return out
}

// TestAlerts: each asks for metrics that there are, and says what it means and
// what to do; all are in the document, and what the document names is asked for.
func TestAlerts(t *testing.T) {
	doc, err := os.ReadFile("../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("components/monitoring/rules_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range alerts(t) {
		known(t, a.Alert, a.Expr)
		for _, name := range []string{"summary", "description", "runbook"} {
			if strings.TrimSpace(a.Annotations[name]) == "" {
				t.Errorf("%s has no %s", a.Alert, name)
			}
		}
		if !slices.Contains([]string{"critical", "warning"}, a.Labels["severity"]) {
			t.Errorf("%s has the severity %q", a.Alert, a.Labels["severity"])
		}
		if !strings.Contains(string(doc), "| `"+a.Alert+"` |") {
			t.Errorf("docs/operations.md does not tell of %s", a.Alert)
		}
		if n := strings.Count(string(tests), "alertname=\""+a.Alert+"\", alertstate"); n < 2 {
			t.Errorf("%s has %d tests, want one when it fires and one when it does not", a.Alert, n)
		}
	}
}

func TestServiceMonitor(t *testing.T) {
	i := render(t, "single")
	monitor := decode(t, i.rest[schema.GroupKind{Group: "monitoring.coreos.com", Kind: "ServiceMonitor"}], &struct {
		metav1.TypeMeta   `json:",inline"`
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			Selector  *metav1.LabelSelector `json:"selector"`
			Endpoints []struct {
				Port     string `json:"port"`
				Path     string `json:"path"`
				Interval string `json:"interval"`
			} `json:"endpoints"`
		} `json:"spec"`
	}{})
	if len(i.services) != 1 {
		t.Fatalf("there are %d Services", len(i.services))
	}
	s := i.services[0]
	selects(t, "the ServiceMonitor", monitor.Spec.Selector, s.Labels)
	for _, e := range monitor.Spec.Endpoints {
		if e.Path != "/metrics" || !slices.ContainsFunc(s.Spec.Ports, func(p corev1.ServicePort) bool { return p.Name == e.Port }) {
			t.Errorf("it scrapes %s at %s", e.Path, e.Port)
		}
	}
	if monitor.Namespace != s.Namespace || len(monitor.Spec.Endpoints) != 1 {
		t.Errorf("it is in %s and has %d endpoints", monitor.Namespace, len(monitor.Spec.Endpoints))
	}
}

// TestDashboard: it is whole, no panel covers another, and each asks for metrics
// that there are.
func TestDashboard(t *testing.T) {
	m := render(t, "single").configMaps["signalbox-dashboard"]
	if m.Labels["grafana_dashboard"] != "1" {
		t.Error("Grafana does not find it")
	}
	var d struct {
		UID, Title string
		Panels     []struct {
			ID             int
			Type, Title    string
			GridPos        struct{ H, W, X, Y int }
			Description    string
			Targets        []struct{ RefID, Expr, LegendFormat string }
			DatasourceFrom struct{ UID string } `json:"datasource"`
		}
		Templating struct{ List []struct{ Name, Type string } }
	}
	if err := json.Unmarshal([]byte(m.Data["signalbox.json"]), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.Title == "" || len(d.Templating.List) != 1 || d.Templating.List[0].Name != "datasource" {
		t.Errorf("its head is %q, %q, %v", d.UID, d.Title, d.Templating)
	}
	ids, taken, rows := map[int]bool{}, map[[2]int]string{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, ok := taken[[2]int{x, y}]; ok || x >= 24 {
					t.Fatalf("%q covers %q, or leaves the page", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			rows[p.Title] = true
			continue
		}
		if len(p.Targets) == 0 || p.Description == "" || p.DatasourceFrom.UID != "${datasource}" {
			t.Errorf("panel %q shows nothing, or does not say what", p.Title)
		}
		for _, target := range p.Targets {
			if !metricName.MatchString(target.Expr) {
				t.Errorf("panel %q asks for %s", p.Title, target.Expr)
			}
			known(t, "panel "+p.Title, target.Expr)
		}
	}
	for _, row := range []string{"Evaluations", "Gitea", "Bus", "Clusters", "Chats"} {
		if !rows[row] {
			t.Errorf("there is no row %s", row)
		}
	}
}
