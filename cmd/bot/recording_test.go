package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/bus"
	"signalbox/internal/bus/bustest"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/config"
	"signalbox/internal/recording"
)

// runs executes a command of bot, which is ended when ctx ends, and returns what it
// prints and its exit code.
func runs(ctx context.Context, t testing.TB, args ...string) (out, errOut string, code int) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(&stdout)
	root.SetErr(&stderr)
	err := root.ExecuteContext(ctx)
	var exit exitCode
	switch {
	case errors.As(err, &exit):
		code = int(exit)
	case err != nil:
		code = exitFailure
		fmt.Fprintln(&stderr, err)
	}
	return stdout.String(), stderr.String(), code
}

// configFile writes a configuration of an embedded bus.
func configFile(t testing.TB, dir string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "signalbox.yaml")
	text := fmt.Sprintf(`gitea: {url: "https://gitea.example.org/", webhook: {manage: false}}
repositories: [{name: ops/home-gitops}]
clusters: [{name: prod, inCluster: true}]
bus: {embedded: {dir: %s}}
`, dir)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recorded follows the bus of the world into a file, from when it returns until stop is
// called.
func (w *world) recorded() (path string, stop func()) {
	w.t.Helper()
	path = filepath.Join(w.t.TempDir(), "recording.jsonl")
	ctx, cancel := context.WithCancel(w.t.Context())
	type result struct {
		errOut string
		code   int
	}
	done := make(chan result, 1)
	file := configFile(w.t, w.dir)
	go func() {
		_, errOut, code := runs(ctx, w.t, "events", "--config", file, "--export", path, "--follow")
		done <- result{errOut, code}
	}()
	w.eventually("the recording has begun", func() string {
		data, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(data, []byte(`{"kind":"now"`)) {
			return fmt.Sprint("it has not: ", err)
		}
		return ""
	})
	return path, func() {
		w.t.Helper()
		cancel()
		if r := <-done; r.code != 0 {
			w.t.Errorf("bot events ends with %d: %s", r.code, r.errOut)
		}
	}
}

var moment = regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z`)

// TestReplayDecidesAsItWasDecided records what happens to two pull requests, and
// evaluates it again.
func TestReplayDecidesAsItWasDecided(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{adjust: func(c *config.Config) { c.Bots = []string{"renovate"} }})
	number := w.open("a", clusterChange)
	other := w.open("b", map[string]string{"docs/a.md": "a\n"})
	w.shows(number, "success", "pending")
	w.shows(other, "success", "success")
	w.quiet()
	path, stop := w.recorded()
	w.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", "kustomize \x1b[31mbuild failed")
	w.shows(number, "pending", "pending", "build failed")
	w.approve(number, "alice")
	w.shows(number, "pending", "success")
	w.quiet() // What changes before the record is kept would be decided about twice.
	w.ready()
	w.shows(number, "success", "success")
	w.quiet()
	w.say(number, "alice", "/hold because of the weather")
	w.shows(number, "success", "pending", "because of the weather")
	w.quiet()
	stop()
	w.stop()
	w.must(os.Chmod(path, 0o400))

	out, errOut, code := runs(t.Context(), t, "replay", path)
	if code != exitNotClear || errOut != "" {
		t.Fatalf("exit code %d: %s\n%s", code, errOut, out)
	}
	var states []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "recorded is") {
			t.Errorf("a step is decided in another way: %s", line)
		}
		if m := regexp.MustCompile(`#1  (\w+ → )?(\w+) \(`).FindStringSubmatch(line); m != nil && (len(states) == 0 || states[len(states)-1] != m[2]) {
			states = append(states, m[2])
		}
	}
	if want := []string{"waiting", "clear", "waiting"}; !slices.Equal(states, want) {
		t.Errorf("the states were %v, want %v:\n%s", states, want, out)
	}
	_, end, _ := strings.Cut(out, "At the end, ")
	const want = `T:
ops/home-gitops#1: waiting, as recorded
  preconditions clear: the one precondition is met
  approval waiting: held by alice: because of the weather
ops/home-gitops#2: clear, as recorded
  preconditions clear: no precondition is about this change
  approval clear: this change needs no approval
2 pull requests are open, 0 decided in another way than is recorded.
`
	if diff := cmp.Diff(want, moment.ReplaceAllString(end, "T")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, _, _ := runs(t.Context(), t, "replay", path); again != out {
		t.Errorf("another replay says\n%s", again)
	}
	w.replaysAnother(path)
}

// replaysAnother replays a recording with another policy.
func (w *world) replaysAnother(path string) {
	w.t.Helper()
	policyFile := filepath.Join(w.t.TempDir(), "policy.yaml")
	w.must(os.WriteFile(policyFile, []byte(`version: 1
preconditions:
  - name: platform-config is Ready
    flux: {kustomization: flux-system/platform-config}
  - name: ci has run
    status: {context: "ci / *"}
approvals:
  - {name: somebody, from: {teams: [unread]}}
`), 0o600))
	out, errOut, code := runs(w.t.Context(), w.t, "replay", path, "--end", "--policy", policyFile, "--pull", "ops/home-gitops#2")
	if code != exitNotClear || errOut != "" {
		w.t.Errorf("exit code %d: %s", code, errOut)
	}
	w.has(out,
		"ops/home-gitops#2: waiting, recorded is clear\n",
		`rule "ci has run" is unknown, and was not there`,
		"the members of team unread are not known",
		"missing in the recording: the fact gitea.=.statuses.",
		"1 pull request is open, 1 decided in another way than is recorded.\n")
	if strings.Contains(out, "#1") || strings.Contains(out, "(it was read again)") {
		w.t.Errorf("it tells more than the end of one pull request:\n%s", out)
	}
	out, _, _ = runs(w.t.Context(), w.t, "replay", path, "--end", "--explain", "--repo", "OPS/home-gitops")
	w.has(out, "met: platform-config is Ready (.gitea/signalbox.yaml@")
}

func TestEventsShowsTheBus(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	number := w.open("a", clusterChange)
	w.shows(number, "success", "pending")
	w.cluster.Kustomization("flux-system", "platform-config").Failing("BuildFailed", "kustomize \x1b[31mbuild failed\u202e")
	w.shows(number, "pending", "pending", "build failed")
	w.quiet()
	file := configFile(t, w.dir)
	show := func(args ...string) string {
		t.Helper()
		out, errOut, code := runs(t.Context(), t, append([]string{"events", "--config", file}, args...)...)
		if code != 0 || errOut != "" {
			t.Fatalf("%v: exit code %d: %s", args, code, errOut)
		}
		return out
	}
	out := show("--pull", w.repo.Numbered(number))
	w.has(out, "  event     ops/home-gitops#1 ", "pull.changed: opened by bob, head ", "  event=gitea/", "  pull      ops/home-gitops#1 ", "waiting on ")
	if strings.Contains(out, "  fact  ") {
		t.Errorf("facts are of no pull request:\n%s", out)
	}
	out = show("--cluster", "prod", "--kind", "fact")
	w.has(out, "  fact      prod ", "kustomization flux-system/platform-config: Ready is False (BuildFailed) kustomize [31mbuild failed\n", "heartbeat: heard from\n")
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "  fact  ") || strings.ContainsAny(line, "\x1b\u202e") {
			t.Errorf("the line %q is no fact, or not clean", line)
		}
	}
	out = show("--kind", "event", "-o", "jsonl", "--repo", "ops/HOME-gitops")
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, `{"kind":"event","seq":`) || !strings.Contains(line, `"specversion":"1.0"`) {
			t.Errorf("the line is %s", line)
		}
	}
	if n := strings.Count(out, "\n"); n < 2 {
		t.Errorf("there are %d events", n)
	}
	if out := show("--since", "2999-01-01"); out != "" {
		t.Errorf("of the future it shows\n%s", out)
	}
	w.stop()
	if after := show("--kind", "event", "-o", "jsonl"); !strings.Contains(after, out) {
		t.Errorf("from the folder it shows\n%s, and from the socket\n%s", after, out)
	}
}

// TestEventsFollows follows the bus until signalbox ends, and then says so.
func TestEventsFollows(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.ready()
	w.start(worldOptions{})
	file := configFile(t, w.dir)
	var out, errOut conformance.Journal
	root := newRoot()
	root.SetArgs([]string{"events", "--config", file, "--follow", "--kind", "pull"})
	root.SetOut(&out)
	root.SetErr(&errOut)
	done := make(chan error, 1)
	go func() { done <- root.ExecuteContext(t.Context()) }()
	number := w.open("a", clusterChange)
	w.shows(number, "success", "pending")
	w.eventually("the record is shown", func() string {
		if strings.Contains(out.String(), "ops/home-gitops#1") {
			return ""
		}
		return out.String() + errOut.String()
	})
	w.stop()
	if err := <-done; err == nil || !strings.Contains(err.Error(), "the running signalbox has ended") {
		t.Errorf("it ends with %v", err)
	}
}

func TestEventsOfWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	bustest.Open(t, bus.Config{Embedded: bus.Embedded{Dir: dir}})
	file, there := configFile(t, dir), filepath.Join(t.TempDir(), "there")
	if err := os.WriteFile(there, []byte(`{"kind":"Pod"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"events", "-o", "xml"}, `--output "xml" is not known; give line or jsonl`},
		{[]string{"events", "--kind", "facts"}, `--kind "facts" is not known: did you mean "fact"?`},
		{[]string{"events", "--pull", "ops/x"}, `--pull "ops/x" does not name a pull request`},
		{[]string{"events", "--repo", "ops"}, `--repo "ops" names no repository; write OWNER/REPO`},
		{[]string{"events", "--since", "noon"}, `--since "noon" is no time`},
		{[]string{"events", "--for", "1h"}, "--for says how long to follow"},
		{[]string{"events", "--export", "x", "--kind", "fact"}, "--export records every kind"},
		{[]string{"events", "--config", file}, "does not answer on"},
		{[]string{"events", "--config", file, "--export", there}, "make the recording: "},
		{[]string{"replay", there}, there + ": line 1: it is no recording of signalbox"},
		{[]string{"replay", there + "x"}, "read the recording: "},
		{[]string{"replay", there, "--pull", "x"}, `--pull "x" does not name a pull request`},
	}
	for _, tt := range tests {
		out, errOut, code := runs(t.Context(), t, tt.args...)
		if code != exitFailure || out != "" || !strings.Contains(errOut, tt.want) {
			t.Errorf("%v: exit code %d\ngot  %s%s\nwant %s", tt.args, code, out, errOut, tt.want)
		}
	}
}

// TestAnExportThatIsCutShortIsNone ends an export before it has all.
func TestAnExportThatIsCutShortIsNone(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.start(worldOptions{})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filepath.Join(t.TempDir(), "x")
	_, errOut, code := runs(ctx, t, "events", "--config", configFile(t, w.dir), "--export", path)
	if code != exitFailure || !strings.Contains(errOut, "it was ended before all was read") {
		t.Errorf("exit code %d: %s", code, errOut)
	}
}

// TestRecordingKnowsWhatVerdictsRestOn looks at the header that the socket gives.
func TestRecordingKnowsWhatVerdictsRestOn(t *testing.T) {
	w := newWorld(t, worldOptions{})
	w.start(worldOptions{adjust: func(c *config.Config) { c.Bots, c.PolicyText = []string{"renovate"}, "version: 1\n" }})
	var got recording.Header
	err := newAdminClient(w.dir).record(t.Context(), bus.Tail{Kinds: recording.Kinds(), Since: time.Now()},
		func(h recording.Header) error { got = h; return nil }, func(recording.Line) error { return nil })
	w.must(err)
	want := recording.Header{Version: recording.Version, Program: versionText(), At: got.At, Clusters: []string{"prod"}, Bots: []string{"renovate"}, Self: w.bot, Policy: "version: 1\n"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
