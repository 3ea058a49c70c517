package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// The names of the two statuses, as people see them.
const (
	preconditions = "signalbox / preconditions (main)"
	approval      = "signalbox / approval (main)"
)

// step is a part of the story.
type step struct {
	title, words string
	act          func(context.Context) error
	// show shows more of what was done; nil for nothing.
	show func(context.Context) error
	// want is what must come true. A step without it does all by act.
	want func(*view) error
}

func (p *player) steps() []step {
	w := p.world
	return []step{
		{
			title: "bob opens a pull request",
			words: "It moves the profile into a tier of its own, which is applied after platform-config.",
			act:   w.open,
			show:  p.showChange,
			want: all(
				state(preconditions, "pending"), state(approval, "pending"),
				says(`platform-config on prod is not Ready`), says(`no matches for kind "StorageProfile"`), says("since"),
				says("Needs 1 approval by alice or carol"),
			),
		}, {
			title: "The operator is up, and brings the kind",
			words: "Flux tries again and succeeds. Nobody pushes, and Gitea sends no webhook.",
			act:   w.mend,
			want:  all(state(preconditions, "success"), state(approval, "pending"), says("platform-config on prod is Ready")),
		}, {
			title: "alice approves",
			words: "She is not the author, and the policy names her.",
			act:   func(ctx context.Context) error { return w.approve(ctx, "alice") },
			want:  all(state(preconditions, "success"), state(approval, "success"), says("Clear to merge"), says("Approved by alice")),
		}, {
			title: "bob pushes another commit",
			words: "What alice approved is not what would be merged now.",
			act:   w.push,
			want:  all(state(preconditions, "success"), state(approval, "pending"), says("alice: was given on"), says("and the diff is another")),
		}, {
			title: "Flux reconciles, as it does every ten minutes",
			words: "Each tier passes through Progressing and is Ready again. A gate must not flap because of that.",
			act:   p.progress,
		}, {
			title: "Flux can no longer fetch the repository",
			words: "Its access has expired. What would be merged now would not arrive on the cluster.",
			act:   func(context.Context) error { w.breakSource(); return nil },
			want:  all(state(preconditions, "pending"), state(approval, "pending"), says("authentication required")),
		},
	}
}

// story plays all steps.
func (p *player) story(ctx context.Context) error {
	start := time.Now()
	if err := p.begin(ctx); err != nil {
		return err
	}
	for i, s := range p.steps() {
		if err := wait(ctx, p.Pause); err != nil {
			return err
		}
		p.screen.heading(fmt.Sprintf("%d · %s", i+2, s.title))
		if err := p.play(ctx, s); err != nil {
			return fmt.Errorf("step %d of the demo, %q: %w", i+2, s.title, err)
		}
		if err := p.screen.failed(); err != nil {
			return err
		}
	}
	p.screen.heading("That is the story")
	p.screen.tell("It took %d s. signalbox posted one comment and edited it in place; each status was posted when it changed.", int(time.Since(start).Seconds()))
	return nil
}

// begin shows the world and waits for signalbox to be part of it.
func (p *player) begin(ctx context.Context) error {
	s, w := p.screen, p.world
	s.heading("signalbox demo")
	s.tell("Everything is in this process: stand-ins for Gitea and for the cluster %s, and signalbox itself, wired as in production, on an embedded bus in a temporary folder.", Cluster)
	s.tell("Gitea: %s", w.Gitea.URL())
	s.blank()
	s.tell("alice owns the organisation %s; carol is in its team ops; bob and mallory may write. The policy on main:", Owner)
	s.blank()
	policy := files(repositoryText)[".gitea/signalbox.yaml"]
	for _, l := range strings.Split(strings.TrimSpace(policy), "\n")[2:] {
		s.line(gutter, line{{l, code}})
	}
	s.heading("1 · The cluster is stuck")
	s.tell("The newest commit on main brought a StorageProfile to platform-config. The cluster does not know that kind: an operator brings it, but only after platform-config was applied.")
	s.blank()
	if err := p.showTiers(ctx); err != nil {
		return err
	}
	s.blank()
	start := time.Now()
	ready, cancel := context.WithTimeout(ctx, p.Deadline)
	defer cancel()
	if err := p.Ready(ready); err != nil {
		return fmt.Errorf("signalbox does not know the cluster after %s: %w", time.Since(start).Round(time.Millisecond), err)
	}
	s.stamped(line{{"signalbox", bold}, {" watches what Flux does on " + Cluster, plain}}, time.Since(start))
	return p.registered(ctx, start)
}

// registered waits until signalbox has registered its webhook.
func (p *player) registered(ctx context.Context, start time.Time) error {
	for {
		n, err := p.eye.hooks(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			p.screen.stamped(line{{"signalbox", bold}, {" registered its webhook in " + p.world.repo.String(), plain}}, time.Since(start))
			return nil
		}
		if time.Since(start) > p.Deadline {
			return fmt.Errorf("signalbox has not registered its webhook within %s", p.Deadline)
		}
		if err := wait(ctx, poll); err != nil {
			return err
		}
	}
}

// play plays one step.
func (p *player) play(ctx context.Context, s step) error {
	p.screen.tell("%s", s.words)
	p.screen.blank()
	before := &view{}
	if p.world.number != 0 {
		var err error
		if before, err = p.eye.look(ctx); err != nil {
			return err
		}
	}
	if err := s.act(ctx); err != nil || s.want == nil {
		return err
	}
	// Nothing but looking is between the action and the first look.
	result, err := p.watch(ctx, before, s.want, p.Deadline)
	if err != nil && !late(err) {
		return err
	}
	if s.show != nil {
		if err := s.show(ctx); err != nil {
			return err
		}
		p.screen.blank()
	}
	p.report(result)
	return err
}

// showChange shows the pull request as its page does.
func (p *player) showChange(ctx context.Context) error {
	pr, err := p.eye.pull(ctx)
	if err != nil {
		return err
	}
	list, err := p.eye.files(ctx)
	if err != nil {
		return err
	}
	p.screen.say(margin, run{fmt.Sprintf("%s#%d  ", p.world.repo, p.world.number), dim}, run{printable(pr.Title), bold})
	for _, f := range list {
		name := f.Name
		if f.Previous != "" {
			name = f.Previous + " → " + f.Name
		}
		p.screen.line(gutter, line{{fmt.Sprintf("%-9s ", f.Status), dim}, {printable(name), plain}})
	}
	return nil
}

// once wants one comment of signalbox.
func once(v *view) error {
	if len(v.comments) != 1 {
		return fmt.Errorf("there are %d comments of signalbox, not one", len(v.comments))
	}
	return nil
}

// all wants several things, and one comment of signalbox.
func all(wants ...func(*view) error) func(*view) error {
	return func(v *view) error {
		var missing []string
		for _, want := range append(slices.Clip(wants), once) {
			if err := want(v); err != nil {
				missing = append(missing, err.Error())
			}
		}
		if len(missing) == 0 {
			return nil
		}
		return errors.New(strings.Join(missing, "; "))
	}
}

// state wants a status in a state, posted by signalbox.
func state(context, word string) func(*view) error {
	return func(v *view) error {
		st, ok := v.status(context)
		switch {
		case !ok:
			return fmt.Errorf("there is no status %q", context)
		case st.State != word:
			return fmt.Errorf("the status %q is %s (%s), not %s", context, st.State, st.Description, word)
		case st.Creator.Login != bot:
			return fmt.Errorf("the status %q is by %s", context, st.Creator.Login)
		}
		return nil
	}
}

// says wants a text in the comment, as people read it.
func says(text string) func(*view) error {
	return func(v *view) error {
		for _, c := range v.comments {
			for _, b := range markdown(c.Body, 1<<10) {
				if strings.Contains(b.source, text) {
					return nil
				}
			}
		}
		return fmt.Errorf("the comment does not say %q", text)
	}
}
