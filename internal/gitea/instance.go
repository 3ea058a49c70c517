package gitea

import (
	"context"

	"signalbox/internal/pull"
)

// Self returns the account of the token.
func (c *Client) Self(ctx context.Context) (pull.Person, error) {
	api, err := c.sdk(ctx, call{route: "/user"})
	if err != nil {
		return pull.Person{}, c.fail(err, nil, "read the bot's account")
	}
	u, resp, err := api.GetMyUserInfo()
	if err != nil {
		return pull.Person{}, c.fail(err, resp, "read the bot's account")
	}
	return person(u), nil
}

// Version returns the version that Gitea tells, such as "1.26.0".
func (c *Client) Version(ctx context.Context) (string, error) {
	api, err := c.sdk(ctx, call{route: "/version"})
	if err != nil {
		return "", c.fail(err, nil, "read the version of Gitea")
	}
	v, resp, err := api.ServerVersion()
	return v, c.fail(err, resp, "read the version of Gitea")
}

// Repo finds a repository by its name, and returns it as it is called now with
// its default branch. After a rename Gitea answers the old name for as long as
// nobody takes it.
func (c *Client) Repo(ctx context.Context, owner, name string) (pull.Repo, string, error) {
	const operation = "read repository %s/%s"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo"})
	if err != nil {
		return pull.Repo{}, "", c.fail(err, nil, operation, owner, name)
	}
	r, resp, err := api.GetRepo(owner, name)
	if err != nil {
		return pull.Repo{}, "", c.fail(err, resp, operation, owner, name)
	}
	return repository(r), r.DefaultBranch, nil
}

// RepoByID finds a repository by its id, which a rename or a move to another
// owner does not change.
func (c *Client) RepoByID(ctx context.Context, id int64) (pull.Repo, string, error) {
	const operation = "read repository with id %d"
	api, err := c.sdk(ctx, call{route: "/repositories/:id"})
	if err != nil {
		return pull.Repo{}, "", c.fail(err, nil, operation, id)
	}
	r, resp, err := api.GetRepoByID(id)
	if err != nil {
		return pull.Repo{}, "", c.fail(err, resp, operation, id)
	}
	return repository(r), r.DefaultBranch, nil
}
