package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/digest"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// noDigest answers whoever may not see how things stand.
const noDigest = "How things stand is said in the rooms of a digest, and to whom signalbox knows as a writer of one of its repositories. Say \"link\" to be known."

// digest answers with how things stand now: all of a digest in its own rooms, and
// elsewhere what the person may see.
func (t *talk) digest(ctx context.Context, name string) error {
	rule, why := t.digestRule(strings.ToLower(strings.TrimSpace(name)))
	if why != "" {
		return t.problem(ctx, why)
	}
	all := slices.Contains(rule.Rooms, t.m.Room)
	var seen map[int64]bool
	if !all {
		reads, writes, err := t.readable(ctx)
		if err != nil {
			return err
		}
		if !writes {
			return t.problem(ctx, noDigest)
		}
		seen = reads
	}
	r, err := t.Digests.Preview(ctx, rule)
	if err != nil {
		return err
	}
	if !all {
		r = r.Visible(func(repo int64) bool { return seen[repo] })
	}
	return t.say(ctx, render.Digest(r, r.Name, t.Digests.Page(&r)))
}

// digestRule returns the digest that is meant, or why none is.
func (t *talk) digestRule(name string) (*DigestRule, string) {
	rules := t.Digests.Rules
	var names []string
	for i := range rules {
		names = append(names, rules[i].Name)
		if rules[i].Name == name || name == "" && slices.Contains(rules[i].Rooms, t.m.Room) {
			return &rules[i], ""
		}
	}
	switch {
	case name == "" && len(rules) == 1:
		return &rules[0], ""
	case name == "" && len(rules) == 0:
		return &DigestRule{Name: "now", Zone: "UTC", About: About{Sections: digest.Sections()}}, ""
	case len(rules) == 0:
		return nil, "No digest is configured. Say \"digest\" for how things stand now."
	}
	return nil, "Which digest? There are: " + strings.Join(names, ", ") + "."
}

// readable returns the repositories that the person who speaks can read, and whether
// they can write to one.
func (t *talk) readable(ctx context.Context) (seen map[int64]bool, writes bool, err error) {
	seen = map[int64]bool{}
	if !t.known {
		return seen, false, nil
	}
	for _, repo := range t.Repositories.Known() {
		have, err := t.Permissions.Permission(ctx, repo, t.by.Login)
		if err != nil && !errors.Is(err, pull.ErrForbidden) && !errors.Is(err, pull.ErrNotFound) {
			return nil, false, fmt.Errorf("find out whether %s can read %s: %w", t.by.Login, repo, err)
		}
		// Beside an error comes what is certain.
		seen[repo.ID] = have.AtLeast(pull.PermissionRead)
		writes = writes || have.AtLeast(pull.PermissionWrite)
	}
	return seen, writes, nil
}
