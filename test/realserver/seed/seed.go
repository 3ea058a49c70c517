// Package seed plants a GitOps repository into a [realserver.World]: an organisation with people and
// teams, a repository that Flux can apply, and the pull request that signalbox is explained with.
//
// The repository has three tiers. The second, platform-config, contains a StorageProfile, a kind that no
// manifest brings, so Flux reports it as not Ready (no matches for kind "StorageProfile") and holds the
// third tier back. In the pull request the author moves the profile into a tier of its own. With
// [Repository.InstallStorageProfiles] the cluster learns the kind and Flux recovers without a push.
//
// The people: alice owns the organisation and may approve; bob writes and is the author; carol is in the
// team ops and may approve; mallory has no rights beyond reading. The account signalbox is the bot, in
// ops to read who is in it, and in a team with administrator's rights on the repository.
//
// The StorageProfile kind belongs to the whole cluster: tests that install or remove it must not run in
// parallel with others that do.
//
// [PlantOutdated] makes another kind of repository, in which Renovate finds something to do.
package seed

import (
	"bytes"
	"context"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"text/template"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
)

//go:embed all:repository all:change storageprofile-crd.yaml
var files embed.FS

// PolicyPath is where the repository keeps its policy.
const PolicyPath = ".gitea/signalbox.yaml"

// Options say how the seeded repository differs from ops/home-gitops.
type Options struct {
	// Owner is the organisation, Name the repository. Empty means ops and home-gitops.
	Owner, Name string
	// Namespace holds the Flux objects and what they create. Empty means flux-system.
	Namespace string
	// Policy replaces the policy file. Empty means the one that comes with the repository.
	Policy string
}

func (o Options) withDefaults() Options {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&o.Owner, "ops")
	set(&o.Name, "home-gitops")
	set(&o.Namespace, realserver.FluxNamespace)
	return o
}

// Repository is a planted repository with its people.
type Repository struct {
	World     *realserver.World
	Owner     string
	Name      string
	Namespace string

	Alice, Bob, Carol, Mallory realserver.User
	Bot                        realserver.User
	// Ops is the id of the team that approves, Writers that of the team that may push.
	Ops, Writers int64
}

// Plant creates the organisation, its teams and the repository. The people are shared with other planted
// repositories of the same world; teams and rights are not. Flux knows nothing of it yet.
func Plant(ctx context.Context, w *realserver.World, o Options) (*Repository, error) {
	o = o.withDefaults()
	r := &Repository{World: w, Owner: o.Owner, Name: o.Name, Namespace: o.Namespace}
	for name, user := range map[string]*realserver.User{
		"alice": &r.Alice, "bob": &r.Bob, "carol": &r.Carol, "mallory": &r.Mallory, "signalbox": &r.Bot,
	} {
		var err error
		if *user, err = w.User(ctx, name); err != nil {
			return nil, err
		}
	}
	if err := r.organise(ctx); err != nil {
		return nil, fmt.Errorf("plant %s: %w", r, err)
	}
	if err := r.fill(ctx, o.Policy); err != nil {
		return nil, fmt.Errorf("plant %s: %w", r, err)
	}
	return r, nil
}

// String returns the repository as owner/name.
func (r *Repository) String() string { return r.Owner + "/" + r.Name }

func (r *Repository) organise(ctx context.Context) error {
	alice, err := r.World.Gitea.API(ctx, r.Alice.Token)
	if err != nil {
		return err
	}
	if _, _, err := alice.CreateOrg(sdk.CreateOrgOption{Name: r.Owner, Visibility: sdk.VisibleTypePublic}); err != nil {
		return fmt.Errorf("create the organisation: %w", err)
	}
	team := func(name string, access sdk.AccessMode, members ...realserver.User) (int64, error) {
		t, _, err := alice.CreateTeam(r.Owner, sdk.CreateTeamOption{
			Name: name, Permission: access, IncludesAllRepositories: true,
			Units: []sdk.RepoUnitType{sdk.RepoUnitCode, sdk.RepoUnitIssues, sdk.RepoUnitPulls},
		})
		if err != nil {
			return 0, fmt.Errorf("create team %s: %w", name, err)
		}
		for _, member := range members {
			if _, err := alice.AddTeamMember(t.ID, member.Name); err != nil {
				return 0, fmt.Errorf("add %s to team %s: %w", member.Name, name, err)
			}
		}
		return t.ID, nil
	}
	// Only a member may read who else is one, and thereby may write.
	if r.Ops, err = team("ops", sdk.AccessModeWrite, r.Carol, r.Bot); err != nil {
		return err
	}
	if r.Writers, err = team("writers", sdk.AccessModeWrite, r.Bob, r.Bot); err != nil {
		return err
	}
	if _, err = team("bots", sdk.AccessModeAdmin, r.Bot); err != nil {
		return err
	}
	// Gitea shows the members of a team to its members only.
	if _, err := alice.AddTeamMember(r.Ops, r.Bot.Name); err != nil {
		return fmt.Errorf("add %s to team ops: %w", r.Bot.Name, err)
	}
	if _, _, err := alice.CreateOrgRepo(r.Owner, sdk.CreateRepoOption{Name: r.Name, DefaultBranch: "main"}); err != nil {
		return fmt.Errorf("create the repository: %w", err)
	}
	return nil
}

// fill pushes the first commits, tier by tier as a person would have.
func (r *Repository) fill(ctx context.Context, policy string) error {
	content, err := render("repository", r.values())
	if err != nil {
		return err
	}
	if policy != "" {
		content[PolicyPath] = policy
	}
	dir, err := os.MkdirTemp("", "signalbox-seed-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	clone, err := r.Clone(ctx, r.Alice, dir)
	if err != nil {
		return err
	}
	for _, step := range []struct{ message, prefix string }{
		{"Start with the platform", "platform/"},
		{"Configure the platform", "platform-config/"},
		{"Add the first application", "apps/"},
		{"Apply it with Flux", "clusters/"},
		{"Say when a change may be merged", ""},
	} {
		part := map[string]string{}
		for path, text := range content {
			if strings.HasPrefix(path, step.prefix) {
				part[path] = text
				delete(content, path)
			}
		}
		if _, err := clone.Commit(ctx, realserver.Change{Message: step.message, Write: part}); err != nil {
			return err
		}
	}
	if err := clone.Push(ctx, "main"); err != nil {
		return err
	}
	return r.waitFilled(ctx)
}

// waitFilled waits until Gitea has noticed that the repository is not empty any more, which it does after
// the push: until then there are no pull requests.
func (r *Repository) waitFilled(ctx context.Context) error {
	alice, err := r.World.Gitea.API(ctx, r.Alice.Token)
	if err != nil {
		return err
	}
	for {
		repo, _, err := alice.GetRepo(r.Owner, r.Name)
		if err != nil {
			return fmt.Errorf("look for the first push: %w", err)
		}
		if !repo.Empty {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("look for the first push: %w", ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Clone clones the repository into dir as the user.
func (r *Repository) Clone(ctx context.Context, u realserver.User, dir string) (*realserver.Clone, error) {
	return r.World.Gitea.Clone(ctx, u, r.String(), dir)
}

// MoveBranch is the branch of the pull request that OpenMove opens.
const MoveBranch = "storage-profiles-own-tier"

// OpenMove opens bob's pull request that moves the StorageProfile into a tier of its own, from a clone in
// dir, which it returns for further pushes.
func (r *Repository) OpenMove(ctx context.Context, dir string) (*sdk.PullRequest, *realserver.Clone, error) {
	clone, err := r.Clone(ctx, r.Bob, dir)
	if err != nil {
		return nil, nil, err
	}
	write, err := render("change", r.values())
	if err != nil {
		return nil, nil, err
	}
	if err := clone.Branch(ctx, MoveBranch, "origin/main"); err != nil {
		return nil, nil, err
	}
	if _, err := clone.Commit(ctx, realserver.Change{
		Message: "Give storage profiles a tier of their own",
		Rename:  map[string]string{"platform-config/storage-profiles.yaml": "platform-config-cdi/storage-profiles.yaml"},
		Write:   write,
	}); err != nil {
		return nil, nil, err
	}
	if err := clone.Push(ctx, MoveBranch); err != nil {
		return nil, nil, err
	}
	bob, err := r.World.Gitea.API(ctx, r.Bob.Token)
	if err != nil {
		return nil, nil, err
	}
	pull, _, err := bob.CreatePullRequest(r.Owner, r.Name, sdk.CreatePullRequestOption{
		Head: MoveBranch, Base: "main",
		Title: "Give storage profiles a tier of their own",
		Body: "The operator brings the kind `StorageProfile` only after `platform-config` was applied, and Flux refuses " +
			"`platform-config` as long as the kind is missing. A tier of its own breaks the circle.\n\n" +
			"Merging prunes the profile once, so `platform-config` must be Ready first.",
	})
	if err != nil {
		return nil, nil, fmt.Errorf("open the pull request in %s: %w", r, err)
	}
	return pull, clone, nil
}

// values are what the files of the repository leave open.
type values struct{ Namespace, CloneURL string }

func (r *Repository) values() values {
	return values{Namespace: r.Namespace, CloneURL: r.World.Gitea.URL() + r.String() + ".git"}
}

// render returns the files below a folder by their path in the repository.
func render(folder string, v values) (map[string]string, error) {
	tree, err := fs.Sub(files, folder)
	if err != nil {
		return nil, err
	}
	content := map[string]string{}
	err = fs.WalkDir(tree, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		raw, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		t, err := template.New(path).Parse(string(raw))
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := t.Execute(&text, v); err != nil {
			return err
		}
		content[path] = text.String()
		return nil
	})
	return content, err
}
