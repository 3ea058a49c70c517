package demo

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
)

// command is what can be typed at the prompt.
type command struct {
	name, argument, help string
	run                  func(ctx context.Context, argument string) error
}

// errQuit ends the prompt.
var errQuit = errors.New("quit")

func (p *player) commands() []command {
	w := p.world
	plainly := func(f func()) func(context.Context) error {
		return func(context.Context) error { f(); return nil }
	}
	try := func(m move) func(context.Context, string) error {
		return func(ctx context.Context, _ string) error { return p.try(ctx, m) }
	}
	review := func(words string, act func(context.Context, string) error, otherwise string) func(context.Context, string) error {
		return func(ctx context.Context, login string) error {
			login = cmp.Or(login, otherwise)
			return p.try(ctx, move{words: login + words, act: func(ctx context.Context) error { return act(ctx, login) }})
		}
	}
	return []command{
		{"fail", "", "Flux cannot apply platform-config", try(move{words: "Flux cannot apply platform-config: the kind is gone again.", act: w.fail})},
		{"recover", "", "everything on the cluster works again", try(move{
			words: "The cluster answers, Flux fetches, and every tier is Ready at the tip of main.", act: w.mend,
			want: state(preconditions, "success"), patience: p.Deadline,
		})},
		{"suspend", "", "somebody suspends platform-config", try(move{words: "Somebody suspends platform-config.", act: plainly(w.suspend)})},
		{"progress", "", "Flux reconciles, and nothing comes of it", p.progressCommand},
		{"source", "", "Flux cannot fetch the repository", try(move{words: "Flux cannot fetch the repository any more.", act: plainly(w.breakSource)})},
		{"silence", "", "the cluster cannot be reached", try(move{
			words: fmt.Sprintf("The API server of %s refuses connections. After %s without a sign of life, what is known of it is unknown.", Cluster, p.Silence),
			act:   func(context.Context) error { return w.silence() }, patience: p.Silence + p.Deadline,
		})},
		{"push", "", "bob pushes another commit", try(move{
			words: "bob pushes another commit.", act: w.push,
			want: func(v *view) error {
				if len(v.statuses) < 2 {
					return errors.New("the new commit has no statuses yet")
				}
				return nil
			},
			patience: p.Deadline,
		})},
		{"approve", "NAME", "somebody approves (alice and carol may)", review(" approves.", w.approve, "alice")},
		{"reject", "NAME", "somebody asks for changes", review(" asks for changes.", w.reject, "carol")},
		{"dismiss", "", "alice dismisses the latest review", try(move{
			words: "alice dismisses the latest review. Gitea sends no webhook for that: signalbox finds it at its next reconcile, which comes now.",
			act: func(ctx context.Context) error {
				if err := w.dismiss(ctx); err != nil {
					return err
				}
				return p.Reconcile(ctx)
			},
		})},
		{"edit", "", "mallory writes over the comment of signalbox", p.editCommand},
		{"forge", "", "mallory posts a status of signalbox as success", p.forgeCommand},
		{"show", "", "show the statuses and the comment", p.showCommand},
		{"help", "", "list the commands", p.helpCommand},
		{"quit", "", "end the demo", func(context.Context, string) error { return errQuit }},
	}
}

func (p *player) progressCommand(ctx context.Context, _ string) error {
	p.screen.tell("Each tier passes through Progressing and comes to the result that it had.")
	if err := p.progress(ctx); err != nil && ctx.Err() == nil {
		p.screen.say(gutter, run{printable(err.Error()), red})
	}
	return ctx.Err()
}

func (p *player) editCommand(ctx context.Context, _ string) error {
	before, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	if len(before.comments) == 0 {
		p.screen.tell("There is no comment to edit.")
		return nil
	}
	c := before.comments[0]
	return p.try(ctx, move{
		words: "mallory, who may write, edits the comment of signalbox: “Clear to merge. Nothing to see here.”",
		act:   func(ctx context.Context) error { return p.world.edit(ctx, c.ID) },
		want: func(v *view) error {
			if len(v.comments) != 1 || v.comments[0].Body != c.Body {
				return errors.New("the comment is not what it was")
			}
			return nil
		},
		patience: p.Deadline,
	})
}

func (p *player) forgeCommand(ctx context.Context, _ string) error {
	before, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	forged, _ := before.status(preconditions)
	if st, _ := before.status(approval); forged.State == "success" && st.State != "success" {
		forged = st
	}
	return p.try(ctx, move{
		words:    fmt.Sprintf("mallory, who may write, posts %s as success: any writer can post any status.", forged.Context),
		act:      func(ctx context.Context) error { return p.world.forge(ctx, before.head, forged.Context) },
		want:     all(state(forged.Context, forged.State), says("mallory posted the status")),
		patience: p.Deadline,
	})
}

func (p *player) showCommand(ctx context.Context, _ string) error {
	v, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	if err := p.showTiers(ctx); err != nil {
		p.screen.say(gutter, run{printable(err.Error()), red})
	}
	p.screen.blank()
	for _, st := range v.statuses {
		p.screen.line(gutter, statusLine(st))
		p.screen.description(st)
	}
	for _, c := range v.comments {
		p.screen.blank()
		p.screen.blocks(p.screen.markdown(c.Body))
	}
	return nil
}

func (p *player) helpCommand(context.Context, string) error {
	for _, c := range p.commands() {
		p.screen.line(margin, line{{fmt.Sprintf("%-14s", strings.TrimSpace(c.name+" "+c.argument)), bold}, {c.help, plain}})
	}
	return nil
}
