//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// stage is a repository with signalbox in front of it, for several scenes. Flux
// knows nothing of it.
type stage struct {
	repo *seed.Repository
	bot  *bot
	// clone is bob's working copy.
	clone *realserver.Clone
}

// newStage plants a repository with a policy and starts signalbox.
func newStage(t *testing.T, o seed.Options, s settings) *stage {
	t.Helper()
	st := plantStage(t, o)
	st.bot = newBot(t, st.repo, s)
	st.bot.start()
	return st
}

// plantStage is a stage without signalbox.
func plantStage(t *testing.T, o seed.Options) *stage {
	t.Helper()
	st := &stage{repo: plant(t, o)}
	var err error
	if st.clone, err = st.repo.Clone(t.Context(), st.repo.Bob, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	return st
}

// write is a change that writes files, given as path and text in turn.
func write(files ...string) realserver.Change {
	c := realserver.Change{Message: "Change " + files[0], Write: map[string]string{}}
	for i := 0; i < len(files); i += 2 {
		c.Write[files[i]] = files[i+1]
	}
	return c
}

// push commits a change as [stage.commit] does, pushes it and returns the commit.
func (st *stage) push(t *testing.T, branch, from string, change realserver.Change) string {
	t.Helper()
	sha := st.commit(t, branch, from, change)
	if err := st.clone.ForcePush(t.Context(), branch); err != nil {
		t.Fatal(err)
	}
	return sha
}

// commit commits a change on a branch of bob's clone, which starts at from if
// from is not empty.
func (st *stage) commit(t *testing.T, branch, from string, change realserver.Change) string {
	t.Helper()
	ctx := t.Context()
	if from != "" {
		if err := st.clone.Fetch(ctx); err != nil {
			t.Fatal(err)
		}
		if err := st.clone.Branch(ctx, branch, from); err != nil {
			t.Fatal(err)
		}
	} else if err := st.clone.Checkout(ctx, branch); err != nil {
		t.Fatal(err)
	}
	sha, err := st.clone.Commit(ctx, change)
	if err != nil {
		t.Fatal(err)
	}
	return sha
}

// request opens bob's pull request of a branch.
func (st *stage) request(t *testing.T, branch, base string) *page {
	t.Helper()
	pr, _, err := client(t, st.repo, st.repo.Bob).CreatePullRequest(st.repo.Owner, st.repo.Name, sdk.CreatePullRequestOption{
		Head: branch, Base: base, Title: fmt.Sprintf("Take %s into %s", branch, base),
	})
	if err != nil {
		t.Fatalf("open a pull request of %s into %s: %v", branch, base, err)
	}
	return newPage(t, st.repo, pr.Index)
}

// open pushes a change on a new branch off main and opens a pull request into
// main.
func (st *stage) open(t *testing.T, branch string, change realserver.Change) *page {
	t.Helper()
	st.push(t, branch, "origin/main", change)
	return st.request(t, branch, "main")
}

// edit edits the pull request as its author.
func (p *page) edit(o sdk.EditPullRequestOption) {
	p.t.Helper()
	if _, _, err := client(p.t, p.repo, p.repo.Bob).EditPullRequest(p.repo.Owner, p.repo.Name, p.number, o); err != nil {
		p.t.Fatal(err)
	}
}

func (p *page) close() {
	p.t.Helper()
	closed := sdk.StateClosed
	p.edit(sdk.EditPullRequestOption{State: &closed})
}

// neverClears waits like [page.shows], and fails as soon as the approval of a
// head is shown as success.
func (p *page) neverClears(head string, limit time.Duration, preconditions, approval string, texts ...string) (shown, time.Duration) {
	p.t.Helper()
	p.watch = func(s shown) {
		if s.head == head && s.approval.State == "success" {
			p.t.Fatalf("%s was shown as approved:\n%s", head, s)
		}
	}
	defer func() { p.watch = nil }()
	s, took := p.shows(limit, preconditions, approval, texts...)
	if s.head != head {
		p.t.Fatalf("the head is %s, want %s", s.head, head)
	}
	return s, took
}
