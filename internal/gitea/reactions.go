package gitea

import (
	"context"
	"fmt"
	"net/http"

	"signalbox/internal/pull"
)

// React puts a reaction of the bot's account on a comment, such as "eyes", "+1"
// or "-1"; one that is there already is no error. The text of a review takes
// reactions under the id of its [pull.Moment]. [ErrNotFound] means that the
// comment was deleted, [ErrForbidden] that the author blocks the bot's account,
// the conversation is locked, or Gitea does not offer the reaction.
func (c *Client) React(ctx context.Context, repo pull.Repo, commentID int64, reaction string) error {
	// A second time answers that it is there.
	return c.react(ctx, http.MethodPost, repo, commentID, reaction)
}

// Unreact takes a reaction of the bot's account back; one that is not there is
// no error. [ErrNotFound] means that the comment was deleted.
func (c *Client) Unreact(ctx context.Context, repo pull.Repo, commentID int64, reaction string) error {
	return c.react(ctx, http.MethodDelete, repo, commentID, reaction)
}

func (c *Client) react(ctx context.Context, method string, repo pull.Repo, commentID int64, reaction string) error {
	err := c.sendJSON(ctx, call{route: "/repos/:owner/:repo/issues/comments/:id/reactions", repeatable: true},
		fmt.Sprintf("%s %s/issues/comments/%d/reactions", method, repoPath(repo), commentID),
		map[string]string{"content": reaction}, nil)
	if err == nil {
		return nil
	}
	if method == http.MethodDelete {
		return c.fail(err, nil, "take reaction %q from comment %d in %s", reaction, commentID, repo)
	}
	return c.fail(err, nil, "put reaction %q on comment %d in %s", reaction, commentID, repo)
}
