package gitea

import (
	"context"
	"fmt"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// Reviews returns the reviews of a pull request, oldest first. A review that
// another person has begun and not submitted is not among them.
func (c *Client) Reviews(ctx context.Context, repo pull.Repo, number int64) ([]pull.Review, error) {
	const operation = "list reviews of %s#%d"
	// The total counts reviews that are not shown to us, so it ends the list
	// only when it is reached.
	list, err := untilEmpty(ctx, pages[sdk.PullReview]{
		client: c,
		route:  "/repos/:owner/:repo/pulls/:n/reviews",
		path:   fmt.Sprintf("%s/pulls/%d/reviews", repoPath(repo), number),
	}, 1, true)
	if err != nil {
		return nil, c.fail(err, nil, operation, repo, number)
	}
	out := make([]pull.Review, 0, len(list))
	for _, r := range list {
		state, ok := reviewStates[r.State]
		if !ok {
			return nil, c.fail(fmt.Errorf("review %d has the unknown state %q", r.ID, c.clean(string(r.State))),
				nil, operation, repo, number)
		}
		out = append(out, pull.Review{
			ID:          r.ID,
			Author:      person(r.Reviewer),
			State:       state,
			Commit:      r.CommitID,
			SubmittedAt: r.Submitted.UTC(),
			Dismissed:   r.Dismissed,
			Official:    r.Official,
		})
	}
	return out, nil
}

var reviewStates = map[sdk.ReviewStateType]pull.ReviewState{
	sdk.ReviewStateApproved:       pull.Approved,
	sdk.ReviewStateRequestChanges: pull.ChangesRequested,
	sdk.ReviewStateComment:        pull.Commented,
	sdk.ReviewStatePending:        pull.Pending,
	sdk.ReviewStateRequestReview:  pull.Requested,
}

// timelineGap is how many empty pages in a row end a timeline. Gitea cuts the
// timeline into pages first and leaves out what it does not show afterwards
// (comments on code, references from repositories that we may not see), and
// tells no total: an empty page can have full ones after it.
const timelineGap = 3

// timelineEntry is the part of an entry that is read; the SDK lacks most of it.
type timelineEntry struct {
	Type     string `json:"type"`
	ReviewID int64  `json:"review_id"`
	OldRef   string `json:"old_ref"`
	NewRef   string `json:"new_ref"`
}

// Timeline returns what can void a review, in the order of the server. Hiding
// an entry from it takes some 150 invisible entries in a row; see timelineGap.
func (c *Client) Timeline(ctx context.Context, repo pull.Repo, number int64) ([]pull.Moment, error) {
	list, err := untilEmpty(ctx, pages[timelineEntry]{
		client: c,
		route:  "/repos/:owner/:repo/issues/:n/timeline",
		path:   fmt.Sprintf("%s/issues/%d/timeline", repoPath(repo), number),
	}, timelineGap, false)
	if err != nil {
		return nil, c.fail(err, nil, "read the timeline of %s#%d", repo, number)
	}
	var out []pull.Moment
	for _, e := range list {
		switch e.Type {
		case "review":
			out = append(out, pull.Moment{Kind: pull.MomentReview, ReviewID: e.ReviewID})
		case "pull_push":
			out = append(out, pull.Moment{Kind: pull.MomentPush})
		case "change_target_branch":
			out = append(out, pull.Moment{Kind: pull.MomentRetarget, From: e.OldRef, To: e.NewRef})
		}
	}
	return out, nil
}
