package gitea

import (
	"context"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Hooks returns the webhooks of a repository. Those of its owner and of the
// whole Gitea deliver too and are not among them. The API does not tell whether
// deliveries arrive; the pages of Gitea do. [ErrForbidden] means that the bot's
// account does not administer the repository.
func (c *Client) Hooks(ctx context.Context, repo pull.Repo) ([]pull.Hook, error) {
	list, err := c.listHooks(ctx, repo)
	if err != nil {
		return nil, c.fail(err, nil, "list the webhooks of %s", repo)
	}
	return convertAll(list, func(h sdk.Hook) pull.Hook {
		return pull.Hook{ID: h.ID, URL: h.Config["url"], Active: h.Active, Faults: hookFaults(h)}
	}), nil
}
