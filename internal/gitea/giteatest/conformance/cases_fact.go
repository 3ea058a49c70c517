package conformance

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func pullFacts(t *testing.T, e env) {
	r := e.repo(t, "pull-facts")
	number, _ := e.open(t, r, "change")
	read := func() fact.Pull {
		t.Helper()
		got, err := e.client.PullFact(e.ctx, strings.ToUpper(r.Owner), strings.ToUpper(r.Name), number)
		must(t, err)
		return got
	}
	want := fact.Pull{
		Repo: r.String(), RepoID: r.ID, Number: number, Title: "Change change", Body: "Because.", State: fact.PullOpen, Base: "main",
		URL: fmt.Sprintf("%s%s/pulls/%d", e.URL(), r, number),
	}
	same(t, "open", want, read())
	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, false))
	want.State = fact.PullClosed
	same(t, "closed", want, read())

	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, true))
	merge, err := e.Merge(e.ctx, r, number, e.bot.Login)
	must(t, err)
	want.State, want.MergeCommit = fact.PullMerged, merge
	got := read()
	if got.MergedAt.IsZero() {
		t.Error("it does not say when it was merged")
	}
	got.MergedAt = time.Time{}
	same(t, "merged", want, got)

	renamed, err := e.RenameRepo(e.ctx, r, e.prefix+"renamed-facts")
	must(t, err)
	got = read()
	want.Repo, want.URL = renamed.String(), strings.Replace(want.URL, r.String(), renamed.String(), 1)
	got.MergedAt = time.Time{}
	same(t, "by the old name of the repository", want, got)

	for what, number := range map[string]int64{"nothing": 99, "no number": 0} {
		_, err = e.client.PullFact(e.ctx, renamed.Owner, renamed.Name, number)
		wantError(t, what, err, gitea.ErrNotFound)
	}
	issue, err := e.OpenIssue(e.ctx, renamed, e.alice.Login, "An issue", "")
	must(t, err)
	_, err = e.client.PullFact(e.ctx, renamed.Owner, renamed.Name, issue)
	wantError(t, "an issue", err, gitea.ErrNotFound)
}

func workshop(t *testing.T, e env) {
	r := e.repo(t, "workshop")
	got, err := e.client.ActionsOf(e.ctx, r)
	must(t, err)
	if got.RunnersProblem == "" || got.Runners != nil {
		t.Errorf("with nothing: %+v", got)
	}
	_, err = e.Register(e.ctx, r, "one", "ubuntu-latest", "arm")
	must(t, err)
	must(t, e.SetSecret(e.ctx, r, "renovate_token", "hidden"))
	must(t, e.SetSecret(e.ctx, r, "another", "hidden"))
	must(t, e.SetVariable(e.ctx, r, "dry_run", "full"))
	got, err = e.client.ActionsOf(e.ctx, r)
	must(t, err)
	same(t, "for the owner", fact.Actions{
		Runners: []fact.Runner{{Name: "one", Labels: []string{"arm", "ubuntu-latest"}, Online: true}},
	}, got)
	// problems are those with runners, secrets and variables.
	problems := func(c *gitea.Client, r pull.Repo) []string {
		t.Helper()
		got, err := c.ActionsOf(e.ctx, r)
		must(t, err)
		secrets, variables, err := c.Hidden(e.ctx, r)
		must(t, err)
		return []string{got.RunnersProblem, secrets, variables}
	}
	same(t, "hidden from the owner", []string{"", "", ""}, problems(e.client, r))

	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Admin))
	for _, problem := range problems(e.clientOf(t, e.bobToken), r) {
		if !strings.Contains(problem, "to its owner alone") {
			t.Errorf("for an administrator who is not the owner: %q", problem)
		}
	}
	must(t, e.SetPrivate(e.ctx, r, true))
	_, token, err := e.CreateUser(e.ctx, e.prefix+"onlooker")
	must(t, err)
	for _, problem := range problems(e.clientOf(t, token), r) {
		if !strings.Contains(problem, "cannot see the repository") {
			t.Errorf("for a stranger: %q", problem)
		}
	}
	org := e.prefix + "works"
	must(t, e.CreateOrg(e.ctx, org))
	must(t, e.SetTeam(e.ctx, org, "Owners", e.bot.Login))
	owned, err := e.CreateRepo(e.ctx, org, "infra", base)
	must(t, err)
	hidden := problems(e.client, owned)
	same(t, "for an owner of the organisation", []string{"", ""}, hidden[1:])
	if !strings.Contains(hidden[0], "or its owner is online") {
		t.Errorf("without runners of the organisation: %q", hidden[0])
	}
}
