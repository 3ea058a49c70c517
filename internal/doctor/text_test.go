package doctor_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/doctor"
)

func TestText(t *testing.T) {
	r := doctor.NewReport(now, []doctor.Finding{
		{Check: "a", Severity: doctor.OK, Subject: "gitea", What: "Gitea 1.26.0"},
		{Check: "b", Severity: doctor.Info, Subject: "bus", What: "a note", Remedy: "do nothing"},
		{
			Check: "c", Severity: doctor.Problem, Subject: "ops/home-gitops, branch main", What: "nothing protects \x1b[31mthe branch, and this line is long enough to be broken",
			Why: "Everybody who may write can push to it and merge whatever signalbox says.", Remedy: "Run bot doctor --fix, or by hand:\n  a line that is to be copied and must therefore never be broken\n",
			Fixable: true,
		},
		{Check: "d", Severity: doctor.OK, Subject: "token", What: "fine"},
		{Check: "e", Severity: doctor.Unknown, Subject: "cluster prod", What: "down"},
	})
	want := `PROBLEM  ops/home-gitops, branch main: nothing protects [31mthe
         branch, and this line is long enough to be broken
         Everybody who may write can push to it and merge whatever
         signalbox says.
         → Run bot doctor --fix, or by hand:
             a line that is to be copied and must therefore never be broken

UNKNOWN  cluster prod: down

info     bus: a note
         → do nothing

ok       gitea: Gitea 1.26.0
ok       token: fine

1 problem, 1 thing that could not be checked, 1 note, 2 things fine. The gate is not a gate yet.
bot doctor --fix sets what Gitea's settings can mend, after it has shown you the difference.
`
	if diff := cmp.Diff(want, r.Text(doctor.Style{Width: 66})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if colored := r.Text(doctor.Style{Color: true}); !strings.HasPrefix(colored, "\x1b[1;31mPROBLEM") || strings.Contains(colored, "\x1b[31mthe") {
		t.Errorf("in color:\n%q", colored)
	}
}

func TestExit(t *testing.T) {
	tests := []struct {
		name       string
		severities []doctor.Severity
		want       int
		says       string
	}{
		{"nothing", nil, doctor.ExitFine, "The gate holds."},
		{"fine and warned", []doctor.Severity{doctor.OK, doctor.Warning, doctor.Info}, doctor.ExitFine, "1 warning, 1 note, 1 thing fine. The gate holds."},
		{"unknown", []doctor.Severity{doctor.OK, doctor.Unknown, doctor.Warning}, doctor.ExitUnchecked, "Nothing wrong was found"},
		{"problem", []doctor.Severity{doctor.Unknown, doctor.Problem}, doctor.ExitProblem, "not a gate yet"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var findings []doctor.Finding
			for _, s := range tt.severities {
				findings = append(findings, doctor.Finding{Severity: s, Subject: "x", What: "y"})
			}
			r := doctor.NewReport(now, findings)
			if r.ExitCode != tt.want || !strings.Contains(r.Summary(), tt.says) {
				t.Errorf("exit code %d, want %d: %s", r.ExitCode, tt.want, r.Summary())
			}
			data, err := json.Marshal(r)
			if err != nil || !json.Valid(data) {
				t.Errorf("%s, %v", data, err)
			}
		})
	}
}
