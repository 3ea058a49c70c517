package doctor_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocument keeps the table of docs/doctor.md complete.
func TestDocument(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "doctor.md"))
	if err != nil {
		t.Fatal(err)
	}
	var sources []string
	for _, pattern := range []string{"*.go", filepath.Join("..", "..", "cmd", "bot", "doctor*.go")} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, found...)
	}
	check := regexp.MustCompile(`Check: "([a-z-]+)"|a\.ok\("([a-z-]+)"`)
	seen := map[string]bool{}
	for _, path := range sources {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		source, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range check.FindAllStringSubmatch(string(source), -1) {
			name := m[1] + m[2]
			seen[name] = true
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/doctor.md lacks the check %q of %s", name, path)
			}
		}
	}
	if len(seen) < 20 {
		t.Errorf("only %d checks were found", len(seen))
	}
}
