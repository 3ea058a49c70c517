//go:build e2e

package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestRules runs the tests of the alerts with promtool, on the rules as the
// Prometheus operator hands them to Prometheus.
func TestRules(t *testing.T) {
	monitoring := filepath.Join(root, "deploy", "components", "monitoring")
	text, err := os.ReadFile(filepath.Join(monitoring, "rules.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var resource struct {
		Spec map[string]any `json:"spec"`
	}
	if err := yaml.Unmarshal(text, &resource); err != nil {
		t.Fatal(err)
	}
	rules, err := yaml.Marshal(resource.Spec)
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile(filepath.Join(monitoring, "rules_test.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{"rules.yaml": rules, "rules_test.yaml": tests} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tool, err := filepath.Abs(filepath.Join(root, "tools", "tool"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"check", "rules", "rules.yaml"}, {"test", "rules", "rules_test.yaml"}} {
		cmd := exec.CommandContext(t.Context(), tool, append([]string{"promtool"}, args...)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", args[0], err, out)
		}
	}
}
