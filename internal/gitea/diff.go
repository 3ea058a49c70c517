package gitea

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"signalbox/internal/pull"
)

// maxDiff bounds a diff that is read, in bytes.
const maxDiff = 64 << 20

// Diff returns the identity of the change that a pull request makes, as Gitea
// gives its diff at this moment. What it belongs to is not certain: see
// [Client.DiffAt].
func (c *Client) Diff(ctx context.Context, repo pull.Repo, number int64) (pull.Diff, error) {
	d, err := c.readDiff(ctx, repo, number)
	return d, c.fail(err, nil, "read the diff of %s#%d", repo, number)
}

// DiffAt returns the identity of the change that a pull request makes with the
// head and the base that it was read with, for whoever remembers it.
//
// After a push Gitea first tells the new head, then moves the reference that
// it takes the diff of, and then the merge base that it takes the diff from. In
// between, a diff is that of an earlier head, or has changes of the base in
// it, and a writer can choose the moment. So the merge base is checked against
// the history, and the reference before and after. [ErrIncomplete] means that
// Gitea has not caught up, or that the pull request has changed since.
//
// It takes four calls, one less when the merge base was checked before.
func (c *Client) DiffAt(ctx context.Context, p pull.Pull) (pull.Diff, error) {
	const operation = "read the diff of %s#%d at %s"
	d, err := c.diffAt(ctx, p)
	return d, c.fail(err, nil, operation, p.Repo, p.Number, p.Head.SHA)
}

func (c *Client) diffAt(ctx context.Context, p pull.Pull) (pull.Diff, error) {
	if err := c.checkMergeBase(ctx, p); err != nil {
		return pull.Diff{}, err
	}
	if err := c.checkHead(ctx, p); err != nil {
		return pull.Diff{}, err
	}
	d, err := c.readDiff(ctx, p.Repo, p.Number)
	if err != nil {
		return pull.Diff{}, err
	}
	return d, c.checkHead(ctx, p)
}

func (c *Client) readDiff(ctx context.Context, repo pull.Repo, number int64) (pull.Diff, error) {
	resp, err := c.get(ctx, call{route: "/repos/:owner/:repo/pulls/:n.diff", stream: true, limit: maxDiff},
		fmt.Sprintf("%s/pulls/%d.diff", repoPath(repo), number),
		// With binary contents the patch names them in full; otherwise by seven
		// digits, for which a writer can make another file.
		url.Values{"binary": {"true"}})
	if err != nil {
		return pull.Diff{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	return pull.ReadDiff(resp.Body)
}

// checkHead makes sure that Gitea bases the diff on the head.
func (c *Client) checkHead(ctx context.Context, p pull.Pull) error {
	head, err := c.Head(ctx, p.Repo, p.Number)
	if err == nil && head != p.Head.SHA {
		err = fmt.Errorf("%w: Gitea is still, or already, at head %s", ErrIncomplete, head)
	}
	return err
}

// checkMergeBase makes sure that the merge base is that of base and head: it
// is next to a commit that only the head has, and contains all others that
// are. Where base and head were merged into each other both ways there can be
// no such commit; then there is no answer.
func (c *Client) checkMergeBase(ctx context.Context, p pull.Pull) error {
	for _, sha := range []string{p.Head.SHA, p.Base.SHA, p.MergeBase} {
		if err := checkCommit(sha); err != nil {
			return err
		}
	}
	key := ancestryKey{repo: p.Repo.ID, name: "merge base " + p.MergeBase, applied: p.Base.SHA, needed: p.Head.SHA}
	if right, ok := c.ancestry.Get(key); ok && right {
		return nil
	}
	border, err := c.border(ctx, p)
	if err != nil {
		return err
	}
	if !slices.Contains(border, p.MergeBase) {
		return fmt.Errorf("%w: Gitea has not found the merge base", ErrIncomplete)
	}
	for _, sha := range border {
		contained, err := c.Contains(ctx, p.Repo, p.MergeBase, sha)
		if err != nil {
			return err
		}
		if !contained {
			return fmt.Errorf("%w: Gitea has not found the merge base", ErrIncomplete)
		}
	}
	c.ancestry.Add(key, true)
	return nil
}

// border returns the commits where the history of the head meets that of the
// base.
func (c *Client) border(ctx context.Context, p pull.Pull) ([]string, error) {
	type commit struct {
		SHA     string `json:"sha"`
		Parents []struct {
			SHA string `json:"sha"`
		} `json:"parents"`
	}
	list, err := exact(ctx, pages[commit]{
		client: c,
		route:  "/repos/:owner/:repo/commits",
		path:   repoPath(p.Repo) + "/commits",
		query: url.Values{
			"sha": {p.Head.SHA}, "not": {p.Base.SHA},
			"stat": {"false"}, "verification": {"false"}, "files": {"false"},
		},
	}, func(c commit) string { return c.SHA })
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return []string{p.Head.SHA}, nil
	}
	own := map[string]bool{}
	for _, c := range list {
		own[c.SHA] = true
	}
	var border []string
	for _, c := range list {
		for _, parent := range c.Parents {
			if !own[parent.SHA] && !slices.Contains(border, parent.SHA) {
				border = append(border, parent.SHA)
			}
		}
	}
	return border, nil
}
