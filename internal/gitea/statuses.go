package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// statusPages is how many pages of 50 statuses of a commit are read at most.
const statusPages = 20

// Statuses returns the newest status of each context of a commit, in the order
// of their ids. The newest is the one with the highest id: Gitea's times have
// whole seconds. States are given as they were posted, whatever the word. Only
// the newest thousand of all that were ever posted count.
func (c *Client) Statuses(ctx context.Context, repo pull.Repo, sha string) ([]pull.Status, error) {
	list, _, err := c.statuses(ctx, repo, sha)
	if err != nil {
		return nil, c.fail(err, nil, "list statuses of %s in %s", sha, repo)
	}
	return convertAll(list, func(s sdk.Status) pull.Status {
		return pull.Status{
			ID:          s.ID,
			Context:     s.Context,
			State:       string(s.State),
			Description: s.Description,
			Creator:     person(s.Creator),
		}
	}), nil
}

// CommitStatuses is [Client.Statuses] as a fact: the newest status of each
// context, sorted by context. The states are those of Gitea; any word can be
// posted, and one that is not known is kept. A commit that the repository does
// not have has no statuses.
//
// The calls: one for each 50 statuses that were ever posted on the commit, 20 at
// most, the newest first; [fact.Statuses.More] says that there are older ones.
// Then one for each run of Gitea Actions, ten at most, of which a status says
// something new: whether its jobs bear it out. That is remembered.
func (c *Client) CommitStatuses(ctx context.Context, repo pull.Repo, commit string) (fact.Statuses, error) {
	const operation = "list statuses of %s in %s"
	list, more, err := c.statuses(ctx, repo, commit)
	if err != nil {
		return fact.Statuses{}, c.fail(err, nil, operation, commit, repo)
	}
	jobs, err := c.statusJobs(ctx, repo, commit, list)
	if err != nil {
		return fact.Statuses{}, c.fail(err, nil, operation, commit, repo)
	}
	slices.SortFunc(list, func(a, b sdk.Status) int { return cmp.Compare(a.Context, b.Context) })
	return fact.Statuses{More: more, Statuses: convertAll(list, func(s sdk.Status) fact.Status {
		return fact.Status{
			Context:     s.Context,
			State:       string(s.State),
			Description: s.Description,
			URL:         c.absolute(s.TargetURL),
			Creator:     person(s.Creator).Login,
			Job:         jobs[s.ID],
			At:          instant(s.Created),
		}
	})}, nil
}

// statuses returns the newest status of each context, in the order of their
// ids. more says that there are older ones that were not read.
func (c *Client) statuses(ctx context.Context, repo pull.Repo, sha string) (_ []sdk.Status, more bool, err error) {
	if err := checkCommit(sha); err != nil {
		return nil, false, err
	}
	list, more, err := exactUpTo(ctx, pages[sdk.Status]{
		client: c,
		route:  "/repos/:owner/:repo/statuses/:sha",
		// Not /commits/{ref}/statuses: there a branch that is named like the
		// commit goes first.
		path: repoPath(repo) + "/statuses/" + sha,
		// By index, because the default order leaves open who is first within one
		// second, and a page could then repeat one entry and lose another. What
		// Gitea calls the least index is the highest one first.
		query: url.Values{"sort": {"leastindex"}},
	}, statusPages, func(s sdk.Status) int64 { return s.ID })
	if err != nil {
		return nil, false, err
	}
	newest := map[string]sdk.Status{}
	for _, s := range list {
		if old, ok := newest[s.Context]; !ok || s.ID > old.ID {
			newest[s.Context] = s
		}
	}
	return slices.SortedFunc(maps.Values(newest), func(a, b sdk.Status) int { return cmp.Compare(a.ID, b.ID) }), more, nil
}

// PostStatus posts a status on a commit; ID and Creator of the status are
// ignored. The state is one of pending, success, error and failure: the
// meaning of warning changed between versions of Gitea, and skipped passes for
// success. An unknown commit is [ErrUnknownCommit].
//
// A status that is posted twice says the same as once, so this call is
// repeated like any other.
func (c *Client) PostStatus(ctx context.Context, repo pull.Repo, sha string, status pull.Status, targetURL string) error {
	const operation = "post status %q on %s in %s"
	if err := cmp.Or(checkCommit(sha), checkStatus(status)); err != nil {
		return c.fail(err, nil, operation, status.Context, sha, repo)
	}
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/statuses/:sha", repeatable: true})
	if err != nil {
		return c.fail(err, nil, operation, status.Context, sha, repo)
	}
	_, resp, err := api.CreateStatus(repo.Owner, repo.Name, sha, sdk.CreateStatusOption{
		State:       sdk.StatusState(status.State),
		Context:     status.Context,
		Description: status.Description,
		TargetURL:   targetURL,
	})
	err = c.fail(err, resp, operation, status.Context, sha, repo)
	var answer *answerError
	if errors.As(err, &answer) && answer.code == http.StatusInternalServerError && c.commitMissing(ctx, repo, sha) {
		// So Gitea says that the repository has no such commit.
		return c.fail(ErrUnknownCommit, nil, operation, status.Context, sha, repo)
	}
	return err
}

func checkStatus(s pull.Status) error {
	switch s.State {
	case "pending", "success", "error", "failure":
	default:
		return fmt.Errorf("state %q is not one that signalbox posts", s.State)
	}
	if s.Context == "" {
		return errors.New("the context is empty")
	}
	return nil
}
