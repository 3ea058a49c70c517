package renovate

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files anew")

// logs are written by Renovate 39.264.1: the .jsonl with LOG_FORMAT=json against
// a Gitea, the local ones as text on a folder. The other .txt are the .jsonl in
// the text form, made by Renovate's own function for it.
func logs(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/logs/*")
	if err != nil || len(names) == 0 {
		t.Fatal("no logs", err)
	}
	all := map[string][]byte{}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all[filepath.Base(name)] = data
	}
	return all
}

func analyze(t testing.TB, log string) Report {
	t.Helper()
	report, err := Analyze(strings.NewReader(log), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestAnalyzeGolden(t *testing.T) {
	for name, data := range logs(t) {
		t.Run(name, func(t *testing.T) {
			got, err := json.MarshalIndent(analyze(t, string(data)), "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join("testdata", "golden", name+".json")
			if *update {
				if err := os.WriteFile(file, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The golden files are written by the program; these are the truth.
var modes = map[string]Mode{
	"full-info.jsonl":          ModeFull,
	"full-info.txt":            ModeFull,
	"full-debug-excerpt.jsonl": ModeFull,
	"full-debug-excerpt.txt":   ModeFull,
	"true-info.jsonl":          ModeFull,
	"true-info.txt":            ModeFull,
	"extract-info.jsonl":       ModeExtract,
	"extract-info.txt":         ModeExtract,
	"local-extract-info.txt":   ModeExtract,
	"local-lookup-debug.txt":   ModeLookup,
	"local-lookup-info.txt":    ModeUnknown,
	"live-empty.jsonl":         ModeLive,
	"live-empty.txt":           ModeLive,
	"bad-token.jsonl":          ModeUnknown,
	"bad-token.txt":            ModeUnknown,
	"no-token.jsonl":           ModeUnknown,
	"no-token.txt":             ModeUnknown,
}

func TestAnalyzeModes(t *testing.T) {
	got := map[string]Mode{}
	for name, data := range logs(t) {
		got[name] = analyze(t, string(data)).Mode
	}
	if diff := cmp.Diff(modes, got); diff != "" {
		t.Error(diff)
	}
}

// Whatever a runner does to the lines, the report is the same but for places and
// times.
func TestAnalyzeThroughRunners(t *testing.T) {
	each := func(change func(i int, line string) string) func(string) string {
		return func(log string) string {
			var b strings.Builder
			i := 0
			for line := range strings.Lines(log) {
				b.WriteString(change(i, strings.TrimSuffix(line, "\n")) + "\n")
				i++
			}
			return b.String()
		}
	}
	start := time.Date(2026, 11, 30, 14, 45, 22, 137_000_000, time.UTC)
	stampOf := func(i int) string {
		return start.Add(time.Duration(i) * time.Millisecond).Format("2006-01-02T15:04:05.0000000Z")
	}
	ways := map[string]func(string) string{
		"Gitea":         each(func(i int, line string) string { return stampOf(i) + " " + line }),
		"CRLF":          each(func(_ int, line string) string { return line + "\r" }),
		"Gitea, CRLF":   each(func(i int, line string) string { return stampOf(i) + " " + line + "\r" }),
		"offset":        each(func(_ int, line string) string { return "2026-11-30T14:45:22+01:00 " + line }),
		"byte order":    func(log string) string { return "\ufeff" + log },
		"no last break": func(log string) string { return strings.TrimSuffix(log, "\n") },
		"coloured": each(func(_ int, line string) string {
			if level, rest, ok := strings.Cut(line, ": "); ok && len(level) == 5 {
				return "\x1b[32m" + level + "\x1b[39m: " + rest
			}
			return line
		}),
		"among noise": func(log string) string {
			return "##[group]Run renovate\nnpm warn deprecated x\n::endgroup::\n" + log + "⭐ Run Post\nJob succeeded\n"
		},
	}
	for name, data := range logs(t) {
		want := normal(analyze(t, string(data)))
		for way, change := range ways {
			t.Run(name+"/"+way, func(t *testing.T) {
				if diff := cmp.Diff(want, normal(analyze(t, change(string(data))))); diff != "" {
					t.Error(diff)
				}
			})
		}
	}
}

// The text form says the same as the JSON form, but for the times.
func TestAnalyzeTextAsJSON(t *testing.T) {
	all := logs(t)
	for name, data := range all {
		base, ok := strings.CutSuffix(name, ".jsonl")
		if !ok {
			continue
		}
		t.Run(base, func(t *testing.T) {
			want, got := normal(analyze(t, string(data))), normal(analyze(t, string(all[base+".txt"])))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// normal returns a report without lines, times and sizes.
func normal(r Report) Report {
	encoded, _ := json.Marshal(r)
	var tree any
	_ = json.Unmarshal(encoded, &tree)
	strip(tree)
	encoded, _ = json.Marshal(tree)
	var out Report
	_ = json.Unmarshal(encoded, &out)
	return out
}

func strip(tree any) {
	switch tree := tree.(type) {
	case map[string]any:
		for _, key := range []string{"Line", "Lines", "Bytes", "Started", "Finished", "Format"} {
			if _, isNode := tree[key].(map[string]any); !isNode {
				delete(tree, key)
			}
		}
		if why, ok := tree["Why"].(string); ok {
			_, tree["Why"], _ = strings.Cut(why, "line ")
			if _, rest, ok := strings.Cut(tree["Why"].(string), ": "); ok {
				tree["Why"] = rest
			}
		}
		for _, v := range tree {
			strip(v)
		}
	case []any:
		for _, v := range tree {
			strip(v)
		}
	}
}

func TestAnalyzeTellsWhatWouldBeDone(t *testing.T) {
	report := analyze(t, string(logs(t)["full-info.jsonl"]))
	repositories := report.Repositories("boss/infra")
	if len(repositories) != 1 {
		t.Fatalf("got %d repositories", len(repositories))
	}
	got := repositories[0]
	wantActions := []Action{
		{What: "commit files to branch renovate/is-number-7.x", Branch: "renovate/is-number-7.x"},
		{What: "close Dependency Dashboard"},
		{What: "save repository cache."},
	}
	if diff := cmp.Diff(wantActions, got.Actions); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]Count{"npm": {Files: 1, Dependencies: 1}}, got.Managers); diff != "" {
		t.Error(diff)
	}
	if !got.Begun || !got.Ended || report.Runs[0].Version != "39.264.1" || !report.Runs[0].Ended {
		t.Errorf("begun %v, ended %v, version %q, run ended %v", got.Begun, got.Ended, report.Runs[0].Version, report.Runs[0].Ended)
	}
	took := report.Runs[0].Finished.Sub(report.Runs[0].Started)
	if took != 1214*time.Millisecond {
		t.Errorf("the run took %v", took)
	}
}

func TestAnalyzeTellsWhatWasDone(t *testing.T) {
	got := analyze(t, string(logs(t)["live-empty.txt"])).Runs[0].Repositories[0]
	want := []Branch{{Name: "renovate/is-number-7.x", Title: "Update dependency is-number to v7", Pull: 1}}
	if diff := cmp.Diff(want, got.Branches); diff != "" {
		t.Error(diff)
	}
	if len(got.Actions) != 2 || !got.Actions[0].Done || !got.Actions[1].Done {
		t.Errorf("actions %+v", got.Actions)
	}
}

func TestAnalyzeFailures(t *testing.T) {
	for name, detail := range map[string]string{
		"no-token.jsonl":  "You must configure a Gitea personal access token",
		"bad-token.jsonl": "Authentication failure",
		"bad-token.txt":   "Authentication failure",
	} {
		run := analyze(t, string(logs(t)[name])).Runs[0]
		if len(run.Failures) != 1 || !run.Failures[0].Fatal || run.Failures[0].Message != "Initialization error" || run.Failures[0].Detail != detail {
			t.Errorf("%s: failures %+v", name, run.Failures)
		}
		if !run.Failed || !run.Ended || run.Warnings != 1 {
			t.Errorf("%s: failed %v, ended %v, %d warnings", name, run.Failed, run.Ended, run.Warnings)
		}
		if !strings.Contains(run.Why, detail) {
			t.Errorf("%s: why %q", name, run.Why)
		}
	}
}

func TestAnalyzeUpdates(t *testing.T) {
	log := jsonLog(
		`"repository":"a/b","renovateVersion":"44.1.0","msg":"Repository started"`,
		`"repository":"a/b","branchesInformation":[{"branchName":"renovate/x","prNo":null,"prTitle":"Update x","result":"done","upgrades":[{"updateType":"major"},{"updateType":"minor"}]},{"branchName":"renovate/y","prNo":7,"prTitle":"Update y","result":"pr-limit-reached","upgrades":[{"updateType":"minor"}]}],"msg":"branches info extended"`,
	)
	got := analyze(t, log).Runs[0].Repositories[0]
	if diff := cmp.Diff(map[string]int{"major": 1, "minor": 2}, got.Updates); diff != "" {
		t.Error(diff)
	}
	want := []Branch{{Name: "renovate/x", Title: "Update x", Result: "done"}, {Name: "renovate/y", Title: "Update y", Pull: 7, Result: "pr-limit-reached"}}
	if diff := cmp.Diff(want, got.Branches); diff != "" {
		t.Error(diff)
	}
}

func TestAnalyzeReader(t *testing.T) {
	full := logs(t)["full-info.jsonl"]
	broken := errors.New("connection reset")
	report, err := Analyze(io.MultiReader(bytes.NewReader(full), iotest.ErrReader(broken)), Limits{})
	if !errors.Is(err, broken) || !report.Cut || report.Mode != ModeUnknown {
		t.Errorf("error %v, cut %v, mode %s", err, report.Cut, report.Mode)
	}
	slow, err := Analyze(iotest.OneByteReader(bytes.NewReader(full)), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(analyze(t, string(full)), slow); diff != "" {
		t.Error(diff)
	}
	if empty := analyze(t, ""); empty.Mode != ModeUnknown || empty.Why != "the log has no line of Renovate" {
		t.Errorf("empty: %+v", empty)
	}
}

// jsonLog makes lines of one process, at the level info where none is given.
func jsonLog(lines ...string) string { return jsonLogOf("1", lines...) }

func jsonLogOf(process string, lines ...string) string {
	var b strings.Builder
	for i, line := range lines {
		level := 30
		if rest, ok := strings.CutPrefix(line, "debug "); ok {
			level, line = 20, rest
		}
		before, message, _ := strings.Cut(line, `"msg":`)
		fmt.Fprintf(&b, `{"name":"renovate","hostname":"runner","pid":%s,"level":%d,"logContext":"c%s",%s"msg":%s,"time":"2026-11-30T14:45:%02d.000Z","v":0}`+"\n",
			process, level, process, before, message, i%60)
	}
	return b.String()
}
