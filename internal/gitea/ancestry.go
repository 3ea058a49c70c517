package gitea

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"signalbox/internal/pull"
)

// ancestrySize is how many answers of [Client.Contains] are remembered.
const ancestrySize = 8192

type ancestryKey struct {
	repo            int64
	name            string
	applied, needed string
}

// Contains reports whether the history of a commit contains another one. Both
// are full ids. The answer never changes and is remembered; several callers
// with one question ask once. [ErrUnknownCommit] means that the repository
// lacks one of the two; it is not remembered, because a push can bring it.
func (c *Client) Contains(ctx context.Context, repo pull.Repo, applied, needed string) (bool, error) {
	const operation = "compare %s with %s in %s"
	for _, sha := range []string{applied, needed} {
		if err := checkCommit(sha); err != nil {
			return false, c.fail(err, nil, operation, applied, needed, repo)
		}
	}
	if applied == needed {
		return true, nil
	}
	key := ancestryKey{repo: repo.ID, applied: applied, needed: needed}
	if key.repo == 0 {
		key.name = repo.String()
	}
	for {
		if contained, ok := c.ancestry.Get(key); ok {
			return contained, nil
		}
		answer, err, shared := c.asking.Do(fmt.Sprint(key), func() (any, error) {
			contained, err := c.askContains(ctx, repo, applied, needed)
			if err == nil {
				c.ancestry.Add(key, contained)
			}
			return contained, err
		})
		if err != nil && shared && ctx.Err() == nil &&
			(errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			// The caller whose question this was has gone; ask ourselves.
			continue
		}
		contained, _ := answer.(bool)
		return contained, c.fail(err, nil, operation, applied, needed, repo)
	}
}

// askContains asks how many commits of needed are not in applied. This is
// cheaper than the comparison of Gitea, which describes each commit in
// between, and unlike that it takes a commit id for nothing else, also where a
// branch has the same name.
func (c *Client) askContains(ctx context.Context, repo pull.Repo, applied, needed string) (bool, error) {
	var list []struct{}
	// An unknown commit to exclude gives 500.
	header, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/commits", finalError: true},
		repoPath(repo)+"/commits", url.Values{
			"sha": {needed}, "not": {applied}, "limit": {"1"},
			"stat": {"false"}, "verification": {"false"}, "files": {"false"},
		}, &list)
	var answer *answerError
	switch {
	case errors.Is(err, ErrNotFound):
		return false, fmt.Errorf("%w %s", ErrUnknownCommit, needed)
	case errors.As(err, &answer) && answer.code == 500:
		if c.commitMissing(ctx, repo, applied) {
			return false, fmt.Errorf("%w %s", ErrUnknownCommit, applied)
		}
		return false, err
	case err != nil:
		return false, err
	}
	total := totalCount(header)
	if total < 0 {
		return false, fmt.Errorf("%w: the server does not say how long it is", ErrIncomplete)
	}
	return total == 0, nil
}

// commitMissing reports whether the server says that it has no such commit.
func (c *Client) commitMissing(ctx context.Context, repo pull.Repo, sha string) bool {
	var ignored struct{}
	_, err := c.getJSON(ctx, call{route: "/repos/:owner/:repo/git/commits/:sha", finalError: true},
		repoPath(repo)+"/git/commits/"+sha, url.Values{
			"stat": {"false"}, "verification": {"false"}, "files": {"false"},
		}, &ignored)
	return errors.Is(err, ErrNotFound)
}

// checkCommit refuses what is not a full commit id, in lower case.
func checkCommit(sha string) error {
	if (len(sha) == 40 || len(sha) == 64) && strings.Trim(sha, "0123456789abcdef") == "" {
		return nil
	}
	return fmt.Errorf("%q is not a full commit id", sha)
}
