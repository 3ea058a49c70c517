package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/recording"
)

const (
	observability = "../../docs/observability.md"
	sample        = "../../deploy/examples/recording.jsonl"
)

// TestDocumentedOutput compares what the document shows of bot events and bot replay
// with what they print of the recording of the examples. With -update it is written.
func TestDocumentedOutput(t *testing.T) {
	data, err := os.ReadFile(observability)
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	out, errOut, code := runs(t.Context(), t, "replay", sample)
	if code != exitNotClear || errOut != "" {
		t.Errorf("exit code %d: %s", code, errOut)
	}
	for after, want := range map[string]string{
		"$ bot events --config signalbox.yaml --pull 'alice/home-gitops#12' --since 1d\n": shownOf(t, sample),
		"$ bot replay deploy/examples/recording.jsonl\n":                                  out,
	} {
		head, rest, ok := strings.Cut(text, after+"```\n\n```text\n")
		if !ok {
			t.Fatalf("%s does not show what comes after %s", observability, after)
		}
		got, tail, _ := strings.Cut(rest, "```\n")
		if *update {
			text = head + after + "```\n\n```text\n" + want + "```\n" + tail
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("after %s(-printed +documented):\n%s", after, diff)
		}
	}
	if *update {
		if err := os.WriteFile(observability, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// shownOf prints the lines of a recording about one pull request, as bot events does.
func shownOf(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	r, err := recording.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	w := &watch{filter: recording.Filter{Repo: "alice/home-gitops", Number: 12}}
	var out bytes.Buffer
	for {
		l, _, err := r.Next()
		if errors.Is(err, io.EOF) {
			return out.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if a := w.names.About(l); w.filter.Wanted(l, a) {
			if err := w.print(&out, l, a); err != nil {
				t.Fatal(err)
			}
		}
	}
}
