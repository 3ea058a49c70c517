package gitea

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/internal/pull"
)

// TeamMembers returns the members of a team of an organisation. Names are
// compared without regard to case. [ErrNotFound] means that there is no such
// team, or that the owner is a person; [ErrForbidden] that the bot's account
// is neither an owner of the organisation nor a member of this very team, or
// that its token lacks read:organization.
func (c *Client) TeamMembers(ctx context.Context, org, team string) ([]pull.Person, error) {
	const operation = "list members of team %s/%s"
	teams, err := exact(ctx, pages[sdk.Team]{
		client: c,
		route:  "/orgs/:org/teams",
		path:   "/orgs/" + url.PathEscape(org) + "/teams",
	}, func(t sdk.Team) int64 { return t.ID })
	if err != nil {
		return nil, c.fail(err, nil, operation, org, team)
	}
	for _, t := range teams {
		if !strings.EqualFold(t.Name, team) {
			continue
		}
		members, err := c.membersOf(ctx, t.ID)
		return members, c.fail(err, nil, operation, org, team)
	}
	return nil, c.fail(fmt.Errorf("organisation %s has no such team: %w", org, ErrNotFound), nil, operation, org, team)
}

func (c *Client) membersOf(ctx context.Context, team int64) ([]pull.Person, error) {
	// The total is a counter that Gitea keeps beside the members, so it does not
	// decide where they end.
	members, err := untilEmpty(ctx, pages[sdk.User]{
		client: c,
		route:  "/teams/:id/members",
		path:   fmt.Sprintf("/teams/%d/members", team),
	}, func(_ []sdk.User, empty, _ int) bool { return empty > 0 })
	if err != nil {
		return nil, err
	}
	return convertAll(members, func(u sdk.User) pull.Person { return person(&u) }), nil
}
