package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Permission returns what an account may do in a repository, of which the
// code and the pull requests count. [ErrNotFound] means that there is no such
// account or repository, [ErrForbidden] that the bot's account does not
// administer the repository, or cannot see who belongs to a team that could
// give the account more. The permission that is returned is certain also beside
// an error.
//
// Gitea tells the members of teams too little: whoever may write only through a
// team is told to be able to read what everybody can. So the teams of the
// repository are looked at too, unless Gitea tells enough already. Members of a
// team that administers are owners for Gitea, as are the owners of the
// organisation and the administrators of Gitea.
func (c *Client) Permission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error) {
	const operation = "read the permission of %s in %s"
	known, err := c.ownPermission(ctx, repo, login)
	if err != nil || known.AtLeast(pull.PermissionWrite) {
		return known, c.fail(err, nil, operation, c.clean(login), repo)
	}
	known, err = c.teamPermission(ctx, repo, login, known)
	return known, c.fail(err, nil, operation, c.clean(login), repo)
}

// ownPermission is what Gitea tells, without what teams give.
func (c *Client) ownPermission(ctx context.Context, repo pull.Repo, login string) (pull.Permission, error) {
	if login == "" {
		return pull.PermissionNone, ErrNotFound
	}
	var out struct {
		Permission pull.Permission `json:"permission"`
	}
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/collaborators/:user/permission"},
		repoPath(repo)+"/collaborators/"+url.PathEscape(login)+"/permission", nil, &out)
	if err != nil {
		return pull.PermissionNone, err
	}
	if !out.Permission.AtLeast(pull.PermissionRead) && out.Permission != pull.PermissionNone {
		return pull.PermissionNone, fmt.Errorf("unknown permission %q", c.clean(string(out.Permission)))
	}
	return out.Permission, nil
}

// teamPermission returns the best of what is known and what the teams of the
// repository give.
func (c *Client) teamPermission(ctx context.Context, repo pull.Repo, login string, known pull.Permission) (pull.Permission, error) {
	var teams []struct {
		ID    int64                      `json:"id"`
		Name  string                     `json:"name"`
		Gives pull.Permission            `json:"permission"`
		Units map[string]pull.Permission `json:"units_map"`
	}
	// This list is not cut into pages.
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/teams"}, repoPath(repo)+"/teams", nil, &teams)
	var answer *answerError
	if errors.As(err, &answer) && answer.code == http.StatusMethodNotAllowed {
		// The owner is a person.
		return known, nil
	}
	if err != nil {
		return known, err
	}
	var blind error
	for _, t := range teams {
		gives := t.Units["repo.code"]
		if t.Units["repo.pulls"].AtLeast(pull.PermissionRead) && !gives.AtLeast(pull.PermissionRead) {
			gives = pull.PermissionRead
		}
		// What a team gives that administers, Gitea has told already.
		if known.AtLeast(gives) || gives == "" || t.Gives.AtLeast(pull.PermissionAdmin) {
			continue
		}
		members, err := c.membersOf(ctx, t.ID)
		switch {
		case errors.Is(err, ErrNotFound), errors.Is(err, ErrForbidden):
			blind = fmt.Errorf("who is in team %s cannot be seen, which takes an owner of %s or a member of the team: %w",
				c.clean(t.Name), repo.Owner, ErrForbidden)
		case err != nil:
			return known, err
		case slices.ContainsFunc(members, func(p pull.Person) bool { return strings.EqualFold(p.Login, login) }):
			known = gives
		}
	}
	if known.AtLeast(pull.PermissionWrite) {
		return known, nil
	}
	return known, blind
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
