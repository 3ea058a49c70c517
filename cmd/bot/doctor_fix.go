package main

import (
	"context"
	"fmt"
	"io"
	"reflect"
	"strings"

	"signalbox/internal/doctor"
	"signalbox/internal/gitea"
	"signalbox/internal/pull"
)

// fix is one thing that --fix sets in Gitea: the protection of a branch, or a
// webhook.
type fix struct {
	// name is the repository as the configuration has it.
	name   string
	repo   pull.Repo
	branch *doctor.Branch
	hook   *gitea.HookSpec
	// why is what is wrong with the webhook.
	why string
}

// doneFix is what was set.
type doneFix struct {
	Repository string `json:"repository"`
	// Branch is empty for a webhook, which Webhook tells of then.
	Branch  string              `json:"branch,omitempty"`
	Changes []doctor.Difference `json:"changes,omitempty"`
	Webhook string              `json:"webhook,omitempty"`
}

// fixOptions say where the difference is shown and how a person is asked.
type fixOptions struct {
	out io.Writer
	ask func(question string) (bool, error)
}

// fix shows what it would set, asks, and sets it. It returns what was set; an
// error is one of the first that could not be.
func (e *examiner) fix(ctx context.Context, fixes []fix, o fixOptions) ([]doneFix, error) {
	if len(fixes) == 0 {
		_, err := fmt.Fprint(o.out, "There is nothing to set.\n\n")
		return nil, err
	}
	var text strings.Builder
	text.WriteString("This would be set in Gitea:\n\n")
	style := styleFor(o.out)
	for _, f := range fixes {
		text.WriteString(f.text(style) + "\n")
	}
	if _, err := io.WriteString(o.out, text.String()); err != nil {
		return nil, err
	}
	yes, err := o.ask("Set it?")
	if err != nil {
		return nil, err
	}
	if !yes {
		_, err := fmt.Fprint(o.out, "Nothing was set.\n\n")
		return nil, err
	}
	var done []doneFix
	for _, f := range fixes {
		d, err := e.apply(ctx, f)
		if err != nil {
			return done, err
		}
		done = append(done, d)
		what := "webhook " + d.Webhook
		if d.Branch != "" {
			what = "branch " + d.Branch + ": set"
		}
		if _, err := fmt.Fprintf(o.out, "%s, %s\n", d.Repository, what); err != nil {
			return done, err
		}
	}
	_, err = fmt.Fprintln(o.out)
	return done, err
}

// text is what the fix would do.
func (f fix) text(style doctor.Style) string {
	if f.branch == nil {
		return fmt.Sprintf("%s, webhook\n  + %s\n    (%s)\n", f.name, f.hook.URL, f.why)
	}
	return doctor.DifferenceText(fmt.Sprintf("%s, branch %s", f.name, f.branch.Name), f.differences(), style)
}

// differences are what the protection is and would be.
func (f fix) differences() []doctor.Difference {
	change, _ := f.branch.Fix()
	planned := f.branch.Planned(change)
	return doctor.Differences(f.branch.Protection, &planned)
}

// apply sets one thing, and makes sure that it is set as it was shown.
func (e *examiner) apply(ctx context.Context, f fix) (doneFix, error) {
	if f.branch == nil {
		result, err := e.forge.EnsureHook(ctx, f.repo, *f.hook)
		if err != nil {
			return doneFix{}, err
		}
		return doneFix{Repository: f.name, Webhook: string(result.Change)}, nil
	}
	b := *f.branch
	// Somebody may have changed it while the question was open: what was agreed
	// to is the difference that was shown.
	now, protected, err := e.forge.Protection(ctx, f.repo, b.Name)
	if err != nil {
		return doneFix{}, err
	}
	if protected != (b.Protection != nil) || protected && !reflect.DeepEqual(now, *b.Protection) {
		return doneFix{}, fmt.Errorf("the protection of branch %s of %s changed meanwhile; it was left as it is: run bot doctor --fix again", b.Name, f.name)
	}
	change, _ := b.Fix()
	_, after, err := e.forge.SetProtection(ctx, f.repo, b.Name, change)
	if err != nil {
		return doneFix{}, err
	}
	if more := doctor.Wider(b.Protection, after); len(more) > 0 {
		return doneFix{}, fmt.Errorf("the protection of branch %s of %s is not as it was asked of Gitea: it allows more of %s now; look at Settings, Branches at once",
			b.Name, f.name, strings.Join(more, ", "))
	}
	return doneFix{Repository: f.name, Branch: b.Name, Changes: doctor.Differences(b.Protection, &after)}, nil
}
