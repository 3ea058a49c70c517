package doctor_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"signalbox/internal/doctor"
	"signalbox/internal/pull"
)

const (
	preconditions = "signalbox / preconditions (main)"
	approval      = "signalbox / approval (main)"
)

// locked is a branch as --fix leaves it.
func locked() doctor.Branch {
	return doctor.Branch{
		Name: "main", Bot: "signalbox", Contexts: []string{preconditions, approval},
		Protection: &pull.Protection{
			Rule: "main", Merge: pull.Access{Allowed: true}, StatusCheck: true, Contexts: []string{preconditions, approval}, BindsAdmins: true,
		},
	}
}

// checks are the findings as "severity check", in their order.
func checks(findings []doctor.Finding) []string {
	var out []string
	for _, f := range findings {
		out = append(out, string(f.Severity)+" "+f.Check)
	}
	return out
}

// complete reports findings that leave a person alone.
func complete(t *testing.T, findings []doctor.Finding) {
	t.Helper()
	for _, f := range findings {
		bad := f.Severity == doctor.Problem || f.Severity == doctor.Warning
		if f.Subject == "" || f.What == "" || f.Check == "" || bad && f.Why == "" && f.Remedy == "" {
			t.Errorf("a finding that does not help: %+v", f)
		}
		if f.Fixable && !strings.Contains(f.Remedy, "--fix") {
			t.Errorf("it can be fixed and does not say so: %+v", f)
		}
	}
}

func TestProtection(t *testing.T) {
	tests := []struct {
		name  string
		given func(*doctor.Branch)
		want  []string
	}{
		{"as it should be", func(*doctor.Branch) {}, []string{"ok protection"}},
		{"nothing", func(b *doctor.Branch) { b.Protection = nil }, []string{"problem protection"}},
		{"cannot be read", func(b *doctor.Branch) { b.Fault, b.Refused = "HTTP 403", true }, []string{"unknown protection"}},
		{"no status check", func(b *doctor.Branch) { b.Protection.StatusCheck = false }, []string{"problem protection-contexts"}},
		{"one context", func(b *doctor.Branch) { b.Protection.Contexts = []string{approval} }, []string{"problem protection-contexts"}},
		{"every status, which an absent one is not", func(b *doctor.Branch) { b.Protection.Contexts = nil }, []string{"problem protection-contexts"}},
		{"a pattern for both", func(b *doctor.Branch) { b.Protection.Contexts = []string{"signalbox*"} }, []string{"problem protection-contexts"}},
		{"a pattern for both beside the two", func(b *doctor.Branch) {
			b.Protection.Contexts = append(b.Protection.Contexts, "signalbox*")
		}, []string{"ok protection"}},
		{"the context of another branch", func(b *doctor.Branch) {
			b.Protection.Contexts = []string{preconditions, "signalbox / approval (dev)"}
		}, []string{"problem protection-contexts"}},
		{"a pattern that Gitea does not understand", func(b *doctor.Branch) {
			b.Protection.Contexts = []string{preconditions, "[" + approval}
		}, []string{"problem protection-contexts"}},
		{"writers push", func(b *doctor.Branch) { b.Protection.Push.Allowed = true }, []string{"problem protection-push"}},
		{"some push", func(b *doctor.Branch) {
			b.Protection.Push = pull.Access{Allowed: true, Limited: true, Users: []string{"flux"}, DeployKeys: true}
		}, []string{"warning protection-push"}},
		{"nobody is on the list of who may push", func(b *doctor.Branch) {
			b.Protection.Push = pull.Access{Allowed: true, Limited: true}
		}, []string{"ok protection"}},
		{"unprotected files", func(b *doctor.Branch) { b.Protection.UnprotectedFiles = "*.md" }, []string{"problem protection-unprotected-files"}},
		{"administrators are free", func(b *doctor.Branch) { b.Protection.BindsAdmins = false }, []string{"problem protection-admins"}},
		{"only some people merge", func(b *doctor.Branch) {
			b.Protection.Merge = pull.Access{Allowed: true, Limited: true, Users: []string{"alice"}}
		}, []string{"ok protection"}},
		{"nobody merges", func(b *doctor.Branch) { b.Protection.Merge.Limited = true }, []string{"problem protection-merge"}},
		{"signalbox merges as one of many", func(b *doctor.Branch) { b.Merging = true }, []string{"problem protection-merge"}},
		{"signalbox merges alone", func(b *doctor.Branch) {
			b.Merging, b.Protection.Merge = true, pull.Access{Allowed: true, Limited: true, Users: []string{"SignalBox"}}
		}, []string{"ok protection"}},
		{"signalbox merges beside alice", func(b *doctor.Branch) {
			b.Merging, b.Protection.Merge = true, pull.Access{Allowed: true, Limited: true, Users: []string{"signalbox", "alice"}}
		}, []string{"problem protection-merge"}},
		{"signalbox merges and may not", func(b *doctor.Branch) {
			b.Merging, b.Protection.Merge = true, pull.Access{Allowed: true, Limited: true, Users: []string{"alice"}}
		}, []string{"problem protection-merge"}},
		{"signalbox merges and only a team may", func(b *doctor.Branch) {
			b.Merging, b.Protection.Merge = true, pull.Access{Allowed: true, Limited: true, Teams: []string{"ops"}}
		}, []string{"problem protection-merge"}},
		{"observed and required", func(b *doctor.Branch) { b.Observe = true }, []string{"problem protection-contexts"}},
		{"observed", func(b *doctor.Branch) { b.Observe, b.Protection = true, nil }, []string{"info protection"}},
		{"everything at once", func(b *doctor.Branch) {
			*b.Protection = pull.Protection{Rule: "*", Push: pull.Access{Allowed: true}, ForcePush: pull.Access{Allowed: true}, Merge: pull.Access{Allowed: true}, UnprotectedFiles: "a"}
		}, []string{"problem protection-contexts", "problem protection-push", "problem protection-unprotected-files", "problem protection-admins"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := locked()
			tt.given(&b)
			found := b.Judge("ops/home-gitops")
			if diff := cmp.Diff(tt.want, checks(found)); diff != "" {
				t.Errorf("findings (-want +got):\n%s", diff)
			}
			complete(t, found)
		})
	}
}

func TestFixOfAFreshBranch(t *testing.T) {
	b := locked()
	b.Protection = nil
	change, needed := b.Fix()
	planned := b.Planned(change)
	if !needed {
		t.Fatal("nothing to fix")
	}
	if diff := cmp.Diff(locked().Protection.Contexts, planned.Contexts); diff != "" {
		t.Error(diff)
	}
	b.Protection = &planned
	if got := checks(b.Judge("ops/home-gitops")); len(got) != 1 || got[0] != "ok protection" {
		t.Errorf("afterwards: %v", got)
	}
	if _, again := b.Fix(); again {
		t.Error("there is still something to fix")
	}
}

func TestFixKeepsWhatIsInForce(t *testing.T) {
	b := locked()
	*b.Protection = pull.Protection{
		Rule: "release/*", Push: pull.Access{Allowed: true, Limited: true, DeployKeys: true}, Merge: pull.Access{Allowed: true},
		StatusCheck: true, Approvals: 2, Signed: true,
	}
	change, _ := b.Fix()
	if change.Push != nil || change.Approvals != nil || change.Merge != nil {
		t.Errorf("it changes what is no problem: %+v", change)
	}
	planned := b.Planned(change)
	// No pattern means every status, and that must stay so.
	if diff := cmp.Diff([]string{"*", preconditions, approval}, planned.Contexts); diff != "" {
		t.Error(diff)
	}
	if planned.Rule != "main" || !planned.Signed || planned.Approvals != 2 {
		t.Errorf("planned %+v", planned)
	}
	if (doctor.Branch{Fault: "x"}).Judge("r")[0].Fixable {
		t.Error("what could not be read can be fixed")
	}
}

// access draws who may do something.
func access(t *rapid.T, name string) pull.Access {
	people := []string{"alice", "bob", "signalbox"}
	return pull.Access{
		Allowed: rapid.Bool().Draw(t, name+" allowed"), Limited: rapid.Bool().Draw(t, name+" limited"),
		Users:      rapid.SliceOfNDistinct(rapid.SampledFrom(people), 0, 3, rapid.ID).Draw(t, name+" users"),
		Teams:      rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ops", "dev"}), 0, 2, rapid.ID).Draw(t, name+" teams"),
		DeployKeys: rapid.Bool().Draw(t, name+" keys"),
	}
}

// TestFixNeverAllowsMore holds the promise of --fix against any protection: it
// widens nothing, it leaves nothing fixable, and it is done in one go.
func TestFixNeverAllowsMore(t *testing.T) {
	patterns := []string{preconditions, approval, "signalbox*", "*", "ci / test", "[bad", "signalbox / approval (dev)"}
	rapid.Check(t, func(t *rapid.T) {
		b := locked()
		b.Merging = rapid.Bool().Draw(t, "merging")
		before := pull.Protection{
			Rule: rapid.SampledFrom([]string{"main", "MAIN", "*", "m*"}).Draw(t, "rule"),
			Push: access(t, "push"), ForcePush: access(t, "force"), Merge: access(t, "merge"),
			StatusCheck: rapid.Bool().Draw(t, "check"),
			Contexts:    rapid.SliceOfNDistinct(rapid.SampledFrom(patterns), 0, 4, rapid.ID).Draw(t, "contexts"),
			Approvals:   rapid.Int64Range(0, 2).Draw(t, "approvals"), Signed: rapid.Bool().Draw(t, "signed"),
			DismissStale: rapid.Bool().Draw(t, "dismiss"), BindsAdmins: rapid.Bool().Draw(t, "admins"),
			UnprotectedFiles: rapid.SampledFrom([]string{"", " ; ", "*.md"}).Draw(t, "files"),
		}
		before.Merge.Allowed = true
		b.Protection = &before
		found := b.Judge("ops/home-gitops")
		change, needed := b.Fix()
		fixable := false
		for _, f := range found {
			fixable = fixable || f.Fixable
		}
		if fixable != needed {
			t.Fatalf("fixable %v, and something to fix %v: %v", fixable, needed, checks(found))
		}
		after := b.Planned(change)
		if more := doctor.Wider(&before, after); len(more) > 0 {
			t.Fatalf("it allows more of %v:\n%+v\n%+v", more, before, after)
		}
		b.Protection = &after
		for _, f := range b.Judge("ops/home-gitops") {
			if f.Fixable {
				t.Fatalf("still: %+v", f)
			}
		}
		if _, again := b.Fix(); again {
			t.Fatal("there is still something to fix")
		}
	})
}

func TestWider(t *testing.T) {
	full := pull.Protection{
		Push:        pull.Access{Allowed: true, Limited: true, Users: []string{"alice"}},
		Merge:       pull.Access{Allowed: true, Limited: true, Users: []string{"alice"}},
		StatusCheck: true, Contexts: []string{approval, preconditions}, Approvals: 1, DismissStale: true, BlockOnRejected: true, BlockOnOutdated: true,
		Signed: true, BindsAdmins: true,
	}
	for name, loosen := range map[string]func(*pull.Protection){
		"push":       func(p *pull.Protection) { p.Push.Limited = false },
		"pusher":     func(p *pull.Protection) { p.Push.Users = []string{"alice", "bob"} },
		"deploy key": func(p *pull.Protection) { p.Push.DeployKeys = true },
		"force":      func(p *pull.Protection) { p.ForcePush.Allowed = true },
		"merge team": func(p *pull.Protection) { p.Merge.Teams = []string{"ops"} },
		"check":      func(p *pull.Protection) { p.StatusCheck = false },
		"context":    func(p *pull.Protection) { p.Contexts = []string{preconditions} },
		"approvals":  func(p *pull.Protection) { p.Approvals = 0 },
		"stale":      func(p *pull.Protection) { p.DismissStale = false },
		"rejected":   func(p *pull.Protection) { p.BlockOnRejected = false },
		"outdated":   func(p *pull.Protection) { p.BlockOnOutdated = false },
		"signed":     func(p *pull.Protection) { p.Signed = false },
		"files":      func(p *pull.Protection) { p.UnprotectedFiles = "a" },
		"admins":     func(p *pull.Protection) { p.BindsAdmins = false },
	} {
		after := full
		loosen(&after)
		if got := doctor.Wider(&full, after); len(got) != 1 {
			t.Errorf("%s: %v, want one", name, got)
		}
		if got := doctor.Wider(&after, full); len(got) != 0 {
			t.Errorf("%s, the other way: %v", name, got)
		}
	}
	all := full
	all.Contexts = nil
	if got := doctor.Wider(&all, full); len(got) != 1 {
		t.Errorf("from every status to one: %v", got)
	}
}

func TestDifferenceText(t *testing.T) {
	b := locked()
	b.Protection = nil
	change, _ := b.Fix()
	planned := b.Planned(change)
	got := doctor.DifferenceText("ops/home-gitops, branch main", doctor.Differences(nil, &planned), doctor.Style{})
	want := `ops/home-gitops, branch main
  rule
    - none
    + main
  who may push without a pull request
    - everybody who may write
    + nobody
  who of those may replace history
    - everybody who may write
    + nobody
  statuses that must be successful
    - none
    + signalbox / preconditions (main)
    + signalbox / approval (main)
  administrators are bound too
    - no
    + yes
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
