package gitea

import (
	"context"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// PullFact returns a pull request of any repository that the bot's account may
// read, as a fact; [ErrNotFound] where there is none, or none that it may see.
// After a rename the old name of the repository finds it too, for as long as
// nobody takes it; the fact tells the new one. It makes one call.
func (c *Client) PullFact(ctx context.Context, owner, name string, number int64) (fact.Pull, error) {
	const operation = "read pull request %s#%d"
	repo := pull.Repo{Owner: owner, Name: name}
	api, err := c.sdk(ctx, call{route: "/repos/:owner/:repo/pulls/:n"})
	if err != nil {
		return fact.Pull{}, c.fail(err, nil, operation, repo, number)
	}
	p, resp, err := api.GetPullRequest(owner, name, number)
	if err != nil {
		return fact.Pull{}, c.fail(err, resp, operation, repo, number)
	}
	read, err := convertPull(p, repo)
	if err != nil {
		return fact.Pull{}, c.fail(err, nil, operation, repo, number)
	}
	return pullFact(read, p), nil
}

func pullFact(read pull.Pull, p *sdk.PullRequest) fact.Pull {
	out := fact.Pull{
		Repo: read.Repo.String(), RepoID: read.Repo.ID, Number: read.Number, Title: read.Title, URL: read.URL,
		State: fact.PullOpen, Base: read.Base.Name, Body: read.Body,
	}
	switch read.State {
	case pull.Merged:
		out.State, out.MergeCommit, out.MergedAt = fact.PullMerged, read.MergeCommit, moment(p.Merged)
	case pull.Closed:
		out.State = fact.PullClosed
	}
	if len(out.Body) > fact.MaxBody {
		// A character that is cut in two is none.
		out.Body = strings.ToValidUTF8(out.Body[:fact.MaxBody], "")
	}
	return out
}
