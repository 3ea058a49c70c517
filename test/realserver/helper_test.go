package realserver

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/clientcmd"
)

func TestReservedPortsDiffer(t *testing.T) {
	ports, err := reservePorts(50)
	if err != nil {
		t.Fatal(err)
	}
	defer releasePorts(ports)
	seen := map[int]bool{}
	for _, p := range ports {
		if seen[p.number] || p.number < firstPort || p.number > lastPort {
			t.Errorf("port %d was given twice or is out of range", p.number)
		}
		seen[p.number] = true
	}
}

func TestRenderINI(t *testing.T) {
	got, err := renderINI(
		map[string]string{".RUN_MODE": "prod", "api.DEFAULT_PAGING_NUM": "30", "cron.update_checker.ENABLED": "false"},
		map[string]string{"api.DEFAULT_PAGING_NUM": "5"},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := "RUN_MODE = prod\n\n[api]\nDEFAULT_PAGING_NUM = 5\n\n[cron.update_checker]\nENABLED = false\n"
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []map[string]string{{"RUN_MODE": "prod"}, {"a.B": "c\nd = e"}} {
		if _, err := renderINI(bad); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// TestNATSConfig: what the harness puts in the place of the example's values is there, once each.
func TestNATSConfig(t *testing.T) {
	got, err := natsConfig("listen: 1\nname: a # of listen\n", map[string]string{"listen: 1": "listen: 2", "name: a": "name: b"})
	if err != nil || got != "listen: 2\nname: b # of listen\n" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, missing := range []string{"port: 1", "listen"} {
		if _, err := natsConfig("listen: 1 # listen\n", map[string]string{missing: ""}); err == nil || !strings.Contains(err.Error(), missing) {
			t.Errorf("%q: %v", missing, err)
		}
	}
}

func TestTokenIn(t *testing.T) {
	got, err := tokenIn("New user 'x' has been successfully created!\nAccess token was successfully created... 0123abc\n")
	if err != nil || got != "0123abc" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := tokenIn("something else\n"); err == nil || !strings.Contains(err.Error(), "something else") {
		t.Errorf("got %v", err)
	}
}

func TestDecode(t *testing.T) {
	got, err := decode([]byte("---\n# nothing\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: home}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: b}\n"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, o := range got {
		names = append(names, refOf(o).String())
	}
	if diff := cmp.Diff([]string{"ConfigMap home/a", "Namespace b"}, names); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	for _, bad := range []string{"a: [", "just text", "metadata: {name: a}"} {
		if _, err := decode([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func TestHasCondition(t *testing.T) {
	with := func(conditions ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": conditions}}}
	}
	ready := map[string]any{"type": "Ready", "status": "False", "reason": "BuildFailed", "message": "no such file"}
	tests := []struct {
		name   string
		object *unstructured.Unstructured
		status string
		met    bool
		why    string
	}{
		{"no status", &unstructured.Unstructured{Object: map[string]any{}}, "True", false, "it has no condition Ready"},
		{"other condition", with(map[string]any{"type": "Healthy"}), "True", false, "it has no condition Ready"},
		{"other status", with(ready), "True", false, "Ready is False (BuildFailed: no such file)"},
		{"same status", with(ready), "False", true, "Ready is False (BuildFailed: no such file)"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			met, why := HasCondition("Ready", tt.status)(tt.object)
			if met != tt.met || why != tt.why {
				t.Errorf("got %t, %q; want %t, %q", met, why, tt.met, tt.why)
			}
		})
	}
}

func TestKubeconfigWithSeveralContexts(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubeconfig")
	one := Access{Server: "https://127.0.0.1:1", CA: []byte("ca"), Token: "t1"}
	if err := WriteKubeconfig(path, map[string]Access{"dev": one, "prod": one.Via("127.0.0.1:2")}); err != nil {
		t.Fatal(err)
	}
	c, err := clientcmd.LoadFromFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for name, context := range c.Contexts {
		got[name] = c.Clusters[context.Cluster].Server + " " + c.AuthInfos[context.AuthInfo].Token
	}
	want := map[string]string{"dev": "https://127.0.0.1:1 t1", "prod": "https://127.0.0.1:2 t1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if c.CurrentContext != "" {
		t.Errorf("context %s is current, none should be", c.CurrentContext)
	}
}

func TestNamesInAWorldDiffer(t *testing.T) {
	var w World
	t.Run("A long name, with (special) characters", func(t *testing.T) {
		a, b := w.Name(t), w.Name(t)
		if a != "namesinaworlddiffer-a-long-n-1" || b != "namesinaworlddiffer-a-long-n-2" {
			t.Errorf("got %q and %q", a, b)
		}
	})
}
