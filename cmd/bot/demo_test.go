package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/demo"
)

var update = flag.Bool("update", false, "write the golden files")

// playDemo plays the demo without pauses and returns what it shows, with what
// differs from run to run replaced. Nothing of it may be left behind.
func playDemo(ctx context.Context, t *testing.T, o demo.Options) (string, error) {
	t.Helper()
	var out bytes.Buffer
	log := &tailLog{}
	dir := t.TempDir()
	o.Out, o.Width = &out, defaultWidth
	err := runDemo(ctx, dir, o, log)
	if left, globErr := filepath.Glob(filepath.Join(dir, "*")); globErr != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, globErr)
	}
	text := normalDemo(out.String())
	if t.Failed() || err != nil {
		t.Logf("shown:\n%s\nlog:\n%s", text, log.tail())
	}
	return text, err
}

var (
	shaPattern   = regexp.MustCompile(`\b[0-9a-f]{10}(?:[0-9a-f]{30})?\b`)
	timePatterns = []struct {
		pattern *regexp.Regexp
		with    string
	}{
		{regexp.MustCompile(`\d{4}-\d\d-\d\d\b`), "2026-01-02"},
		{regexp.MustCompile(`\d\d:\d\d UTC`), "15:04 UTC"},
		{regexp.MustCompile(` +after \d+ ms`), " after N ms"},
		{regexp.MustCompile(`It took \d+ s`), "It took N s"},
		{regexp.MustCompile(`127\.0\.0\.1:\d+`), "127.0.0.1:PORT"},
	}
)

// normalDemo numbers the commits in the order in which they are shown, and
// replaces times and ports, without changing the width of what is wrapped.
func normalDemo(text string) string {
	commits := map[string]string{}
	text = shaPattern.ReplaceAllStringFunc(text, func(sha string) string {
		name, known := commits[sha[:10]]
		if !known {
			name = fmt.Sprintf("<commit-%d>", len(commits)+1)
			commits[sha[:10]] = name
		}
		return name + strings.Repeat("~", len(sha)-10)
	})
	for _, p := range timePatterns {
		text = p.pattern.ReplaceAllString(text, p.with)
	}
	return text
}

// TestDemo plays the whole story: a step that does not come true is an error.
// It is interrupted at the prompt, while the input gives nothing.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	end := make(chan struct{})
	defer close(end)
	got, err := playDemo(ctx, t, demo.Options{In: &endlessReader{asked: cancel, end: end}})
	if err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "demo.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("the demo shows something else; run the test with -update if that is meant (-want +got):\n%s", d)
	}
}

// TestDemoPrompt plays the story and then types commands.
func TestDemoPrompt(t *testing.T) {
	t.Parallel()
	talk := []struct {
		command string
		shows   []string
	}{
		{"help", []string{"approve NAME", "forge", "silence"}},
		{"aprove", []string{`There is no command "aprove"; did you mean "approve"?`}},
		{"push now", []string{"Write push"}},
		{"", nil},
		{"recover", []string{"✔ success signalbox / preconditions (main)", "GitRepository flux-system/flux-system on prod is Ready"}},
		{"approve bob", []string{"That is refused: approve your own pull is not allowed"}},
		{"approve nobody", []string{`That is refused: there is no account "nobody"`}},
		{"approve carol", []string{"✔ success signalbox / approval (main)", "Clear to merge", "Approved by carol"}},
		{"forge", []string{"✔ success signalbox / preconditions (main)", `mallory posted the status "signalbox / preconditions (main)" as success`}},
		{"edit", []string{"signalbox put its comment back, word for word"}},
		{"reject carol", []string{"✖ failure signalbox / approval (main)", "carol asks for changes"}},
		{"dismiss", []string{"● pending signalbox / approval (main)", "1 approval by alice or carol"}},
		{"suspend", []string{"● pending signalbox / preconditions (main)", "platform-config on prod is suspended"}},
		{"fail", []string{"no matches for kind"}},
		{"progress", []string{"posted nothing, and did not call Gitea once"}},
		{"silence", []string{"nothing has been heard from cluster prod"}},
		{"recover", []string{"✔ success signalbox / preconditions (main)"}},
		{"push", []string{"✔ success signalbox / preconditions (main)", "● pending signalbox / approval (main)"}},
		{"SHOW", []string{"platform-config │ True", "● pending signalbox / approval (main)", "Evidence: platform-config is Ready on prod (folded"}},
		{"quit", nil},
		{"after the end", nil},
	}
	var typed strings.Builder
	for _, line := range talk {
		typed.WriteString(line.command + "\n")
	}
	got, err := playDemo(t.Context(), t, demo.Options{In: strings.NewReader(typed.String())})
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(got, "signalbox> ")[1:]
	// What is typed after quit is not read.
	talk = talk[:len(talk)-1]
	if len(answers) != len(talk) {
		t.Fatalf("%d answers to %d commands:\n%s", len(answers), len(talk), got)
	}
	for i, line := range talk {
		for _, text := range line.shows {
			if !strings.Contains(answers[i], text) {
				t.Errorf("%q does not show %q:\n%s", line.command, text, answers[i])
			}
		}
	}
}

// TestDemoFails sees that what does not come true in time fails the demo.
func TestDemoFails(t *testing.T) {
	t.Parallel()
	_, err := playDemo(t.Context(), t, demo.Options{Deadline: time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), "signalbox does not know the cluster after") {
		t.Errorf("error = %v, want one that says that the cluster is not known", err)
	}
}

// brokenWriter is a reader who has gone.
type brokenWriter struct{}

var errBroken = errors.New("broken")

func (brokenWriter) Write([]byte) (int, error) { return 0, errBroken }

func TestDemoWithoutReader(t *testing.T) {
	t.Parallel()
	err := runDemo(t.Context(), t.TempDir(), demo.Options{Out: brokenWriter{}}, &tailLog{})
	if !errors.Is(err, demo.ErrOutput) || !errors.Is(err, errBroken) {
		t.Errorf("error = %v, want %v", err, demo.ErrOutput)
	}
}

// endlessReader gives no line before the end; it says when it is asked for one.
type endlessReader struct {
	asked func()
	end   <-chan struct{}
}

func (r *endlessReader) Read([]byte) (int, error) {
	r.asked()
	<-r.end
	return 0, io.EOF
}
