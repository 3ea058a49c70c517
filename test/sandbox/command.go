package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
)

// command is something that a person can type.
type command struct {
	name, help string
	run        func(*sandbox, context.Context) error
}

func commands() []command {
	return []command{
		{"show", "print what signalbox shows on the pull request now", (*sandbox).show},
		{"recover", "teach the cluster the missing kind: Flux recovers, and nobody has to push", (*sandbox).teach},
		{"approve", "let carol approve the pull request (or sign in as her and do it yourself)", (*sandbox).approve},
		{"push", "let bob push another commit: carol's approval was for the one before", (*sandbox).push},
		{"break", "take the kind away again", (*sandbox).forget},
	}
}

func (s *sandbox) help() {
	for _, c := range commands() {
		s.say("  %-9s %s\n", c.name, c.help)
	}
}

// serve does what is typed until ctx is done or signalbox has ended, which is an error.
func (s *sandbox) serve(ctx context.Context, input io.Reader) error {
	lines := make(chan string)
	// A read from a terminal cannot be called off: this goroutine ends with the program.
	go func() {
		scanner := bufio.NewScanner(input)
		for scanner.Scan() {
			select {
			case lines <- strings.TrimSpace(scanner.Text()):
			case <-ctx.Done():
				return
			}
		}
	}()
	for {
		s.say("\n> ")
		select {
		case <-ctx.Done():
			return nil
		case <-s.bot.Ended():
			return fmt.Errorf("signalbox has ended by itself; its log is %s", s.bot.Log())
		case line := <-lines:
			if err := s.do(ctx, line); err != nil && ctx.Err() == nil {
				s.say("this failed: %v\n", err)
			}
		}
	}
}

func (s *sandbox) do(ctx context.Context, line string) error {
	if line == "" {
		return nil
	}
	for _, c := range commands() {
		if c.name == line {
			limited, cancel := context.WithTimeout(ctx, time.Minute)
			defer cancel()
			return c.run(s, limited)
		}
	}
	s.help()
	return nil
}

func (s *sandbox) show(ctx context.Context) error {
	api, err := s.world.Gitea.API(ctx, s.repo.Mallory.Token)
	if err != nil {
		return err
	}
	pull, _, err := api.GetPullRequest(s.repo.Owner, s.repo.Name, s.pull.Index)
	if err != nil {
		return err
	}
	status, _, err := api.GetCombinedStatus(s.repo.Owner, s.repo.Name, pull.Head.Sha)
	if err != nil {
		return err
	}
	for _, one := range status.Statuses {
		s.say("%-36s %-8s %s\n", one.Context, one.State, one.Description)
	}
	comments, _, err := api.ListIssueComments(s.repo.Owner, s.repo.Name, s.pull.Index, sdk.ListIssueCommentOptions{})
	if err != nil {
		return err
	}
	for _, comment := range comments {
		if comment.Poster.UserName == s.repo.Bot.Name {
			s.say("\n%s\n", comment.Body)
		}
	}
	return nil
}

func (s *sandbox) teach(ctx context.Context) error {
	if err := s.repo.InstallStorageProfiles(ctx); err != nil {
		return err
	}
	s.say("the cluster knows the kind; waiting for Flux\n")
	if _, err := s.world.Kube.Wait(ctx, s.repo.Kustomization("platform-config"), realserver.HasCondition("Ready", "True")); err != nil {
		return err
	}
	s.say("platform-config is Ready\n")
	return nil
}

func (s *sandbox) forget(ctx context.Context) error {
	if err := s.repo.RemoveStorageProfiles(ctx); err != nil {
		return err
	}
	s.say("the kind is gone; waiting for Flux to notice\n")
	if _, err := s.world.Kube.Wait(ctx, s.repo.Kustomization("platform-config"), realserver.HasCondition("Ready", "False")); err != nil {
		return err
	}
	s.say("platform-config is not Ready\n")
	return nil
}

func (s *sandbox) approve(ctx context.Context) error {
	api, err := s.world.Gitea.API(ctx, s.repo.Carol.Token)
	if err != nil {
		return err
	}
	_, _, err = api.CreatePullReview(s.repo.Owner, s.repo.Name, s.pull.Index, sdk.CreatePullReviewOptions{
		State: sdk.ReviewStateApproved, Body: "Looks right.",
	})
	if err == nil {
		s.say("carol has approved\n")
	}
	return err
}

func (s *sandbox) push(ctx context.Context) error {
	head, err := s.clone.Commit(ctx, realserver.Change{
		Message: "Say why",
		Write: map[string]string{
			"platform-config-cdi/README.md": "Apart from platform-config, because the operator brings the kind. " + time.Now().Format(time.TimeOnly) + "\n",
		},
	})
	if err != nil {
		return err
	}
	if err := s.clone.Push(ctx, s.pull.Head.Ref); err != nil {
		return errors.Join(err, errors.New("somebody else may have pushed to the branch"))
	}
	s.say("bob has pushed %s\n", head[:10])
	return nil
}
