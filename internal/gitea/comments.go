package gitea

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Comments returns all comments of a pull request, oldest first. Comments on
// lines of code and the texts of reviews are not among them.
func (c *Client) Comments(ctx context.Context, repo pull.Repo, number int64) ([]pull.Comment, error) {
	const operation = "list comments of %s#%d"
	// This list is not cut into pages: everything comes at once.
	var list []sdk.Comment
	header, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/issues/:n/comments"},
		fmt.Sprintf("%s/issues/%d/comments", repoPath(repo), number), nil, &list)
	if err != nil {
		return nil, c.fail(err, nil, operation, repo, number)
	}
	if total := totalCount(header); total > len(list) {
		return nil, c.fail(fmt.Errorf("%w: %d of %d entries came", ErrIncomplete, len(list), total),
			nil, operation, repo, number)
	}
	return convertAll(list, func(c sdk.Comment) pull.Comment { return convertComment(&c) }), nil
}

// CommentsSince returns the comments on pull requests of a repository that were
// created or edited at or after a moment, by the number of the pull request.
func (c *Client) CommentsSince(ctx context.Context, repo pull.Repo, since time.Time) (map[int64][]pull.Comment, error) {
	list, err := exact(ctx, pages[sdk.Comment]{
		client: c,
		route:  "/repos/:owner/:repo/issues/comments",
		path:   repoPath(repo) + "/issues/comments",
		query:  url.Values{"since": {since.UTC().Format(time.RFC3339)}},
	}, func(c sdk.Comment) int64 { return c.ID })
	if err != nil {
		return nil, c.fail(err, nil, "list new comments of %s", repo)
	}
	out := map[int64][]pull.Comment{}
	for _, comment := range list {
		if number, ok := pullNumber(comment.PRURL); ok {
			out[number] = append(out[number], convertComment(&comment))
		}
	}
	return out, nil
}

// pullNumber takes the number from ".../pulls/12". It is false for the empty
// address that a comment on a plain issue has.
func pullNumber(address string) (int64, bool) {
	i := strings.LastIndex(address, "/pulls/")
	if i < 0 {
		return 0, false
	}
	var number int64
	if _, err := fmt.Sscanf(address[i:], "/pulls/%d", &number); err != nil || number <= 0 {
		return 0, false
	}
	return number, true
}

// Comment returns one comment, or [ErrNotFound].
func (c *Client) Comment(ctx context.Context, repo pull.Repo, id int64) (pull.Comment, error) {
	const operation = "read comment %d in %s"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/issues/comments/:id"})
	if err != nil {
		return pull.Comment{}, c.fail(err, nil, operation, id, repo)
	}
	comment, resp, err := api.GetIssueComment(repo.Owner, repo.Name, id)
	if resp != nil && resp.Response != nil && resp.StatusCode == http.StatusNoContent {
		// The id belongs to another kind of entry, such as a review.
		err, resp = ErrNotFound, nil
	}
	if err != nil {
		return pull.Comment{}, c.fail(err, resp, operation, id, repo)
	}
	return convertComment(comment), nil
}

// CreateComment writes a comment. It is sent again only when it surely was not
// carried out (the connection was refused, or 429): after any other failure the
// comment may exist, and whoever calls looks for it by its marker before trying
// again.
func (c *Client) CreateComment(ctx context.Context, repo pull.Repo, number int64, body string) (pull.Comment, error) {
	const operation = "post comment on %s#%d"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/issues/:n/comments"})
	if err != nil {
		return pull.Comment{}, c.fail(err, nil, operation, repo, number)
	}
	comment, resp, err := api.CreateIssueComment(repo.Owner, repo.Name, number, sdk.CreateIssueCommentOption{Body: body})
	if err != nil {
		return pull.Comment{}, c.fail(err, resp, operation, repo, number)
	}
	return convertComment(comment), nil
}

// EditComment replaces the text of a comment. [ErrNotFound] means that it was
// deleted.
func (c *Client) EditComment(ctx context.Context, repo pull.Repo, id int64, body string) (pull.Comment, error) {
	const operation = "edit comment %d in %s"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/issues/comments/:id"})
	if err != nil {
		return pull.Comment{}, c.fail(err, nil, operation, id, repo)
	}
	comment, resp, err := api.EditIssueComment(repo.Owner, repo.Name, id, sdk.EditIssueCommentOption{Body: body})
	if err != nil {
		return pull.Comment{}, c.fail(err, resp, operation, id, repo)
	}
	return convertComment(comment), nil
}

// DeleteComment deletes a comment. [ErrNotFound] means that it is gone already.
func (c *Client) DeleteComment(ctx context.Context, repo pull.Repo, id int64) error {
	const operation = "delete comment %d in %s"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/issues/comments/:id"})
	if err != nil {
		return c.fail(err, nil, operation, id, repo)
	}
	resp, err := api.DeleteIssueComment(repo.Owner, repo.Name, id)
	return c.fail(err, resp, operation, id, repo)
}
