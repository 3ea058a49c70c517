package gitea

import (
	"context"
	"fmt"
	"net/url"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// OpenPulls returns all open pull requests of a repository, oldest first.
func (c *Client) OpenPulls(ctx context.Context, repo pull.Repo) ([]pull.Pull, error) {
	const operation = "list open pull requests of %s"
	list, err := exact(ctx, pages[sdk.PullRequest]{
		client: c,
		route:  "/repos/:owner/:repo/pulls",
		path:   repoPath(repo) + "/pulls",
		// Oldest first, so that one opened meanwhile comes at the end.
		query: url.Values{"state": {"open"}, "sort": {"oldest"}},
	}, func(p sdk.PullRequest) int64 { return p.Index })
	if err != nil {
		return nil, c.fail(err, nil, operation, repo)
	}
	out := make([]pull.Pull, 0, len(list))
	for _, p := range list {
		converted, err := convertPull(&p, repo)
		if err != nil {
			return nil, c.fail(err, nil, operation, repo)
		}
		out = append(out, converted)
	}
	return out, nil
}

// Pull returns a pull request. Its head commit is the tip of its branch, which
// for a moment after a push is ahead of what Gitea bases files and diff on, and
// so may the merge base be behind: see [Client.FilesAt] and [Client.DiffAt].
func (c *Client) Pull(ctx context.Context, repo pull.Repo, number int64) (pull.Pull, error) {
	const operation = "read pull request %s#%d"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/pulls/:n"})
	if err != nil {
		return pull.Pull{}, c.fail(err, nil, operation, repo, number)
	}
	p, resp, err := api.GetPullRequest(repo.Owner, repo.Name, number)
	if err != nil {
		return pull.Pull{}, c.fail(err, resp, operation, repo, number)
	}
	out, err := convertPull(p, repo)
	return out, c.fail(err, nil, operation, repo, number)
}

// Head returns the commit that Gitea bases the files and the diff of a pull
// request on. Between the push and this reference lies the work of a queue.
func (c *Client) Head(ctx context.Context, repo pull.Repo, number int64) (string, error) {
	const operation = "read the head of %s#%d"
	name := fmt.Sprintf("refs/pull/%d/head", number)
	// Gitea treats the name as the beginning of one, and answers with a list.
	var refs []struct {
		Ref    string `json:"ref"`
		Object struct {
			SHA string `json:"sha"`
		} `json:"object"`
	}
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/git/refs/pull/:n/head"},
		repoPath(repo)+"/git/"+name, nil, &refs)
	if err != nil {
		return "", c.fail(err, nil, operation, repo, number)
	}
	for _, ref := range refs {
		if ref.Ref == name {
			return ref.Object.SHA, nil
		}
	}
	return "", c.fail(ErrNotFound, nil, operation, repo, number)
}
