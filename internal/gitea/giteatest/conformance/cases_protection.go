package conformance

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func protection(t *testing.T, e env) {
	r := e.repo(t, "lock")
	bob := e.clientOf(t, e.bobToken)
	_, found, err := e.client.Protection(e.ctx, r, "main")
	must(t, err)
	same(t, "whether a new branch is protected", false, found)
	_, found, err = bob.Protection(e.ctx, r, "main")
	must(t, err)
	same(t, "whether it is, asked for by a writer", false, found)
	_, _, err = e.client.Protection(e.ctx, r, "none")
	wantError(t, "a missing branch", err, gitea.ErrNotFound)

	want := pull.Protection{
		Rule: "main", Priority: 1,
		Push:      pull.Access{Allowed: true, Limited: true, Users: []string{e.alice.Login, e.bot.Login}, Teams: []string{}, DeployKeys: true},
		ForcePush: pull.Access{Allowed: true, Limited: true, Users: []string{e.bot.Login}, Teams: []string{}},
		Merge:     pull.Access{Allowed: true, Limited: true, Users: []string{e.bot.Login}, Teams: []string{}},
		Approvers: pull.Access{Allowed: true, Limited: true, Users: []string{e.bob.Login}, Teams: []string{}},
		Approvals: 2, StatusCheck: true, Contexts: []string{"ci/*", "signalbox / approval (main)"},
		DismissStale: true, IgnoreStale: true, BlockOnRejected: true, BlockOnRequested: true, BlockOnOutdated: true,
		ProtectedFiles: "clusters/**;*.md", UnprotectedFiles: "docs/**", BindsAdmins: true,
	}
	must(t, e.Protect(e.ctx, r, want))
	got, found, err := e.client.Protection(e.ctx, r, "main")
	must(t, err)
	same(t, "found", true, found)
	same(t, "protection", want, got)
	_, _, err = bob.Protection(e.ctx, r, "main")
	wantError(t, "a protection asked for by a writer", err, gitea.ErrForbidden)

	must(t, e.Unprotect(e.ctx, r, "main"))
	_, found, err = e.client.Protection(e.ctx, r, "main")
	must(t, err)
	same(t, "found after it was taken away", false, found)
}

func protectionPatterns(t *testing.T, e env) {
	r := e.repo(t, "patterns")
	branches := []string{"main", "release/1", "release/2/x", "a{b}", "a.b-c"}
	for _, branch := range branches[1:] {
		e.push(t, r, giteatest.Push{Branch: branch, Files: map[string]string{"x": branch + "\n"}})
	}
	read := func(branch string) string {
		t.Helper()
		p, _, err := e.client.Protection(e.ctx, r, branch)
		must(t, err)
		return p.Rule
	}
	for _, text := range []string{
		"MAIN", "m*", "*", "**", "release/*", "release/**", "release/?", "release/[0-9]", "release/[!1]", "{main,release/1}",
		"a{b}", `a\{b\}`, "a.*", "a?b-c", "{main", "ma{in,", "re*1", "[a-m]*",
	} {
		must(t, e.Protect(e.ctx, r, pull.Protection{Rule: text}))
		pattern, ok := pull.CompilePattern(text, "/")
		for _, branch := range branches {
			want := ""
			plain := text == pull.QuotePattern(text)
			if plain && strings.EqualFold(text, branch) || !plain && ok && pattern.Match(branch) {
				want = text
			}
			same(t, fmt.Sprintf("rule of %q beside %q", branch, text), want, read(branch))
		}
		must(t, e.Unprotect(e.ctx, r, text))
	}

	// The first in the order of priority, and of two with one priority the one
	// that is no pattern.
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "*"}))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "main"}))
	same(t, "the older rule", "*", read("main"))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "main", Priority: 1}))
	same(t, "the plain rule", "main", read("main"))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "m*", Priority: 1}))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "main", Priority: 7}))
	same(t, "the older pattern", "*", read("main"))
}

func setProtection(t *testing.T, e env) {
	r := e.repo(t, "setting")
	yes, files := true, "docs/**"
	contexts := []string{"signalbox / preconditions (main)", "signalbox / approval (main)"}
	change := pull.ProtectionChange{
		Push: &pull.Access{}, ForcePush: &pull.Access{},
		Merge:    &pull.Access{Limited: true, Users: []string{strings.ToUpper(e.bot.Login)}},
		Contexts: &contexts, BindsAdmins: &yes, BlockOnRejected: &yes,
	}
	before, after, err := e.client.SetProtection(e.ctx, r, "main", change)
	must(t, err)
	same(t, "before", pull.Protection{}, before)
	nobody := pull.Access{Users: []string{}, Teams: []string{}}
	want := pull.Protection{
		Rule: "main", Priority: 1, Push: nobody, ForcePush: nobody,
		Merge:       pull.Access{Allowed: true, Limited: true, Users: []string{e.bot.Login}, Teams: []string{}},
		Approvers:   pull.Access{Allowed: true, Users: []string{}, Teams: []string{}},
		StatusCheck: true, Contexts: contexts, BindsAdmins: true, BlockOnRejected: true,
	}
	same(t, "after", want, after)
	for _, context := range contexts {
		same(t, "whether it requires "+context, true, after.Requires(context))
	}

	// Only what is named changes.
	before, after, err = e.client.SetProtection(e.ctx, r, "main", pull.ProtectionChange{UnprotectedFiles: &files})
	must(t, err)
	same(t, "before the second change", want, before)
	want.UnprotectedFiles = files
	same(t, "after the second change", want, after)
	before, after, err = e.client.SetProtection(e.ctx, r, "main", pull.ProtectionChange{
		Push: &pull.Access{Allowed: true, Limited: true, Users: []string{e.alice.Login}}, Contexts: &[]string{},
	})
	must(t, err)
	same(t, "before the third change", want, before)
	want.Push = pull.Access{Allowed: true, Limited: true, Users: []string{e.alice.Login}, Teams: []string{}}
	want.Contexts = []string{}
	same(t, "after the third change", want, after)

	bob := e.clientOf(t, e.bobToken)
	_, _, err = bob.SetProtection(e.ctx, r, "main", change)
	wantError(t, "a change by a writer", err, gitea.ErrForbidden)
	must(t, e.Unprotect(e.ctx, r, "main"))
	_, _, err = bob.SetProtection(e.ctx, r, "main", change)
	wantError(t, "a new rule by a writer", err, gitea.ErrForbidden)
	_, _, err = e.client.SetProtection(e.ctx, r, "none", change)
	wantError(t, "the protection of a missing branch", err, gitea.ErrNotFound)
}

// setProtectionBeside protects branches that fall under patterns.
func setProtectionBeside(t *testing.T, e env) {
	r := e.repo(t, "beside")
	for _, branch := range []string{"dev", "release/1", "a{b}"} {
		e.push(t, r, giteatest.Push{Branch: branch, Files: map[string]string{"x": branch + "\n"}})
	}
	must(t, e.Protect(e.ctx, r, pull.Protection{
		Rule: "*", Approvals: 1, StatusCheck: true, Contexts: []string{"ci"},
		Approvers: pull.Access{Limited: true, Users: []string{e.bob.Login}},
	}))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "release/*", Approvals: 3}))
	must(t, e.Protect(e.ctx, r, pull.Protection{Rule: "release/1"}))
	yes := true
	for _, tt := range []struct{ branch, from, rule string }{
		{"main", "*", "main"},
		{"release/1", "release/*", "release/1"},
		{"a{b}", "*", `a\{b\}`},
		{"a{b}", `a\{b\}`, `a\{b\}`},
	} {
		// A character of a branch that would make it a pattern is escaped.
		before, after, err := e.client.SetProtection(e.ctx, r, tt.branch, pull.ProtectionChange{BindsAdmins: &yes})
		must(t, err)
		same(t, "rule of "+tt.branch+" before", tt.from, before.Rule)
		want := before
		want.Rule, want.BindsAdmins, want.Priority = tt.rule, true, after.Priority
		same(t, "rule of "+tt.branch+" after", want, after)
		other, _, err := e.client.Protection(e.ctx, r, "dev")
		must(t, err)
		same(t, "whether the pattern binds administrators", false, other.BindsAdmins)
	}
}

func protectionPeople(t *testing.T, e env) {
	r := e.repo(t, "lists")
	root, _ := e.person(t, "boss")
	must(t, e.SetAdmin(e.ctx, root.Login, true))
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Read))
	leftOut := func(name string) {
		t.Helper()
		_, after, err := e.client.SetProtection(e.ctx, r, "main", pull.ProtectionChange{
			Merge: &pull.Access{Limited: true, Users: []string{e.bot.Login, name}},
		})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want one that names %s", err, name)
		}
		same(t, "who is shown to merge", []string{e.bot.Login}, after.Merge.Users)
	}
	// Gitea leaves out who may only read, without a word. An administrator of
	// Gitea without a right of their own is in the list, and not shown.
	leftOut(e.bob.Login)
	leftOut(root.Login)
	number, _ := e.open(t, r, "hidden")
	_, err := e.Merge(e.ctx, r, number, root.Login)
	must(t, err)
	_, _, err = e.client.SetProtection(e.ctx, r, "main", pull.ProtectionChange{
		Merge: &pull.Access{Limited: true, Users: []string{e.prefix + "nobody"}},
	})
	if err == nil {
		t.Error("nobody could be put in a list")
	}
	must(t, e.SetAdmin(e.ctx, root.Login, false))

	org := e.prefix + "union"
	must(t, e.CreateOrg(e.ctx, org))
	must(t, e.SetTeam(e.ctx, org, "Owners", e.bot.Login))
	must(t, e.SetTeam(e.ctx, org, "Ops", e.alice.Login))
	must(t, e.SetTeam(e.ctx, org, "dev", e.bob.Login))
	owned, err := e.CreateRepo(e.ctx, org, "united", base)
	must(t, err)
	_, after, err := e.client.SetProtection(e.ctx, owned, "main", pull.ProtectionChange{
		Merge: &pull.Access{Limited: true, Teams: []string{"ops"}},
	})
	must(t, err)
	same(t, "teams", []string{"Ops"}, after.Merge.Teams)
	number, _ = e.open(t, owned, "change")
	if _, err := e.Merge(e.ctx, owned, number, e.bob.Login); err == nil {
		t.Error("a member of another team could merge")
	}
	_, err = e.Merge(e.ctx, owned, number, e.alice.Login)
	must(t, err)
}
