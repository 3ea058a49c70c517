package digest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/fact"
)

// pipelines finds what is the matter with what runs the workflows of repositories.
func (f *finder) pipelines() {
	if !f.wants(Pipelines) {
		return
	}
	// Who runs no workflow that anybody asks about needs no runner.
	asked := map[int64]bool{}
	for _, kind := range []string{fact.KindRenovate, fact.KindRuns} {
		for _, held := range f.ofRepos(kind) {
			asked[held.repo.ID] = true
		}
	}
	for _, held := range f.ofRepos(fact.KindActions) {
		f.actions(held.repo, held.Fact, asked[held.repo.ID])
	}
	for _, held := range f.ofRepos(fact.KindRenovate) {
		f.renovate(held.Fact, renovating{
			at:      []any{"repo", held.repo.ID, "renovate", held.Key.Name},
			repo:    held.repo.ID,
			subject: fmt.Sprintf("Renovate in %s of %s", held.Key.Name, held.repo),
		})
	}
	for _, held := range f.ofRepos(fact.KindRuns) {
		f.runs(held.repo, held.Fact)
	}
}

// ofRepo is a fact of a repository.
type ofRepo struct {
	fact.Fact
	repo Repository
}

// ofRepos returns the facts of a kind that are of the repositories, sorted by those.
func (f *finder) ofRepos(kind string) []ofRepo {
	var out []ofRepo
	for _, held := range f.in.Facts.Select(fact.SourceGitea, "", kind) {
		n, err := strconv.ParseInt(held.Key.Namespace, 10, 64)
		repo, ok := f.repos[n]
		if err == nil && ok && !held.Absent {
			out = append(out, ofRepo{held, repo})
		}
	}
	slices.SortStableFunc(out, func(a, b ofRepo) int { return strings.Compare(a.repo.String(), b.repo.String()) })
	return out
}

// actions finds what is the matter with the runners of a repository. Asked says that
// somebody asks about a workflow of it.
func (f *finder) actions(repo Repository, held fact.Fact, asked bool) {
	at := []any{"repo", repo.ID, "runner"}
	f.ask(Pipelines, at...)
	blind := Blind{Section: Pipelines, Repo: repo.ID, Prefix: prefix(Pipelines, at...)}
	switch {
	case held.Problem != "":
		blind.Why = fmt.Sprintf("the runners of %s cannot be read: %s", repo, held.Problem)
	case held.Actions == nil:
		blind.Why = fmt.Sprintf("the runners of %s have not been read yet", repo)
	case held.Actions.RunnersProblem != "":
		// Most runners are of an owner or of all of Gitea, which few accounts may see.
		blind.Why, blind.Minor = fmt.Sprintf("signalbox may not see every runner of %s: %s", repo, held.Actions.RunnersProblem), true
	}
	if blind.Why != "" {
		f.blind(blind)
	}
	if held.Problem != "" || held.Actions == nil {
		return
	}
	online := 0
	for _, r := range held.Actions.Runners {
		if r.Online && !r.Disabled {
			online++
		}
	}
	all := held.Actions.Runners
	if len(all) > 0 {
		f.summary(Pipelines, Summary{Repo: repo.ID, Text: fmt.Sprintf("%d of %s of %s %s online", online, plural(len(all), "runner"), repo, isAre(online))})
	}
	// Where some may not be seen, one of those may be online.
	if online == 0 && blind.Why == "" && (asked || len(all) > 0) {
		text := "has no runner that is online, so no workflow runs"
		if len(all) == 0 {
			text = "has no runner, so no workflow runs"
		}
		f.add(Finding{
			ID: id(Pipelines, append(at, "", "none")...), Section: Pipelines, Repo: repo.ID, Severity: Broken,
			Subject: repo.String(), Text: text, Since: held.Since,
		})
	}
	for _, r := range all {
		text := "is offline"
		switch {
		case r.Disabled:
			text = "is disabled"
		case r.Online:
			continue
		}
		f.add(Finding{
			ID: id(Pipelines, append(at, r.Name, "away")...), Section: Pipelines, Repo: repo.ID, Severity: Notable,
			Subject: fmt.Sprintf("Runner %s of %s", clip(r.Name, maxName), repo), Text: text,
		})
	}
}

// Conclusions of a run, in the words of Gitea.
const (
	runSuccess   = "success"
	runSkipped   = "skipped"
	runCancelled = "cancelled"
)

// runs finds what is the matter with the newest run of a workflow on the main branch.
func (f *finder) runs(repo Repository, held fact.Fact) {
	workflow, on, _ := strings.Cut(held.Key.Name, "@")
	if repo.Main == "" || on != "refs/heads/"+repo.Main {
		return
	}
	at := []any{"repo", repo.ID, "workflow", workflow}
	f.ask(Pipelines, at...)
	if held.Problem != "" || held.Runs == nil {
		if held.Problem != "" {
			f.blind(Blind{Section: Pipelines, Repo: repo.ID, Prefix: prefix(Pipelines, at...), Why: fmt.Sprintf("the runs of %s of %s cannot be read: %s", workflow, repo, held.Problem)})
		}
		return
	}
	i := slices.IndexFunc(held.Runs.Runs, func(r fact.Run) bool { return r.Status == "completed" })
	if i < 0 {
		return
	}
	run := held.Runs.Runs[i]
	found := Finding{
		Section: Pipelines, Repo: repo.ID, Subject: fmt.Sprintf("Workflow %s of %s", workflow, repo), Since: run.Completed, URL: run.URL,
	}
	var skipped []string
	for _, j := range run.Jobs {
		if j.Conclusion == runSkipped {
			skipped = append(skipped, clip(j.Name, maxName))
		}
	}
	switch {
	case run.Conclusion == "failure":
		found.ID, found.Severity = id(Pipelines, append(at, "failed")...), Broken
		found.Text = fmt.Sprintf("failed on %s (run %d)", repo.Main, run.ID)
	case run.Conclusion == runSuccess && len(skipped) > 0:
		found.ID, found.Severity = id(Pipelines, append(at, "skipped")...), Notable
		found.Text = fmt.Sprintf("says success on %s (run %d), and skipped %s %s", repo.Main, run.ID, jobs(len(skipped)), someOf(skipped))
	default:
		return
	}
	f.add(found)
}

func jobs(n int) string {
	if n == 1 {
		return "its job"
	}
	return "its jobs"
}
