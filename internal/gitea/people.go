package gitea

import (
	"context"
	"fmt"
	"net/url"
	"strconv"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Permission returns what an account may do in a repository. [ErrNotFound]
// means that there is no such account or repository, [ErrForbidden] that the
// bot's account does not administer the repository.
//
// For a member of teams it is coarse, and never too much: of a team that may
// write code and only read issues Gitea tells that it may read. Whoever belongs
// to a team that administers the organisation's repositories is an owner, as
// are the owners of the organisation and the administrators of Gitea.
func (c *Client) Permission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error) {
	const operation = "read the permission of %s in %s"
	var out struct {
		Permission pull.Permission `json:"permission"`
	}
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/collaborators/:user/permission"},
		repoPath(repo)+"/collaborators/"+url.PathEscape(login)+"/permission", nil, &out)
	if err != nil {
		return pull.PermissionNone, c.fail(err, nil, operation, login, repo)
	}
	switch out.Permission {
	case pull.PermissionNone, pull.PermissionRead, pull.PermissionWrite, pull.PermissionAdmin, pull.PermissionOwner:
		return out.Permission, nil
	}
	return pull.PermissionNone, c.fail(fmt.Errorf("unknown permission %q", c.clean(string(out.Permission))),
		nil, operation, login, repo)
}

// UserByID returns the account with an id, which a rename does not change.
// [ErrNotFound] means that it was deleted, or that the bot's account may not
// see it: a private account, an organisation, an account of the kind "bot", or
// any account where Gitea hides its list of users.
func (c *Client) UserByID(ctx context.Context, id int64) (pull.Person, error) {
	const operation = "read the account with id %d"
	if id <= 0 {
		// Gitea searches for everybody then, or finds its ghost.
		return pull.Person{}, c.fail(ErrNotFound, nil, operation, id)
	}
	var out struct {
		Data []sdk.User `json:"data"`
	}
	_, err := c.getJSON(ctx, call{route: "/users/search"}, "/users/search",
		url.Values{"uid": {strconv.FormatInt(id, 10)}, "limit": {"1"}}, &out)
	if err != nil {
		return pull.Person{}, c.fail(err, nil, operation, id)
	}
	for _, u := range out.Data {
		if u.ID == id {
			return person(&u), nil
		}
	}
	return pull.Person{}, c.fail(ErrNotFound, nil, operation, id)
}

// UserByName returns the account with a name, in any letter case. After a
// rename Gitea answers the old name with the account that had it, until
// somebody takes it: the Login of the answer is the name of now. [ErrNotFound]
// means that there is no such account, or that it may not be seen.
func (c *Client) UserByName(ctx context.Context, login string) (pull.Person, error) {
	const operation = "read account %q"
	if login == "" {
		return pull.Person{}, c.fail(ErrNotFound, nil, operation, login)
	}
	var out sdk.User
	_, err := c.getJSON(ctx, call{route: "/users/:user"}, "/users/"+url.PathEscape(login), nil, &out)
	if err != nil {
		return pull.Person{}, c.fail(err, nil, operation, c.clean(login))
	}
	if out.ID <= 0 {
		return pull.Person{}, c.fail(ErrNotFound, nil, operation, c.clean(login))
	}
	return person(&out), nil
}
