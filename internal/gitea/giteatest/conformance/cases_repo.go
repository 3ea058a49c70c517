package conformance

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/fact"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

func statuses(t *testing.T, e env) {
	r := e.repo(t, "statuses")
	sha, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	list, err := e.client.Statuses(e.ctx, r, sha)
	must(t, err)
	same(t, "statuses of a new commit", 0, len(list))

	const gate = "signalbox / preconditions (main)"
	post := func(s pull.Status) {
		t.Helper()
		must(t, e.client.PostStatus(e.ctx, r, sha, s, "https://example.org/signalbox"))
	}
	post(pull.Status{Context: gate, State: "pending", Description: "waiting"})
	for i := range 60 {
		must(t, e.SetStatus(e.ctx, r, sha, e.alice.Login, pull.Status{Context: fmt.Sprint("ci/", i), State: "success"}))
	}
	must(t, e.SetStatus(e.ctx, r, sha, e.bob.Login, pull.Status{Context: "ci/7", State: "failure", Description: "no"}))
	must(t, e.SetStatus(e.ctx, r, sha, e.bob.Login, pull.Status{Context: "ci/8", State: "skipped"}))
	must(t, e.SetStatus(e.ctx, r, sha, e.bob.Login, pull.Status{Context: gate, State: "success", Description: "trust me"}))

	list, err = e.client.Statuses(e.ctx, r, sha)
	must(t, err)
	same(t, "contexts", 61, len(list))
	got := map[string]pull.Status{}
	for i, s := range list {
		if i > 0 && s.ID <= list[i-1].ID {
			t.Errorf("status %d comes after %d", s.ID, list[i-1].ID)
		}
		s.ID = 0
		got[s.Context] = s
	}
	same(t, "a failure after the first page", pull.Status{Context: "ci/7", State: "failure", Description: "no", Creator: e.bob}, got["ci/7"])
	same(t, "a skipped one", pull.Status{Context: "ci/8", State: "skipped", Creator: e.bob}, got["ci/8"])
	same(t, "one posted over ours", pull.Status{Context: gate, State: "success", Description: "trust me", Creator: e.bob}, got[gate])

	err = e.client.PostStatus(e.ctx, r, strings.Repeat("1", 40), pull.Status{Context: gate, State: "pending"}, "")
	wantError(t, "a status on an unknown commit", err, gitea.ErrUnknownCommit)
	if err := e.client.PostStatus(e.ctx, r, sha, pull.Status{Context: gate, State: "warning"}, ""); err == nil {
		t.Error("a warning was posted")
	}
}

func rawFiles(t *testing.T, e env) {
	r := e.repo(t, "raw")
	first, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	odd := `dir é/#1 %.yaml`
	second := e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{
		".gitea/signalbox.yaml": "version: 2\n", odd: "odd: true\n",
		"large.bin": strings.Repeat("x", 1<<20+1), "fits.bin": strings.Repeat("x", 1<<20), "empty": "",
	}})
	e.push(t, r, giteatest.Push{Branch: "feature/raw", Files: map[string]string{"README.md": "Branch\n"}})
	for _, tt := range []struct {
		ref, path, want string
		err             error
	}{
		{ref: "main", path: ".gitea/signalbox.yaml", want: "version: 2\n"},
		{ref: first, path: ".gitea/signalbox.yaml", want: "version: 1\n"},
		{ref: second, path: ".gitea/signalbox.yaml", want: "version: 2\n"},
		{ref: second, path: "README.md", want: "Home\n"},
		{ref: "feature/raw", path: "README.md", want: "Branch\n"},
		{ref: "main", path: odd, want: "odd: true\n"},
		{ref: second, path: odd, want: "odd: true\n"},
		{ref: "main", path: "empty", want: ""},
		{ref: second, path: "empty", want: ""},
		{ref: "main", path: "fits.bin", want: strings.Repeat("x", 1<<20)},
		{ref: second, path: "fits.bin", want: strings.Repeat("x", 1<<20)},
		{ref: "main", path: "large.bin", err: gitea.ErrTooLarge},
		{ref: second, path: "large.bin", err: gitea.ErrTooLarge},
		{ref: "none", path: "README.md", err: gitea.ErrNotFound},
		{ref: strings.Repeat("1", 40), path: "README.md", err: gitea.ErrNotFound},
		{ref: "main", path: "none.yaml", err: gitea.ErrNotFound},
		{ref: "main", path: "none/none.yaml", err: gitea.ErrNotFound},
		{ref: second, path: "none.yaml", err: gitea.ErrNotFound},
		{ref: second, path: "none/none.yaml", err: gitea.ErrNotFound},
		{ref: "main", path: "clusters", err: gitea.ErrNotFound},
		{ref: second, path: "clusters", err: gitea.ErrNotFound},
	} {
		got, err := e.client.RawFile(e.ctx, r, tt.ref, tt.path)
		if tt.err != nil {
			wantError(t, tt.ref+":"+tt.path, err, tt.err)
			continue
		}
		if err != nil || string(got) != tt.want {
			t.Errorf("%s at %s: %d bytes, error %v; want %d", tt.path, tt.ref, len(got), err, len(tt.want))
		}
	}
}

func ancestry(t *testing.T, e env) {
	r := e.repo(t, "ancestry")
	first, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	number, side := e.open(t, r, "side")
	second := e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{"two": "2\n"}})
	merge, err := e.Merge(e.ctx, r, number, e.bot.Login)
	must(t, err)
	unknown := strings.Repeat("1", 40)
	for _, tt := range []struct {
		name            string
		applied, needed string
		want            bool
		err             error
	}{
		{name: "an older one", applied: second, needed: first, want: true},
		{name: "a newer one", applied: first, needed: second},
		{name: "itself", applied: first, needed: first, want: true},
		{name: "one on another branch", applied: second, needed: side},
		{name: "a merged one", applied: merge, needed: side, want: true},
		{name: "the merge", applied: second, needed: merge},
		{name: "an unknown one", applied: second, needed: unknown, err: gitea.ErrUnknownCommit},
		{name: "in an unknown one", applied: unknown, needed: second, err: gitea.ErrUnknownCommit},
	} {
		got, err := e.client.Contains(e.ctx, r, tt.applied, tt.needed)
		if tt.err != nil {
			wantError(t, tt.name, err, tt.err)
		} else if err != nil || got != tt.want {
			t.Errorf("%s: contained %v, error %v; want %v", tt.name, got, err, tt.want)
		}
	}
}

// shadowed pushes branches that are named like commits.
func shadowed(t *testing.T, e env) {
	r := e.repo(t, "shadow")
	first, err := e.Tip(e.ctx, r, "main")
	must(t, err)
	second := e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "main", Files: map[string]string{"two": "2\n"}})
	// A branch that is named like the first commit, with another policy, and one
	// that is named like the second and points at the first's offspring.
	evil := e.push(t, r, giteatest.Push{Branch: "evil", Files: map[string]string{".gitea/signalbox.yaml": "version: 666\n"}})
	e.push(t, r, giteatest.Push{Branch: first, From: "evil", Files: map[string]string{"evil": "1\n"}})
	e.push(t, r, giteatest.Push{Branch: second, From: first, Files: map[string]string{"evil": "2\n"}})

	got, err := e.client.RawFile(e.ctx, r, first, ".gitea/signalbox.yaml")
	must(t, err)
	same(t, "the policy at a commit", "version: 1\n", string(got))
	contained, err := e.client.Contains(e.ctx, r, first, second)
	must(t, err)
	same(t, "whether the older contains the newer", false, contained)
	contained, err = e.client.Contains(e.ctx, r, second, first)
	must(t, err)
	same(t, "whether the newer contains the older", true, contained)

	must(t, e.SetStatus(e.ctx, r, evil, e.alice.Login, pull.Status{Context: "ci", State: "success"}))
	must(t, e.SetStatus(e.ctx, r, second, e.alice.Login, pull.Status{Context: "ci", State: "failure"}))
	list, err := e.client.Statuses(e.ctx, r, second)
	must(t, err)
	if len(list) != 1 || list[0].State != "failure" {
		t.Errorf("statuses %+v, want the failure alone", list)
	}
}

func teams(t *testing.T, e env) {
	org := e.prefix + "org"
	must(t, e.CreateOrg(e.ctx, org))
	must(t, e.SetTeam(e.ctx, org, "Owners", e.bot.Login))
	must(t, e.SetTeam(e.ctx, org, "Approvers", e.alice.Login, e.bob.Login))
	got, err := e.client.TeamMembers(e.ctx, org, "approvers")
	must(t, err)
	ids := map[int64]bool{}
	for _, p := range got {
		ids[p.ID] = true
	}
	same(t, "members", map[int64]bool{e.alice.ID: true, e.bob.ID: true}, ids)

	must(t, e.SetTeam(e.ctx, org, "Approvers", e.bob.Login))
	got, err = e.client.TeamMembers(e.ctx, strings.ToUpper(org), "Approvers")
	must(t, err)
	same(t, "members after one left", []pull.Person{e.bob}, got)

	_, err = e.client.TeamMembers(e.ctx, org, "none")
	wantError(t, "a missing team", err, gitea.ErrNotFound)
	_, err = e.client.TeamMembers(e.ctx, e.prefix+"none", "approvers")
	wantError(t, "a missing organisation", err, gitea.ErrNotFound)
	_, err = e.client.TeamMembers(e.ctx, e.alice.Login, "approvers")
	wantError(t, "a team of a person", err, gitea.ErrNotFound)

	other := e.prefix + "other"
	must(t, e.CreateOrg(e.ctx, other))
	must(t, e.SetTeam(e.ctx, other, "approvers", e.alice.Login))
	_, err = e.client.TeamMembers(e.ctx, other, "approvers")
	wantError(t, "a team of a foreign organisation", err, gitea.ErrForbidden)
	must(t, e.SetTeam(e.ctx, other, "bots", e.bot.Login))
	_, err = e.client.TeamMembers(e.ctx, other, "approvers")
	wantError(t, "a foreign team of an organisation", err, gitea.ErrForbidden)
	must(t, e.SetTeam(e.ctx, other, "approvers", e.alice.Login, e.bot.Login))
	got, err = e.client.TeamMembers(e.ctx, other, "approvers")
	must(t, err)
	same(t, "number of members of a team that the bot is in", 2, len(got))
}

func rights(t *testing.T, e env) {
	r := e.repo(t, "rights")
	number, head := e.open(t, r, "change")
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.Read))
	bob := e.clientOf(t, e.bobToken)
	err := bob.PostStatus(e.ctx, r, head, pull.Status{Context: "x", State: "success"}, "")
	wantError(t, "a status by a reader", err, gitea.ErrForbidden)
	made, err := e.client.CreateComment(e.ctx, r, number, "mine")
	must(t, err)
	_, err = bob.EditComment(e.ctx, r, made.ID, "no")
	wantError(t, "an edit by a reader", err, gitea.ErrForbidden)

	must(t, e.SetPrivate(e.ctx, r, true))
	must(t, e.Grant(e.ctx, r, e.bob.Login, giteatest.None))
	_, err = bob.Pull(e.ctx, r, number)
	wantError(t, "a private repository", err, gitea.ErrNotFound)
}

func rename(t *testing.T, e env) {
	r := e.repo(t, "before")
	number, head := e.open(t, r, "change")
	now, err := e.RenameRepo(e.ctx, r, e.prefix+"after")
	must(t, err)
	p, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "repository of a pull request that was read by the old name", now, p.Repo)
	err = e.client.PostStatus(e.ctx, r, head, pull.Status{Context: "x", State: "success"}, "")
	wantError(t, "a status by the old name", err, gitea.ErrMoved)
	_, err = e.client.CreateComment(e.ctx, r, number, "hello")
	wantError(t, "a comment by the old name", err, gitea.ErrMoved)
	found, _, err := e.client.RepoByID(e.ctx, r.ID)
	must(t, err)
	same(t, "RepoByID after a rename", now, found)

	// Somebody takes the old name.
	_, err = e.CreateRepo(e.ctx, r.Owner, r.Name, base)
	must(t, err)
	_, err = e.client.OpenPulls(e.ctx, r)
	must(t, err)
	other := r
	other.ID = 0
	_, err = e.client.Pull(e.ctx, other, number)
	wantError(t, "the pull request in the repository that took the name", err, gitea.ErrNotFound)
}

func deletedAccount(t *testing.T, e env) {
	r := e.repo(t, "ghost")
	gone, token, err := e.CreateUser(e.ctx, e.prefix+"gone")
	must(t, err)
	must(t, e.Grant(e.ctx, r, gone.Login, giteatest.Write))
	head := e.push(t, r, giteatest.Push{As: gone.Login, Branch: "change", Files: map[string]string{"x.yaml": "x: 1\n"}})
	number, err := e.OpenPull(e.ctx, r, giteatest.NewPull{As: gone.Login, Title: "Gone", Head: "change"})
	must(t, err)
	_, err = e.Comment(e.ctx, r, number, gone.Login, "bye")
	must(t, err)
	must(t, e.clientOf(t, token).PostStatus(e.ctx, r, head, pull.Status{Context: "ci / lint (push)", State: "success"}, e.runURL(r, 1)+"/jobs/1"))
	must(t, e.DeleteUser(e.ctx, gone.Login))

	ghost := pull.Person{Login: "Ghost"}
	p, err := e.client.Pull(e.ctx, r, number)
	must(t, err)
	same(t, "author", ghost, p.Author)
	list, err := e.client.Comments(e.ctx, r, number)
	must(t, err)
	if len(list) != 1 || list[0].Author != ghost {
		t.Errorf("comments %+v, want one by the ghost", list)
	}
	posted, err := e.client.Statuses(e.ctx, r, head)
	must(t, err)
	if len(posted) != 1 || posted[0].Creator != (pull.Person{}) {
		t.Errorf("statuses %+v, want one by nobody", posted)
	}
	// As one of Gitea Actions has none either, it is told apart by the job.
	same(t, "statuses", []fact.Status{
		{Context: "ci / lint (push)", State: "success", URL: e.runURL(r, 1) + "/jobs/1"},
	}, e.statusFacts(t, r, head))
}
