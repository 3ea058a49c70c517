package conformance

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
)

// person makes an account and returns it with a client.
func (e env) person(t *testing.T, name string) (pull.Person, *gitea.Client) {
	t.Helper()
	p, token, err := e.CreateUser(e.ctx, e.prefix+name)
	must(t, err)
	return p, e.clientOf(t, token)
}

// wantPermission asks the bot what somebody may do.
func (e env) wantPermission(t *testing.T, r pull.Repo, who string, want pull.Permission) {
	t.Helper()
	got, err := e.client.Permission(e.ctx, r, who)
	must(t, err)
	same(t, "permission of "+strings.TrimPrefix(who, e.prefix), want, got)
}

func permissions(t *testing.T, e env) {
	r := e.repo(t, "permissions")
	outsider, _ := e.person(t, "outsider")
	root, _ := e.person(t, "root")
	must(t, e.SetAdmin(e.ctx, root.Login, true))
	bob := e.clientOf(t, e.bobToken)

	e.wantPermission(t, r, e.bot.Login, pull.PermissionOwner)
	e.wantPermission(t, r, strings.ToUpper(e.alice.Login), pull.PermissionWrite)
	e.wantPermission(t, r, root.Login, pull.PermissionOwner)
	e.wantPermission(t, r, outsider.Login, pull.PermissionRead)
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.Admin))
	e.wantPermission(t, r, e.alice.Login, pull.PermissionAdmin)
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.Read))
	e.wantPermission(t, r, e.alice.Login, pull.PermissionRead)

	must(t, e.SetPrivate(e.ctx, r, true))
	e.wantPermission(t, r, outsider.Login, pull.PermissionNone)
	must(t, e.SetAdmin(e.ctx, root.Login, false))
	e.wantPermission(t, r, root.Login, pull.PermissionNone)

	_, err := e.client.Permission(e.ctx, r, e.prefix+"nobody")
	wantError(t, "the permission of nobody", err, gitea.ErrNotFound)
	_, err = e.client.Permission(e.ctx, r, "")
	wantError(t, "the permission of no name", err, gitea.ErrNotFound)
	_, err = bob.Permission(e.ctx, r, e.alice.Login)
	wantError(t, "a permission asked for by a writer", err, gitea.ErrForbidden)
}

func teamPermissions(t *testing.T, e env) {
	org := e.prefix + "crew"
	must(t, e.CreateOrg(e.ctx, org))
	must(t, e.SetTeam(e.ctx, org, "Owners", e.bot.Login))
	must(t, e.SetTeam(e.ctx, org, "ops", e.alice.Login))
	r, err := e.CreateRepo(e.ctx, org, "crewed", base)
	must(t, err)
	must(t, e.SetPrivate(e.ctx, r, true))

	e.wantPermission(t, r, e.bot.Login, pull.PermissionOwner)
	e.wantPermission(t, r, strings.ToUpper(e.alice.Login), pull.PermissionWrite)
	e.wantPermission(t, r, e.bob.Login, pull.PermissionNone)
	must(t, e.GrantTeam(e.ctx, org, "ops", giteatest.Read))
	e.wantPermission(t, r, e.alice.Login, pull.PermissionRead)
	must(t, e.GrantTeam(e.ctx, org, "ops", giteatest.Admin))
	e.wantPermission(t, r, e.alice.Login, pull.PermissionOwner)
	must(t, e.GrantTeam(e.ctx, org, "ops", giteatest.Write))

	// Who administers the repository and is not of the organisation does not see
	// its teams.
	admin, asAdmin := e.person(t, "admin")
	must(t, e.Grant(e.ctx, r, admin.Login, giteatest.Admin))
	got, err := asAdmin.Permission(e.ctx, r, e.alice.Login)
	wantError(t, "a permission by a team that cannot be seen", err, gitea.ErrForbidden)
	same(t, "permission that is certain", pull.PermissionNone, got)
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.Write))
	got, err = asAdmin.Permission(e.ctx, r, e.alice.Login)
	must(t, err)
	same(t, "permission that needs no team", pull.PermissionWrite, got)
	must(t, e.Grant(e.ctx, r, e.alice.Login, giteatest.None))

	must(t, e.SetTeam(e.ctx, org, "ops", e.bob.Login))
	e.wantPermission(t, r, e.alice.Login, pull.PermissionNone)
	e.wantPermission(t, r, e.bob.Login, pull.PermissionWrite)
}

func accounts(t *testing.T, e env) {
	who, _ := e.person(t, "carol")
	got, err := e.client.UserByID(e.ctx, who.ID)
	must(t, err)
	same(t, "UserByID", who, got)
	got, err = e.client.UserByName(e.ctx, strings.ToUpper(who.Login))
	must(t, err)
	same(t, "UserByName in other letter case", who, got)

	old := who.Login
	who.Login = e.prefix + "caroline"
	must(t, e.RenameUser(e.ctx, old, who.Login))
	got, err = e.client.UserByID(e.ctx, who.ID)
	must(t, err)
	same(t, "UserByID after a rename", who, got)
	got, err = e.client.UserByName(e.ctx, old)
	must(t, err)
	same(t, "UserByName with the old name", who, got)
	next, _ := e.person(t, "dave")
	must(t, e.RenameUser(e.ctx, next.Login, old))
	next.Login = old
	got, err = e.client.UserByName(e.ctx, old)
	must(t, err)
	same(t, "UserByName with a name that somebody took", next, got)

	must(t, e.DeleteUser(e.ctx, who.Login))
	_, err = e.client.UserByID(e.ctx, who.ID)
	wantError(t, "the id of a deleted account", err, gitea.ErrNotFound)
	_, err = e.client.UserByName(e.ctx, who.Login)
	wantError(t, "the name of a deleted account", err, gitea.ErrNotFound)
	for _, id := range []int64{1 << 40, 0, -1, -2} {
		_, err = e.client.UserByID(e.ctx, id)
		wantError(t, "an id that nobody has", err, gitea.ErrNotFound)
	}
	_, err = e.client.UserByName(e.ctx, "")
	wantError(t, "no name", err, gitea.ErrNotFound)
	org := e.prefix + "guild"
	must(t, e.CreateOrg(e.ctx, org))
	guild, err := e.client.UserByName(e.ctx, org)
	must(t, err)
	_, err = e.client.UserByID(e.ctx, guild.ID)
	wantError(t, "the id of an organisation", err, gitea.ErrNotFound)
}

func reactions(t *testing.T, e env) {
	r := e.repo(t, "reactions")
	number, _ := e.open(t, r, "change")
	id, err := e.Comment(e.ctx, r, number, e.alice.Login, "/approve")
	must(t, err)
	bob := e.clientOf(t, e.bobToken)
	want := func(id int64, list ...string) {
		t.Helper()
		got, err := e.Reactions(e.ctx, r, id)
		must(t, err)
		var words []string
		for _, reaction := range got {
			words = append(words, strings.TrimPrefix(reaction.Login, e.prefix)+" "+reaction.Content)
		}
		if d := cmp.Diff(list, words, cmpopts.SortSlices(strings.Compare), cmpopts.EquateEmpty()); d != "" {
			t.Errorf("reactions (-want +got):\n%s", d)
		}
	}
	for range 2 {
		must(t, e.client.React(e.ctx, r, id, "eyes"))
	}
	must(t, bob.React(e.ctx, r, id, "eyes"))
	must(t, e.client.React(e.ctx, r, id, "+1"))
	want(id, "bot eyes", "bob eyes", "bot +1")
	for range 2 {
		must(t, e.client.Unreact(e.ctx, r, id, "eyes"))
	}
	want(id, "bob eyes", "bot +1")
	wantError(t, "a reaction that is not offered", e.client.React(e.ctx, r, id, "rolling-pin"), gitea.ErrForbidden)

	// The text of a review takes reactions too, under the id of its moment.
	review, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "/merge")
	must(t, err)
	list, err := e.client.Reviews(e.ctx, r, number)
	must(t, err)
	if len(list) != 1 || list[0].Body != "/merge" {
		t.Errorf("reviews %+v, want one with its text", list)
	}
	moments, err := e.client.Timeline(e.ctx, r, number)
	must(t, err)
	for _, m := range moments {
		if m.ReviewID == review {
			must(t, e.client.React(e.ctx, r, m.CommentID, "-1"))
			want(m.CommentID, "bot -1")
		}
	}

	must(t, e.DeleteComment(e.ctx, r, id, e.alice.Login))
	wantError(t, "a reaction on a deleted comment", e.client.React(e.ctx, r, id, "eyes"), gitea.ErrNotFound)
	wantError(t, "taking one from a deleted comment", e.client.Unreact(e.ctx, r, id, "eyes"), gitea.ErrNotFound)
}
