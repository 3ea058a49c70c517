package docs

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// namedTest is a link to a test: its name, and the file.
var namedTest = regexp.MustCompile("\\[`((?:Test|Fuzz)[A-Za-z0-9_]+)`\\]\\(([^)]+)\\)")

// TestClaimsHaveTests: each claim about security names the tests that hold it, and they
// are where it says.
func TestClaimsHaveTests(t *testing.T) {
	text := documents(t)["docs/security.md"]
	claims, tested := 0, false
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		last := strings.TrimSpace(cells[len(cells)-1])
		switch {
		case !strings.HasPrefix(line, "|"):
			tested = false
			continue
		case last == "Test":
			tested = true
			continue
		case !tested || strings.Trim(last, "-") == "":
			continue
		}
		claims++
		if !namedTest.MatchString(last) {
			t.Errorf("no test is named for: %s", line)
		}
	}
	if claims < 40 {
		t.Errorf("only %d claims were found", claims)
	}
	for _, m := range namedTest.FindAllStringSubmatch(text, -1) {
		source, err := os.ReadFile(filepath.FromSlash(m[2]))
		if err != nil {
			t.Errorf("%s: %v", m[1], err)
			continue
		}
		if !strings.HasSuffix(m[2], "_test.go") || !strings.Contains(string(source), "\nfunc "+m[1]+"(") {
			t.Errorf("%s is not a test in %s", m[1], m[2])
		}
	}
}
