package renovate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDashboard(t *testing.T) {
	body, err := os.ReadFile("testdata/dashboard.md")
	if err != nil {
		t.Fatal(err)
	}
	want := Dashboards{
		Rows: []Row{
			{Section: "Pending Approval", Kind: "approve", Branch: "renovate/major-cert-manager"},
			{Section: "Pending Approval", Kind: "approve", Branch: "renovate/cilium-2.x", Checked: true},
			{Section: "Awaiting Schedule", Kind: "unschedule", Branch: "renovate/lock-file-maintenance"},
			{Section: "Rate-Limited", Kind: "unlimit", Branch: "renovate/flux-2.x"},
			{Section: "Errored", Kind: "retry", Branch: "renovate/longhorn-1.x"},
			{Section: "Pending Status Checks", Kind: "approvePr", Branch: "renovate/kured-5.x"},
			{Section: "Open", Kind: "rebase", Branch: "renovate/is-number-7.x", Checked: true},
			{Section: "Open", Kind: "rebase", Branch: "renovate/headlamp-0.x"},
			{Section: "Ignored or Blocked", Kind: "recreate", Branch: "renovate/postgres-18.x"},
		},
		Sections: map[string]Rows{
			"Pending Approval": {2, 1}, "Awaiting Schedule": {1, 0}, "Rate-Limited": {1, 0}, "Errored": {1, 0},
			"Pending Status Checks": {1, 0}, "Open": {2, 1}, "Ignored or Blocked": {1, 0},
		},
		Kinds: map[string]Rows{
			"approve": {2, 1}, "unschedule": {1, 0}, "unlimit": {1, 0}, "retry": {1, 0},
			"approvePr": {1, 0}, "rebase": {2, 1}, "recreate": {1, 0},
		},
	}
	for name, text := range map[string]string{
		"as it is": string(body),
		"CRLF":     strings.ReplaceAll(string(body), "\n", "\r\n"),
		"no break": strings.TrimRight(string(body), "\n"),
	} {
		if diff := cmp.Diff(want, Dashboard(text)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestDashboardRows(t *testing.T) {
	for text, want := range map[string]int{
		" - [ ] <!-- rebase-branch=r/x -->Update x":              1,
		"- [X] <!-- rebase-branch=r/x -->Update x":               1,
		" - [ ] <!-- rebase-all-open-prs -->all":                 0,
		"> - [ ] <!-- rebase-branch=r/x -->":                     0,
		"text - [ ] <!-- rebase-branch=r/x -->":                  0,
		"     - [ ] <!-- rebase-branch=r/x -->":                  0,
		" - [-] <!-- rebase-branch=r/x -->":                      0,
		" - [ ] <!-- rebase-branch= -->":                         0,
		"```\n - [ ] <!-- rebase-branch=r/x -->\n```":            0,
		"````\n```\n - [ ] <!-- rebase-branch=r/x -->\n````":     0,
		"```\n```\n - [ ] <!-- rebase-branch=r/x -->":            1,
		" - [ ] <!-- rebase-branch=r/x -->a <!-- b-branch=c -->": 1,
	} {
		if got := len(Dashboard(text).Rows); got != want {
			t.Errorf("%q: %d rows, want %d", text, got, want)
		}
	}
	var many strings.Builder
	for i := range maxRows + 7 {
		fmt.Fprintf(&many, "## s%d\n - [ ] <!-- k%s-branch=r/%d -->\n", i, strings.Repeat("x", i%40), i)
	}
	d := Dashboard(many.String())
	if len(d.Rows) != maxRows || d.Dropped != 7 || len(d.Sections) != maxKinds || len(d.Kinds) != 40-1 && len(d.Kinds) != 40 {
		t.Errorf("%d rows, %d dropped, %d sections, %d kinds", len(d.Rows), d.Dropped, len(d.Sections), len(d.Kinds))
	}
}

func TestIsDashboard(t *testing.T) {
	bots := []string{"renovate-bot", "renovate[bot]"}
	for _, test := range []struct {
		title, author, wanted string
		want                  bool
	}{
		{"Dependency Dashboard", "renovate-bot", "", true},
		{"Dependency Dashboard", "Renovate-Bot", "", true},
		{"Dependency Dashboard", "mallory", "", false},
		{"Dependency Dashboard", "", "", false},
		{"dependency dashboard", "renovate-bot", "", false},
		{"Dependency Dashboard ", "renovate-bot", "", false},
		{"Updates", "renovate-bot", "Updates", true},
		{"Dependency Dashboard", "renovate-bot", "Updates", false},
	} {
		if got := IsDashboard(test.title, test.author, test.wanted, bots); got != test.want {
			t.Errorf("%+v: got %v", test, got)
		}
	}
	if IsDashboard(DashboardTitle, "", "", []string{""}) {
		t.Error("nobody is a bot")
	}
}
