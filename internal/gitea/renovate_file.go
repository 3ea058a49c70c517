package gitea

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
	"signalbox/internal/renovate"
)

// workflowDirs are the folders that Gitea looks for workflows in. The second
// counts only where there is no first.
var workflowDirs = []string{".gitea/workflows", ".github/workflows"}

// configured fills in what the workflow's file tells Renovate to do now.
func (c *Client) configured(ctx context.Context, q renovateQuery, out *fact.Renovate, fresh *renovateMemory, quiet bool) error {
	data, err := c.workflowFile(ctx, q, fresh)
	switch {
	case errors.Is(err, ErrNotFound):
		out.Missing = true
		out.Configured.Problem = "branch " + c.clean(q.main) + " has no workflow " + c.clean(q.workflow)
		return nil
	case errors.Is(err, ErrTooLarge):
		out.Configured.Problem = "the file of the workflow is too large"
		return nil
	case err != nil:
		return err
	}
	fresh.file = sha256.Sum256(data)
	read, err := renovate.Workflow(q.workflow, data, nil)
	if err != nil {
		out.Configured.Problem = err.Error()
		return nil //nolint:nilerr // It is the fact's problem.
	}
	note := ""
	if len(read.Variables) > 0 {
		var variables map[string]string
		if variables, note, err = c.usedVariables(ctx, q.repo, read.Variables); err != nil {
			return err
		}
		// It could be read a moment ago, so it can now.
		if read, err = renovate.Workflow(q.workflow, data, variables); err != nil {
			return err
		}
	}
	out.Configured = describeFile(read, note)
	if held := q.before.Configured.MissingSecrets; quiet && fresh.file == q.known.file && len(held) == 0 {
		return nil
	}
	out.Configured.MissingSecrets, err = c.missingSecrets(ctx, q.repo, read.Secrets)
	return err
}

// workflowFile reads the file of the workflow on the default branch.
func (c *Client) workflowFile(ctx context.Context, q renovateQuery, fresh *renovateMemory) ([]byte, error) {
	if !q.known.second {
		data, err := c.RawFile(ctx, q.repo, q.main, workflowDirs[0]+"/"+q.workflow)
		if !errors.Is(err, ErrNotFound) {
			return data, err
		}
	}
	var ignored json.RawMessage
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/contents/:path"},
		repoPath(q.repo)+"/contents/"+escapePath(workflowDirs[0]), url.Values{"ref": {q.main}}, &ignored)
	switch {
	case errors.Is(err, ErrNotFound):
		fresh.second = true
		return c.RawFile(ctx, q.repo, q.main, workflowDirs[1]+"/"+q.workflow)
	case err != nil:
		return nil, err
	case q.known.second:
		// The folder is new.
		return c.RawFile(ctx, q.repo, q.main, workflowDirs[0]+"/"+q.workflow)
	}
	return nil, ErrNotFound
}

// usedVariables returns the variables of a repository if all that are used are
// among them. One that is not may be the owner's or the whole Gitea's, which
// signalbox does not see; then nothing is known, and the note says why.
func (c *Client) usedVariables(ctx context.Context, repo pull.Repo, used []string) (map[string]string, string, error) {
	variables, problem, err := c.variables(ctx, repo)
	if err != nil || problem != "" {
		return nil, problem, err
	}
	for _, name := range used {
		if _, ok := variables[name]; !ok {
			return nil, "the repository has no variable " + name + "; whether its owner or the whole Gitea has one, signalbox cannot see", nil
		}
	}
	return variables, "", nil
}

// describeFile converts what the file tells.
func describeFile(read renovate.Configuration, note string) fact.RenovateConfigured {
	var out fact.RenovateConfigured
	var why []string
	for _, t := range read.Triggers {
		if t.Event == "schedule" {
			out.Schedules = append(out.Schedules, t.Crons...)
		}
	}
	if s, ok := read.OnSchedule(); ok {
		out.OnSchedule = s.Mode.Word()
		why = append(why, "by schedule: "+s.Why)
	}
	if s, ok := read.OnDispatch(); ok {
		out.ByHand = s.Mode.Word()
		why = append(why, "by hand: "+s.Why)
	}
	if note != "" {
		why = append(why, note)
	}
	out.Why = strings.Join(why, "; ")
	return out
}

// missingSecrets returns the secrets that are used and that the repository does
// not have; none where that may not be seen.
func (c *Client) missingSecrets(ctx context.Context, repo pull.Repo, used []string) ([]string, error) {
	// Those of these names are Gitea's own, which it gives to every job.
	used = slices.DeleteFunc(slices.Clone(used), func(name string) bool {
		return strings.HasPrefix(name, "GITEA_") || strings.HasPrefix(name, "GITHUB_")
	})
	if len(used) == 0 {
		return nil, nil
	}
	have, problem, err := c.secrets(ctx, repo)
	if err != nil || problem != "" {
		return nil, err
	}
	var missing []string
	for _, name := range used {
		if !slices.Contains(have, name) {
			missing = append(missing, name)
		}
	}
	return missing, nil
}

// dashboard returns the rows of Renovate's dashboard by section, or nil where
// none of the accounts has one. It is an open issue with the usual title, or
// with rows that only a dashboard has.
func (c *Client) dashboard(ctx context.Context, repo pull.Repo, accounts []string) (map[string]int, error) {
	for _, account := range accounts {
		var issues []sdk.Issue
		_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/issues"}, repoPath(repo)+"/issues", url.Values{
			"type": {"issues"}, "state": {"open"}, "created_by": {account}, "limit": {"50"},
		}, &issues)
		if errors.Is(err, ErrNotFound) || errors.Is(err, ErrForbidden) {
			// There is no such account, or there are no issues to see.
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, exact := range []bool{true, false} {
			for _, i := range issues {
				title := i.Title
				if !exact {
					title = renovate.DashboardTitle
				}
				read := renovate.Dashboard(i.Body)
				if !renovate.IsDashboard(title, person(i.Poster).Login, "", accounts) || !exact && len(read.Rows) == 0 {
					continue
				}
				out := map[string]int{}
				for section, rows := range read.Sections {
					out[strings.ToLower(section)] += rows.Total
				}
				return out, nil
			}
		}
	}
	return nil, nil
}
