package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var (
	// example is a command and what it prints.
	example = regexp.MustCompile("(?s)(```sh\ncurl -sS -H @header 'https://signalbox\\.example\\.org([^'\n]+)' \\| jq(?: '\\{([^}\n]+)\\}')?\n```\n\n```json\n)(.*?)(```)")
	// resources is the table of them, after its comment.
	resources = regexp.MustCompile(`(?s)(<!-- resources: [^\n]*-->\n)(?:\n\|.*?\n)?(\n[^|\n])`)
)

// TestDocument keeps the examples and the table of docs/api.md true.
// "go test ./internal/api -run TestDocument -update" writes them.
func TestDocument(t *testing.T) {
	path := filepath.Join(root, "docs", "api.md")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	w := theWorld(t)
	h := w.handler(t)
	s := newSchemas(t, h)
	shown := map[string]bool{}
	want := example.ReplaceAllStringFunc(string(text), func(block string) string {
		m := example.FindStringSubmatch(block)
		r := get(t, h, m[2])
		shown[matching(t, s, m[2])] = true
		return m[1] + printed(t, r.Body.Bytes(), m[3]) + m[5]
	})
	want = resources.ReplaceAllStringFunc(want, func(block string) string {
		m := resources.FindStringSubmatch(block)
		return m[1] + "\n" + table(s) + m[2]
	})
	if diff := cmp.Diff(slices.Sorted(maps.Keys(s.paths)), slices.Sorted(maps.Keys(shown))); diff != "" {
		t.Errorf("not every resource has an example (-documented +shown):\n%s", diff)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, string(text)); diff != "" {
		t.Errorf("is stale; run: go test ./internal/api -run TestDocument -update\n(-want +got):\n%s", diff)
	}
}

// matching returns the documented path that an address is of.
func matching(t *testing.T, s *schemas, target string) string {
	t.Helper()
	mux := http.NewServeMux()
	for path := range s.paths {
		mux.HandleFunc("GET "+path, func(http.ResponseWriter, *http.Request) {})
	}
	_, pattern := mux.Handler(httptest.NewRequest(http.MethodGet, target, nil))
	if pattern == "" {
		t.Errorf("%s is of no resource", target)
	}
	return strings.TrimPrefix(pattern, "GET ")
}

// printed is what jq prints of an answer: all of it, or the fields that are named.
func printed(t *testing.T, body []byte, fields string) string {
	t.Helper()
	if fields != "" {
		var all map[string]json.RawMessage
		if err := json.Unmarshal(body, &all); err != nil {
			t.Fatal(err)
		}
		var parts []string
		for f := range strings.SplitSeq(fields, ", ") {
			if all[f] == nil {
				t.Errorf("an example names the field %s, which the answer does not have", f)
			}
			parts = append(parts, fmt.Sprintf("%q:%s", f, all[f]))
		}
		body = []byte("{" + strings.Join(parts, ",") + "}")
	}
	var b bytes.Buffer
	if err := json.Indent(&b, bytes.TrimSpace(body), "", "  "); err != nil {
		t.Fatal(err)
	}
	return b.String() + "\n"
}

// table lists the resources with what they are.
func table(s *schemas) string {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, path := range slices.Sorted(maps.Keys(s.paths)) {
		op := s.paths[path].(map[string]any)["get"].(map[string]any)
		var names []string
		parameters, _ := op["parameters"].([]any)
		for _, p := range parameters {
			if p := p.(map[string]any); p["in"] == "query" {
				names = append(names, "`"+p["name"].(string)+"`")
			}
		}
		text := op["summary"].(string)
		if len(names) > 0 {
			text += ": " + strings.Join(names, ", ")
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", path, text)
	}
	return b.String()
}
