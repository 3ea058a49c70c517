package gitea

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// ServerInfo is what Gitea tells of itself.
type ServerInfo struct {
	// Version is such as "1.26.0".
	Version string
	// Date is the time of Gitea's clock, cut to seconds; zero where it does not
	// tell. Before and After are the times here between which it told it.
	Date, Before, After time.Time
}

// Server reads the version and the clock of Gitea.
func (c *Client) Server(ctx context.Context) (ServerInfo, error) {
	var told struct {
		Version string `json:"version"`
	}
	info := ServerInfo{Before: time.Now()}
	header, err := c.getJSON(ctx, call{route: "/version"}, "/version", nil, &told)
	info.After = time.Now()
	if err != nil {
		return info, c.fail(err, nil, "read the version of Gitea")
	}
	info.Version = c.clean(told.Version)
	if date, err := http.ParseTime(header.Get("Date")); err == nil {
		info.Date = date
	}
	return info, nil
}

// AccountInfo is the account of the token, and what the token may do.
type AccountInfo struct {
	pull.Person
	// Admin says that the account administers the whole Gitea.
	Admin bool
	// Scopes are the scopes of the token. If Complete is false Gitea does not
	// tell them; then they are only those that the token was seen to have and
	// that signalbox has no use for.
	Scopes   []string
	Complete bool
}

// Account reads the account of the token, and the scopes of the token as far as
// Gitea tells them.
func (c *Client) Account(ctx context.Context) (AccountInfo, error) {
	const operation = "read the bot's account"
	var told sdk.User
	if _, err := c.getJSON(ctx, call{route: "/user"}, "/user", nil, &told); err != nil {
		return AccountInfo{}, c.fail(err, nil, operation)
	}
	info := AccountInfo{Person: person(&told), Admin: told.IsAdmin}
	if info.ID == 0 {
		return info, c.fail(errors.New("the answer names nobody"), nil, operation)
	}
	var err error
	info.Scopes, info.Complete, err = c.scopes(ctx, info.Login)
	return info, c.fail(err, nil, "read the scopes of the token")
}

// tokenScopes finds the scopes of a token in the refusal of a call that it has
// no scope for.
var tokenScopes = regexp.MustCompile(`token scope=([a-z:,-]*)`)

// scopes learns the scopes of the token from a refusal: no endpoint tells them.
// So it asks for what signalbox has no use for, until that is refused.
func (c *Client) scopes(ctx context.Context, login string) (scopes []string, complete bool, err error) {
	for _, ask := range []struct{ route, path, scope string }{
		{"/notifications/new", "/notifications/new", "read:notification"},
		{"/packages/:owner", "/packages/" + url.PathEscape(login) + "/", "read:package"},
		{"/admin/cron", "/admin/cron", "read:admin"},
	} {
		message, err := c.refusal(ctx, call{route: ask.route}, ask.path)
		switch told := tokenScopes.FindStringSubmatch(message); {
		case err != nil:
			return nil, false, err
		case told != nil:
			return strings.FieldsFunc(told[1], func(r rune) bool { return r == ',' }), true, nil
		case strings.Contains(message, "required scope"):
			// Refused without telling what the token has.
		default:
			scopes = append(scopes, ask.scope)
		}
	}
	return scopes, false, nil
}

// refusal sends a GET and returns the message of a 403, or "".
func (c *Client) refusal(ctx context.Context, info call, path string) (string, error) {
	req, err := http.NewRequestWithContext(withCall(ctx, info), http.MethodGet, c.root+"/api/v1"+path, nil)
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "token "+c.token.Reveal())
	req.Header.Set("User-Agent", c.userAgent)
	resp, err := c.http.Do(req)
	if err != nil {
		if transport, ok := errors.AsType[*url.Error](err); ok {
			err = transport.Err
		}
		return "", err
	}
	body := readAll(resp)
	if resp.StatusCode != http.StatusForbidden {
		return "", nil
	}
	return string(body), nil
}

// RepoInfo is a repository and what the bot's account may do in it.
type RepoInfo struct {
	pull.Repo
	DefaultBranch string
	// Archived, Empty and Private are as Gitea shows them; Pulls says that it
	// takes pull requests, and Actions that it has Gitea Actions.
	Archived, Empty, Private, Pulls, Actions bool
	// Permission is that of the bot's account; an owner is an administrator
	// here.
	Permission pull.Permission
}

// RepoInfo reads a repository by its name. See [Client.Repo].
func (c *Client) RepoInfo(ctx context.Context, owner, name string) (RepoInfo, error) {
	const operation = "read repository %s/%s"
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo"})
	if err != nil {
		return RepoInfo{}, c.fail(err, nil, operation, owner, name)
	}
	r, resp, err := api.GetRepo(owner, name)
	if err != nil {
		return RepoInfo{}, c.fail(err, resp, operation, owner, name)
	}
	info := RepoInfo{
		Repo: repository(r), DefaultBranch: r.DefaultBranch,
		Archived: r.Archived, Empty: r.Empty, Private: r.Private, Pulls: r.HasPullRequests, Actions: r.HasActions,
		Permission: pull.PermissionNone,
	}
	switch p := r.Permissions; {
	case p == nil:
	case p.Admin:
		info.Permission = pull.PermissionAdmin
	case p.Push:
		info.Permission = pull.PermissionWrite
	case p.Pull:
		info.Permission = pull.PermissionRead
	}
	return info, nil
}

// Branches returns the names of a repository's branches.
func (c *Client) Branches(ctx context.Context, repo pull.Repo) ([]string, error) {
	list, err := exact(ctx, pages[sdk.Branch]{
		client: c,
		route:  "/repos/:owner/:repo/branches",
		path:   repoPath(repo) + "/branches",
	}, func(b sdk.Branch) string { return b.Name })
	if err != nil {
		return nil, c.fail(err, nil, "list the branches of %s", repo)
	}
	return convertAll(list, func(b sdk.Branch) string { return b.Name }), nil
}

// Tip returns the commit at the head of a branch, or [ErrNotFound].
func (c *Client) Tip(ctx context.Context, repo pull.Repo, branch string) (string, error) {
	const operation = "read branch %s of %s"
	var told struct {
		Commit struct {
			ID string `json:"id"`
		} `json:"commit"`
	}
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/branches/:branch"}, repoPath(repo)+"/branches/"+escapePath(branch), nil, &told)
	if err == nil {
		err = checkCommit(told.Commit.ID)
	}
	if err != nil {
		return "", c.fail(err, nil, operation, branch, repo)
	}
	return told.Commit.ID, nil
}

// WorkflowFile returns the file of a workflow on a branch, or [ErrNotFound]. It
// looks where Gitea does: in .gitea/workflows, and in .github/workflows where
// the first does not exist. It makes three calls at most.
func (c *Client) WorkflowFile(ctx context.Context, repo pull.Repo, branch, workflow string) ([]byte, error) {
	data, err := c.workflowFile(ctx, renovateQuery{repo: repo, main: branch, workflow: workflow}, &renovateMemory{})
	return data, c.fail(err, nil, "read workflow %s on %s in %s", c.clean(workflow), branch, repo)
}

// TestHook makes Gitea deliver a push of the default branch's head to a
// webhook, as if it came again. That it is asked for does not mean that it
// arrives.
func (c *Client) TestHook(ctx context.Context, repo pull.Repo, id int64) error {
	err := c.sendJSON(ctx, call{route: "/repos/:owner/:repo/hooks/:id/tests"},
		"POST "+repoPath(repo)+"/hooks/"+strconv.FormatInt(id, 10)+"/tests", struct{}{}, nil)
	return c.fail(err, nil, "test webhook %d of %s", id, repo)
}

// Fits reports whether a registered webhook leads to the receiver of the spec,
// and whether it is known to be made with its secret.
func (s HookSpec) Fits(h pull.Hook) (ours, sealed bool) {
	return sameAddress(h.URL, s.URL), h.URL == s.Target()
}

// NeededScopes are the scopes that the token of signalbox's account needs, and
// no others.
func NeededScopes() []string {
	return []string{"read:organization", "read:user", "write:issue", "write:repository"}
}
