package demo

import (
	"context"
	_ "embed"
	"fmt"

	"golang.org/x/tools/txtar"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/kube/kubetest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// The names of the story.
const (
	Owner   = "ops"
	Name    = "home-gitops"
	Cluster = "prod"

	bot       = "signalbox"
	branch    = "storage-profiles-own-tier"
	namespace = "flux-system"
)

// tiers are the Kustomizations, in the order in which Flux applies them.
var tiers = []string{"platform", "platform-config", "apps"}

// stuck is the tier that the story is about.
const stuck = "platform-config"

//go:embed repository.txtar
var repositoryText []byte

//go:embed profiles.txtar
var profilesText []byte

//go:embed change.txtar
var changeText []byte

func files(archive []byte) map[string]string {
	out := map[string]string{}
	for _, f := range txtar.Parse(archive).Files {
		out[f.Name] = string(f.Data)
	}
	return out
}

// World is a Gitea with a repository and its people, and a cluster that Flux
// keeps as the repository says. Make it with [NewWorld] and end it with
// [World.Close].
type World struct {
	Gitea   *giteatest.Server
	Cluster *kubetest.Cluster
	// BotToken is the token of the account of signalbox, which administers the
	// repository.
	BotToken secret.Value

	repo pull.Repo
	// reader is the token of alice, with which the demo looks at Gitea.
	reader secret.Value
	// number is that of the pull request of the story; 0 before it is opened.
	number int64
	// pushes counts the commits that bob pushed, and review is the id of the
	// latest review; 0 for none.
	pushes int
	review int64
	// silent says that the cluster cannot be reached.
	silent bool
}

// NewWorld makes the world as it is when the story begins: platform-config
// cannot be applied, and there is no pull request yet.
func NewWorld(ctx context.Context) (*World, error) {
	server, err := giteatest.New(giteatest.Options{})
	if err != nil {
		return nil, err
	}
	w := &World{Gitea: server, Cluster: kubetest.New()}
	if err := w.settle(ctx); err != nil {
		server.Close()
		return nil, fmt.Errorf("prepare the demo: %w", err)
	}
	return w, nil
}

// Close ends the stand-ins.
func (w *World) Close() { w.Gitea.Close() }

func (w *World) settle(ctx context.Context) error {
	if err := w.invite(ctx); err != nil {
		return err
	}
	g := w.Gitea
	var err error
	if w.repo, err = g.CreateRepo(ctx, Owner, Name, files(repositoryText)); err != nil {
		return err
	}
	for login, permission := range map[string]giteatest.Permission{
		"alice": giteatest.Admin, bot: giteatest.Admin,
		"bob": giteatest.Write, "carol": giteatest.Write, "mallory": giteatest.Write,
	} {
		if err := g.Grant(ctx, w.repo, login, permission); err != nil {
			return err
		}
	}
	first, err := g.Tip(ctx, w.repo, "main")
	if err != nil {
		return err
	}
	w.ready(first)
	tip, err := g.Push(ctx, w.repo, giteatest.Push{
		As: "alice", Branch: "main", Files: files(profilesText), Message: "Share the disks of virtual machines between nodes",
	})
	if err != nil {
		return err
	}
	w.fetched(tip)
	w.stick(tip)
	return nil
}

// invite makes the people: alice owns the organisation, carol is in the team
// that approves, bob and mallory write. Only members may see who is in a team,
// so signalbox is one of them, where it never counts.
func (w *World) invite(ctx context.Context) error {
	for _, login := range []string{"alice", "bob", "carol", "mallory", bot} {
		_, token, err := w.Gitea.CreateUser(ctx, login)
		if err != nil {
			return err
		}
		switch login {
		case "alice":
			w.reader = secret.New(token)
		case bot:
			w.BotToken = secret.New(token)
		}
	}
	if err := w.Gitea.CreateOrg(ctx, Owner); err != nil {
		return err
	}
	for team, members := range map[string][]string{"ops": {"carol", bot}, "writers": {"bob", "mallory"}} {
		if err := w.Gitea.SetTeam(ctx, Owner, team, members...); err != nil {
			return err
		}
	}
	return nil
}
