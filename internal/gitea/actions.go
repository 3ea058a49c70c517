package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// ActionsOf returns what runs the workflows of a repository: runners of its own and
// of its owner. Gitea shows them to owners of the repository alone, not to a
// collaborator who administers it; where the bot's account may not see them, the
// problem says so and what to do, and it is no error.
//
// It makes one call where nothing may be seen, else three: runners, the bot's
// account, runners of the owner; and one more for each 50 entries of a list
// beyond the first.
func (c *Client) ActionsOf(ctx context.Context, repo pull.Repo) (fact.Actions, error) {
	var out fact.Actions
	var err error
	if out.Runners, out.RunnersProblem, err = c.runners(ctx, repo); err != nil {
		return fact.Actions{}, c.fail(err, nil, "list the runners of %s", repo)
	}
	return out, nil
}

// Hidden says why the bot's account may not see the secrets by name and the
// variables of a repository, in words for a person; empty where it may. Gitea
// shows them to owners of the repository alone. It makes two calls, and one more
// for each 50 entries of a list beyond the first.
func (c *Client) Hidden(ctx context.Context, repo pull.Repo) (secrets, variables string, err error) {
	if _, secrets, err = c.secrets(ctx, repo); err != nil {
		return "", "", c.fail(err, nil, "list the secrets of %s", repo)
	}
	if _, variables, err = c.variables(ctx, repo); err != nil {
		return "", "", c.fail(err, nil, "list the variables of %s", repo)
	}
	return secrets, variables, nil
}

// refused puts a refusal into words for a person; another error it returns.
func refused(err error, what string, repo pull.Repo) (problem string, _ error) {
	var answer *answerError
	switch {
	case errors.Is(err, ErrNotFound):
		return fmt.Sprintf("Gitea has no %s of %s to show: signalbox's account cannot see the repository, or this Gitea does not know them", what, repo), nil
	case !errors.Is(err, ErrForbidden):
		return "", err
	case errors.As(err, &answer) && strings.Contains(answer.message, "required scope"):
		return fmt.Sprintf("the token of signalbox's account lacks the scope to see the %s of %s; make one with write:repository and read:organization", what, repo), nil
	}
	return fmt.Sprintf("Gitea shows the %s of %s to its owner alone, not to a collaborator; "+
		"where an organisation owns it, add signalbox's account to a team of owners, or do without", what, repo), nil
}

type apiRunner struct {
	ID       int64  `json:"id"`
	Name     string `json:"name"`
	Status   string `json:"status"`
	Disabled bool   `json:"disabled"`
	Labels   []struct {
		Name string `json:"name"`
	} `json:"labels"`
}

func (r apiRunner) fact() fact.Runner {
	out := fact.Runner{Name: r.Name, Online: r.Status == "online", Disabled: r.Disabled}
	for _, l := range r.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	slices.Sort(out.Labels)
	return out
}

// runners returns the runners that may take jobs of a repository, by name.
func (c *Client) runners(ctx context.Context, repo pull.Repo) ([]fact.Runner, string, error) {
	list, err := c.listRunners(ctx, "/repos/:owner/:repo/actions/runners", repoPath(repo)+"/actions/runners")
	if err != nil {
		problem, err := refused(err, "runners", repo)
		return nil, problem, err
	}
	inherited, err := c.ownersRunners(ctx, repo)
	hidden, err := refused(err, "runners", repo)
	if err != nil {
		return nil, "", err
	}
	out := convertAll(append(list, inherited...), apiRunner.fact)
	slices.SortStableFunc(out, func(a, b fact.Runner) int { return cmp.Compare(a.Name, b.Name) })
	problem := ""
	switch ready := slices.ContainsFunc(out, func(r fact.Runner) bool { return r.Online && !r.Disabled }); {
	case ready:
	case hidden != "":
		problem = fmt.Sprintf("no runner of %s itself is online; signalbox's account may not see those of its owner and of the whole Gitea", repo)
	default:
		problem = fmt.Sprintf("no runner of %s or its owner is online; those of the whole Gitea are shown to its administrators alone", repo)
	}
	return out, problem, nil
}

// ownersRunners returns the runners of the repository's owner. Where the owner
// is another person, nobody but that person may see them.
func (c *Client) ownersRunners(ctx context.Context, repo pull.Repo) ([]apiRunner, error) {
	self, err := c.Self(ctx)
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(self.Login, repo.Owner) {
		return c.listRunners(ctx, "/user/actions/runners", "/user/actions/runners")
	}
	return c.listRunners(ctx, "/orgs/:org/actions/runners", "/orgs/"+url.PathEscape(repo.Owner)+"/actions/runners")
}

func (c *Client) listRunners(ctx context.Context, route, path string) ([]apiRunner, error) {
	return exact(ctx, pages[apiRunner]{client: c, route: route, path: path, field: "runners"}, func(r apiRunner) int64 { return r.ID })
}

// secrets returns the names of the secrets of a repository, sorted.
func (c *Client) secrets(ctx context.Context, repo pull.Repo) ([]string, string, error) {
	type secret struct {
		Name string `json:"name"`
	}
	list, err := exact(ctx, pages[secret]{
		client: c,
		route:  "/repos/:owner/:repo/actions/secrets",
		path:   repoPath(repo) + "/actions/secrets",
	}, func(s secret) string { return s.Name })
	if err != nil {
		problem, err := refused(err, "secrets", repo)
		return nil, problem, err
	}
	names := convertAll(list, func(s secret) string { return s.Name })
	slices.Sort(names)
	return names, "", nil
}

// variables returns the variables of a repository.
func (c *Client) variables(ctx context.Context, repo pull.Repo) (map[string]string, string, error) {
	type variable struct {
		Name string `json:"name"`
		Data string `json:"data"`
	}
	list, err := exact(ctx, pages[variable]{
		client: c,
		route:  "/repos/:owner/:repo/actions/variables",
		path:   repoPath(repo) + "/actions/variables",
	}, func(v variable) string { return v.Name })
	if err != nil {
		problem, err := refused(err, "variables", repo)
		return nil, problem, err
	}
	var out map[string]string
	for _, v := range list {
		if out == nil {
			out = map[string]string{}
		}
		out[v.Name] = v.Data
	}
	return out, "", nil
}
