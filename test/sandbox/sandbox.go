package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"signalbox/test/realserver"
	"signalbox/test/realserver/bot"
	"signalbox/test/realserver/seed"
)

// cluster is what the seeded policy calls the cluster.
const cluster = "prod"

// sandbox is everything that runs. Its fields are set as far as the start has come.
type sandbox struct {
	out   io.Writer
	world *realserver.World
	repo  *seed.Repository
	bot   *bot.Bot
	pull  *sdk.PullRequest
	clone *realserver.Clone // Bob's, on the branch of the pull request.
	began time.Time
}

// start starts everything in dir, or in a temporary folder. On an error the sandbox holds what runs
// already, for end.
func start(ctx context.Context, out io.Writer, dir string) (*sandbox, error) {
	s := &sandbox{out: out, began: time.Now()}
	_, err := exec.LookPath("npx")
	pages := err == nil
	if !pages {
		s.say("There is no npx on this machine to build Gitea's scripts and styles with: its pages will be plain.\n")
	}
	s.step("starting Gitea, Kubernetes and Flux")
	s.world, err = realserver.StartWorld(ctx, realserver.WorldOptions{Dir: dir, Gitea: realserver.GiteaOptions{Pages: pages}})
	if err != nil {
		return s, err
	}
	s.step("filling the repository")
	if s.repo, err = seed.Plant(ctx, s.world, seed.Options{}); err != nil {
		return s, err
	}
	s.step("letting Flux apply it")
	if err := s.repo.Bootstrap(ctx); err != nil {
		return s, err
	}
	if _, err := s.world.Kube.Wait(ctx, s.repo.Kustomization("platform-config"), settled); err != nil {
		return s, err
	}
	s.step("building and starting signalbox")
	if err := s.startBot(ctx); err != nil {
		return s, err
	}
	s.step("opening bob's pull request")
	s.pull, s.clone, err = s.repo.OpenMove(ctx, filepath.Join(s.world.Dir, "bob"))
	return s, err
}

// settled is met by a Kustomization that Flux has finished with, well or not.
func settled(o *unstructured.Unstructured) (bool, string) {
	c, _ := realserver.StatusCondition(o, "Ready")
	return c.Status == "True" || c.Status == "False", "Ready is " + string(c.Status)
}

func (s *sandbox) startBot(ctx context.Context) error {
	dir := filepath.Join(s.world.Dir, "signalbox")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	program, err := bot.Build(ctx, dir)
	if err != nil {
		return err
	}
	token, err := s.world.Gitea.CreateToken(ctx, s.repo.Bot, "signalbox", bot.Scopes()...)
	if err != nil {
		return err
	}
	access, err := bot.Account(ctx, s.world.Kube, realserver.FluxNamespace)
	if err != nil {
		return err
	}
	s.bot, err = bot.Start(ctx, bot.Options{
		Program: program, Dir: dir, GiteaURL: s.world.Gitea.URL(), Token: token,
		Repositories: []string{s.repo.String()},
		Clusters:     map[string]realserver.Access{cluster: access},
	})
	return err
}

// say shows a person something. Whether they can see it is their terminal's business.
func (s *sandbox) say(format string, args ...any) { _, _ = fmt.Fprintf(s.out, format, args...) }

func (s *sandbox) step(what string) {
	s.say("%5.1fs  %s\n", time.Since(s.began).Seconds(), what)
}

// end ends what runs, and removes data and logs if all went well and nobody asked to keep them.
func (s *sandbox) end(remove bool) error {
	if s.bot != nil {
		s.bot.Stop()
	}
	if s.world == nil {
		return nil
	}
	if remove {
		return s.world.Discard()
	}
	s.world.Stop()
	s.say("data and logs are in %s\n", s.world.Dir)
	return nil
}

func (s *sandbox) printGuide() {
	line := func(format string, args ...any) { s.say(format+"\n", args...) }
	line("\nThe sandbox is up. signalbox looks at %s on cluster %s.\n", s.repo, cluster)
	line("  pull request   %s", s.pull.HTMLURL)
	line("  Gitea          %s", s.world.Gitea.URL())
	line("  metrics        %smetrics", s.bot.URL)
	line("  kubeconfig     %s", s.world.Kube.Kubeconfig())
	line("  logs           %s", strings.Join([]string{s.bot.Log(), filepath.Join(s.world.Dir, "*", "logs")}, "\n                 "))
	line("\n  account    password                          role")
	for _, p := range []struct {
		user realserver.User
		role string
	}{
		{s.repo.Alice, "owns the organisation, may approve"},
		{s.repo.Bob, "author of the pull request"},
		{s.repo.Carol, "in the team ops, may approve"},
		{s.repo.Mallory, "has no rights beyond reading"},
	} {
		line("  %-9s  %s  %s", p.user.Name, p.user.Password, p.role)
	}
	line("\nplatform-config is not Ready: it contains a StorageProfile, a kind that the cluster does not know.")
	line("Bob's pull request moves it into a tier of its own. Open it, and see what signalbox says. Then try:")
	line("")
	s.help()
	line("\nCtrl-C ends everything.")
}
