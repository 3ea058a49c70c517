package renovate

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
)

func flat(report Report) string {
	encoded, _ := json.Marshal(report)
	return string(encoded)
}

func TestAnalyzeCut(t *testing.T) {
	full := string(logs(t)["full-info.jsonl"])
	live := string(logs(t)["live-empty.jsonl"])
	for cut := int64(0); cut < int64(len(full)); cut += 61 {
		report, err := Analyze(strings.NewReader(full), Limits{Bytes: cut})
		if err != nil {
			t.Fatal(err)
		}
		if cut > 0 && (!report.Cut || report.Bytes != cut || report.Mode != ModeUnknown) {
			t.Fatalf("at %d: cut %v, %d bytes, %s", cut, report.Cut, report.Bytes, report.Mode)
		}
	}
	whole, err := Analyze(strings.NewReader(full), Limits{Bytes: int64(len(full))})
	if err != nil || whole.Cut || whole.Mode != ModeFull {
		t.Errorf("whole: %v, cut %v, %s", err, whole.Cut, whole.Mode)
	}
	// What was read disproves all the same.
	cut, err := Analyze(strings.NewReader(live), Limits{Bytes: int64(len(live) - 1)})
	if err != nil || !cut.Cut || cut.Mode != ModeLive {
		t.Errorf("live: %v, cut %v, %s", err, cut.Cut, cut.Mode)
	}
}

func TestAnalyzeLongLines(t *testing.T) {
	long := strings.Repeat("x", 3*minLine)
	quote := `\",\"msg\":\"PR created\",\"time\":\"2026-11-30T14:45:00Z\",\"v\":0}`
	for name, test := range map[string]struct {
		log       string
		mode      Mode
		shortened int
	}{
		"noise":                    {long + "\n" + jsonLog(started, wouldSave), ModeFull, 1},
		"noise without an end":     {jsonLog(started, wouldSave) + long, ModeFull, 1},
		"a long field":             {jsonLog(started, `"repository":"a/b","packageFiles":"`+long+`","msg":"Extracted dependencies"`), ModeExtract, 1},
		"a long field of a write":  {jsonLog(started, wouldSave, `"repository":"a/b","prTitle":"`+long+`","msg":"PR created"`), ModeLive, 1},
		"a long field that quotes": {jsonLog(started, wouldSave, `"repository":"a/b","x":"`+long+quote+`","msg":"Something"`), ModeFull, 1},
		"a long last field":        {jsonLog(started, wouldSave) + `{"name":"renovate","level":30,"repository":"a/b","x":"` + long + quote + "\"}\n", ModeFull, 1},
		"a long detail": {
			textStarted + textSave + " INFO: PR created (repository=a/b)\n       \"x\": \"" + long + "\"\n" + textEnd, ModeLive, 1,
		},
		"long details": {
			"DEBUG: Combined config\n       \"config\": {\n" + strings.Repeat("         \"a\": \"b\",\n", minLine) + "       \"dryRun\": \"full\"}\n" + textStarted + "DEBUG: x (repository=a/b)\n" + textEnd, ModeUnknown, 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := Analyze(strings.NewReader(test.log), Limits{Line: minLine})
			if err != nil || report.Mode != test.mode || report.Shortened != test.shortened {
				t.Errorf("%v, %s (%s), %d shortened", err, report.Mode, report.Why, report.Shortened)
			}
		})
	}
}

// The report of a log that is made to be large is not.
func TestAnalyzeIsBounded(t *testing.T) {
	var b strings.Builder
	for i := range 2 * maxRuns {
		b.WriteString(jsonLogOf(fmt.Sprint(i), started, wouldSave))
	}
	for i := range 2 * maxRepositories {
		b.WriteString(jsonLogOf("0", fmt.Sprintf(`"repository":"a/%d","msg":"Repository started"`, i), fmt.Sprintf(`"repository":"a/%d","msg":"DRY-RUN: Would save repository cache."`, i)))
	}
	for i := range 3 * maxActions {
		b.WriteString(jsonLogOf("1", fmt.Sprintf(`"repository":"a/b","branch":"r/%d","msg":"DRY-RUN: Would commit files to branch r/%d"`, i, i)))
		b.WriteString(jsonLogOf("1", fmt.Sprintf(`"repository":"a/b","stats":{"managers":{"m%d":{"fileCount":1}}},"msg":"Dependency extraction complete"`, i)))
	}
	b.WriteString("::group::x\nenv:\n" + strings.Repeat("  RENOVATE_DRY_RUN: "+strings.Repeat("x", 1000)+"\n", 1000))
	report := analyze(t, b.String())
	if report.Mode != ModeUnknown || !strings.Contains(report.Why, "more runs or repositories than are kept") {
		t.Errorf("%s (%s)", report.Mode, report.Why)
	}
	if size := len(flat(report)); size > 1<<20 {
		t.Errorf("the report has %d bytes", size)
	}
	if wrote := analyze(t, b.String()+jsonLogOf("9999", `"repository":"a/b","msg":"PR created"`)); wrote.Mode != ModeLive {
		t.Errorf("%s (%s)", wrote.Mode, wrote.Why)
	}
}

// repeated gives one text again and again.
type repeated struct {
	text string
	at   int
}

func (r *repeated) Read(p []byte) (int, error) {
	n := copy(p, r.text[r.at:])
	r.at = (r.at + n) % len(r.text)
	return n, nil
}

func BenchmarkAnalyze(b *testing.B) {
	text := string(logs(b)["full-info.jsonl"]) + string(logs(b)["local-lookup-debug.txt"])
	const size = 16 << 20
	b.SetBytes(size)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Analyze(io.LimitReader(&repeated{text: text}, size), Limits{}); err != nil {
			b.Fatal(err)
		}
	}
}

// Jobs that need all before them are not walked along every path.
func TestWorkflowOfManyNeeds(t *testing.T) {
	const jobs = 300
	var b strings.Builder
	b.WriteString("on: [schedule, push]\njobs:\n  j0: {if: \"false\", steps: [{run: renovate}]}\n")
	for i := 1; i < jobs; i++ {
		fmt.Fprintf(&b, "  j%d: {steps: [{run: renovate}], needs: [", i)
		for j := range i {
			fmt.Fprintf(&b, "j%d,", j)
		}
		b.WriteString("]}\n")
	}
	c := read(t, b.String(), nil)
	if got, _ := c.OnSchedule(); got.Runs != RunsNo || len(c.Places) != jobs {
		t.Errorf("got %+v in %d places", got, len(c.Places))
	}
	cycle := read(t, "on: schedule\njobs:\n  a: {needs: [b, c], steps: [{run: renovate}]}\n  b: {needs: a, if: 1 == 1}\n  c: {if: 2 == 2}\n", nil)
	if got, _ := cycle.OnSchedule(); got.Runs != RunsMaybe || got.Mode != ModeLive {
		t.Errorf("got %+v of jobs that need each other", got)
	}
	if got := cycle.Places[0].Conditions; len(got) != 2 {
		t.Errorf("conditions %q", got)
	}
}

// A small file that means a large one is refused.
func TestWorkflowOfAliases(t *testing.T) {
	var b strings.Builder
	b.WriteString("on: push\njobs:\n  a: {steps: &s [" + strings.Repeat("{run: renovate},", 1000) + "]}\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  j%d: {steps: *s}\n", i)
	}
	_, err := Workflow("r.yaml", []byte(b.String()), nil)
	if want := "r.yaml: has more jobs and steps on more events than are read; split it"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
