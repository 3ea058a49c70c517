//go:build e2e

package deploy

import (
	"bytes"
	"debug/buildinfo"
	"debug/elf"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestProgram: what is released needs nothing of the system, and does not say
// where it was built.
func TestProgram(t *testing.T) {
	binary, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = binary.Close() }()
	if libraries, err := binary.ImportedLibraries(); err != nil || len(libraries) > 0 {
		t.Errorf("it is linked with %q (%v)", libraries, err)
	}
	if slices.ContainsFunc(binary.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP }) {
		t.Error("it needs a dynamic linker")
	}
	here, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(content, []byte(here+"/")) {
		t.Errorf("it holds the path %s", here)
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range info.Settings {
		if strings.HasPrefix(s.Key, "vcs") {
			t.Errorf("it holds the state of the repository: %s=%s", s.Key, s.Value)
		}
	}
	version, err := exec.CommandContext(t.Context(), "git", "-C", root, "describe", "--tags", "--always", "--dirty").Output()
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), program, "version").Output()
	if err != nil || !strings.HasPrefix(string(out), "signalbox "+strings.TrimSpace(string(version))+" ") {
		t.Errorf("it says %q (%v), want the version %s", out, err, version)
	}
}

// TestBillOfMaterials: it names every module that is in the program.
func TestBillOfMaterials(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), filepath.Join(root, "tools", "tool"), "cyclonedx-gomod", "bin", "-json", "-std", "-noserial", "-notimestamp", program).Output()
	if err != nil {
		t.Fatal(err)
	}
	var bill struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct {
			Name    string `json:"name"`
			Version string `json:"version"`
		} `json:"components"`
	}
	if err := json.Unmarshal(out, &bill); err != nil || bill.BOMFormat != "CycloneDX" {
		t.Fatalf("%q, %v", bill.BOMFormat, err)
	}
	named := map[string]bool{}
	for _, c := range bill.Components {
		named[c.Name+" "+c.Version] = true
	}
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	if len(info.Deps) == 0 {
		t.Fatal("the program names no modules")
	}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		if !named[m.Path+" "+m.Version] {
			t.Errorf("it does not name %s %s", m.Path, m.Version)
		}
	}
}
