package renovate

import (
	"bytes"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func mode(t *testing.T, log []byte, limits Limits) Mode {
	t.Helper()
	report, err := Analyze(bytes.NewReader(log), limits)
	if err != nil {
		t.Fatal(err)
	}
	return report.Mode
}

func FuzzAnalyze(f *testing.F) {
	for _, data := range logs(f) {
		f.Add(data)
	}
	f.Add([]byte(jsonLog(started, wouldSave, finished) + textStarted + textSave + textEnd))
	f.Add([]byte("##[group]x\nenv:\n  RENOVATE_DRY_RUN: full\n##[endgroup]\n\x1b[32m INFO\x1b[39m: Repository started (repository=a/b)\r\n"))
	live := []byte(jsonLog(started, `"repository":"a/b","branch":"r/x","pr":1,"prTitle":"Update x","msg":"PR created"`, finished))
	full := []byte(jsonLogOf("2", started, wouldSave, finished))
	f.Fuzz(func(t *testing.T, log []byte) {
		report, err := Analyze(bytes.NewReader(log), Limits{Line: minLine})
		if err != nil {
			t.Fatal(err)
		}
		wellFormed(t, report)

		// Nothing before or behind a live run makes it another.
		for _, mixed := range [][]byte{
			joined(live, log), joined(log, []byte("\n"), live), joined(live, log, []byte("\n"), full),
		} {
			if got := mode(t, mixed, Limits{}); got != ModeLive {
				t.Errorf("a live run became %s", got)
			}
		}
		// What is not read does not prove a dry run, and what was read disproves it.
		half := log[:bytes.LastIndexByte(log[:len(log)/2], '\n')+1]
		before := mode(t, half, Limits{})
		if before == ModeLive && mode(t, log, Limits{}) != ModeLive {
			t.Error("what disproves a dry run was lost")
		}
		if len(log) > 1 {
			if got := mode(t, log, Limits{Bytes: int64(len(log) - 1)}); got.DryRun() {
				t.Errorf("a log that was cut proves %s", got)
			}
		}
		// A runner's time before each line, and its carriage return behind it,
		// change nothing.
		var stamped bytes.Buffer
		for line := range bytes.Lines(log) {
			if line, _ := bytes.CutPrefix(line, bom); stamp.Match(ansi.ReplaceAll(line, nil)) || stamp.Match(line) {
				return
			}
			stamped.WriteString("2026-11-30T14:45:22.1370000Z ")
			stamped.Write(bytes.TrimSuffix(line, []byte("\n")))
			stamped.WriteString("\r\n")
		}
		if diff := cmp.Diff(mode(t, log, Limits{}), mode(t, stamped.Bytes(), Limits{})); diff != "" {
			t.Error(diff)
		}
	})
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

// wellFormed checks what every report keeps to.
func wellFormed(t *testing.T, report Report) {
	t.Helper()
	text := func(s string) {
		if len(s) > 3*maxText || !utf8.ValidString(s) || strings.ContainsFunc(s, unicode.IsControl) {
			t.Errorf("text %q", s)
		}
	}
	text(report.Why)
	for _, run := range report.Runs {
		text(run.Why)
		if run.Mode.DryRun() && len(run.Repositories) == 0 {
			t.Error("a dry run of nothing")
		}
		for _, r := range run.Repositories {
			text(r.Name)
			if r.Mode.DryRun() && len(r.Proof) == 0 && run.Config == nil {
				t.Errorf("%s without proof", r.Mode)
			}
			if len(r.Disproof) > 0 && (r.Mode != ModeLive || run.Mode != ModeLive || report.Mode != ModeLive) {
				t.Errorf("%s with a disproof", r.Mode)
			}
			for _, e := range append(r.Proof, r.Disproof...) {
				text(e.Text)
			}
			for _, a := range r.Actions {
				text(a.What + a.Branch + a.Title)
			}
		}
	}
	if size := len(flat(report)); size > 4<<20 {
		t.Errorf("the report has %d bytes", size)
	}
}

func FuzzWorkflow(f *testing.F) {
	f.Add(home(f))
	f.Add(on(bothTriggers, "run: renovate --dry-run=${{ inputs.mode || vars.X }}\nif: vars.Y == 'z'"))
	f.Add(on(bothTriggers, "uses: renovatebot/github-action@v41\nenv: {RENOVATE_DRY_RUN: '${{ (inputs.mode) }}'}"))
	f.Add("on: push\nenv: &env {RENOVATE_DRY_RUN: full}\njobs:\n  a:\n    steps: &s\n      - {run: renovate, env: {<<: *env}}\n  b: {needs: a, steps: *s}\n")
	f.Add("on: &a [*a]\njobs: *a\n")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Workflow("r.yaml", []byte(text), nil)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "r.yaml:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q", err)
			}
			return
		}
		known, err := Workflow("r.yaml", []byte(text), map[string]string{"X": "", "Y": "z"})
		if err != nil || len(known.Triggers) != len(c.Triggers) {
			t.Fatalf("with variables: %v", err)
		}
		for i, trigger := range c.Triggers {
			// What is certain without the variables is not undone by them.
			if trigger.Mode.DryRun() && known.Triggers[i].Mode == ModeLive {
				t.Errorf("%s: %s became live", trigger.Event, trigger.Mode)
			}
			if trigger.Runs == RunsNo && known.Triggers[i].Runs != RunsNo {
				t.Errorf("%s: is not started, and then is", trigger.Event)
			}
			if trigger.Mode == "" || trigger.Why == "" || trigger.Runs == "" {
				t.Errorf("%+v is not told", trigger)
			}
			if len(c.Places) == 0 && trigger.Mode != ModeUnknown {
				t.Errorf("%s is %s without a place", trigger.Event, trigger.Mode)
			}
		}
	})
}

func FuzzScript(f *testing.F) {
	f.Add("if true; then\n  RENOVATE_DRY_RUN=full docker run -e RENOVATE_DRY_RUN renovate/renovate:$TAG \\\n --x\nfi")
	f.Add("cat <<EOF\nrenovate\nEOF\nbash -c \"npx renovate --dry-run=${MODE:-full}\"")
	f.Fuzz(func(t *testing.T, text string) {
		none := func(string) (value, bool) { return value{}, false }
		for _, i := range readScript(text, none) {
			if mode, why := i.mode(); mode == "" || why == "" {
				t.Errorf("%+v is not told", i)
			}
		}
		// What is quoted is not carried out.
		quoted := "echo '" + strings.NewReplacer("'", "", marker, "").Replace(text) + "'"
		if found := readScript(quoted, none); len(found) > 0 {
			t.Errorf("%q starts %+v", quoted, found)
		}
	})
}

func FuzzDashboard(f *testing.F) {
	f.Add("## Open\n\n - [x] <!-- rebase-branch=renovate/x -->[Update x](../pull/1)\r\n```\n - [ ] <!-- a-branch=b -->\n```\n")
	f.Fuzz(func(t *testing.T, body string) {
		d := Dashboard(body)
		rows, checked := 0, 0
		for _, n := range d.Kinds {
			rows += n.Total
			checked += n.Checked
		}
		if len(d.Kinds) < maxKinds && rows != len(d.Rows)+d.Dropped {
			t.Errorf("%d rows, but %d counted", len(d.Rows)+d.Dropped, rows)
		}
		if len(d.Rows) > maxRows || checked > rows || rows > strings.Count(body, "-branch=") {
			t.Errorf("%d rows of %d, %d checked", len(d.Rows), rows, checked)
		}
		if len(body) < maxDashboard/2 {
			if diff := cmp.Diff(d, Dashboard(strings.ReplaceAll(body, "\n", "\r\n"))); diff != "" {
				t.Error(diff)
			}
			if quoted := Dashboard("> " + strings.ReplaceAll(body, "\n", "\n> ")); len(quoted.Rows) > 0 {
				t.Errorf("a quote has %d rows", len(quoted.Rows))
			}
		}
	})
}
