package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Statuses returns the newest status of each context of a commit, in the order
// of their ids. The newest is the one with the highest id: Gitea's times have
// whole seconds. States are given as they were posted, whatever the word.
func (c *Client) Statuses(ctx context.Context, repo pull.Repo, sha string) ([]pull.Status, error) {
	const operation = "list statuses of %s in %s"
	if err := checkCommit(sha); err != nil {
		return nil, c.fail(err, nil, operation, sha, repo)
	}
	list, err := exact(ctx, pages[sdk.Status]{
		client: c,
		route:  "/repos/:owner/:repo/statuses/:sha",
		// Not /commits/{ref}/statuses: there a branch that is named like the
		// commit goes first.
		path: repoPath(repo) + "/statuses/" + sha,
		// By index, because the default order leaves open who is first within one
		// second, and a page could then repeat one entry and lose another.
		query: url.Values{"sort": {"highestindex"}},
	}, func(s sdk.Status) int64 { return s.ID })
	if err != nil {
		return nil, c.fail(err, nil, operation, sha, repo)
	}
	newest := map[string]sdk.Status{}
	for _, s := range list {
		if old, ok := newest[s.Context]; !ok || s.ID > old.ID {
			newest[s.Context] = s
		}
	}
	var out []pull.Status
	for _, s := range newest {
		out = append(out, pull.Status{
			ID:          s.ID,
			Context:     s.Context,
			State:       string(s.State),
			Description: s.Description,
			Creator:     person(s.Creator),
		})
	}
	slices.SortFunc(out, func(a, b pull.Status) int { return cmp.Compare(a.ID, b.ID) })
	return out, nil
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
