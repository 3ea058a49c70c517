package main

import (
	"context"
	"errors"

	"signalbox/internal/doctor"
	"signalbox/internal/fact"
	"signalbox/internal/kube"
	"signalbox/internal/pull"
)

// Bounds of a look at one cluster: what rules read there, and the revisions of
// which it is asked whose they are.
const (
	maxWishes    = 50
	maxRevisions = 20
)

// follow is a repository of which rules ask what a cluster has applied.
type follow struct {
	repo        pull.Repo
	branch, tip string
	rules       []string
	// fault is why the tip is not known, or empty.
	fault string
}

// lookWishes looks at what rules read of a cluster beside Flux's objects.
func lookWishes(ctx context.Context, c kube.Config, wished []doctor.Wished, out *doctor.Cluster) {
	if out.Unlooked = len(wished) - maxWishes; out.Unlooked > 0 {
		wished = wished[:maxWishes]
	} else {
		out.Unlooked = 0
	}
	wishes := make([]fact.Wish, len(wished))
	for i, w := range wished {
		wishes[i] = w.Wish
	}
	if len(wishes) == 0 {
		return
	}
	seen, err := kube.InspectWishes(ctx, c, wishes)
	if err != nil {
		out.WishesFault = err.Error()
		return
	}
	out.WishesFault = seen.RightsFault
	missing := false
	for i, w := range seen.Wishes {
		s := doctor.SeenWish{Wished: wished[i], Refused: w.Refused, NotInstalled: w.NotInstalled, Fault: w.Fault, Absent: w.Absent}
		if s.Assumed {
			s.NotInstalled, s.Absent = "", nil
		}
		for _, r := range w.Missing {
			s.Missing = append(s.Missing, r.String())
		}
		missing = missing || len(w.Missing) > 0
		out.Wishes = append(out.Wishes, s)
	}
	if missing {
		out.Role = rolesFor(seen)
	}
}

// lookFollowers finds out whether some Kustomization of a cluster has applied a
// commit of each of the repositories.
func (e *examiner) lookFollowers(ctx context.Context, c kube.Config, follows []follow, out *doctor.Cluster) {
	if len(follows) == 0 {
		return
	}
	revisions, err := kube.AppliedRevisions(ctx, c)
	for _, f := range follows {
		seen := doctor.Follower{Repo: f.repo.String(), Branch: f.branch, For: f.rules, Fault: f.fault}
		switch {
		case f.fault != "":
		case err != nil:
			seen.Fault = err.Error()
		default:
			seen.Found, seen.Fault = e.followed(ctx, f, revisions)
		}
		out.Followers = append(out.Followers, seen)
	}
}

func (e *examiner) followed(ctx context.Context, f follow, revisions []fact.Revision) (found bool, fault string) {
	asked := 0
	for _, r := range revisions {
		if r.Branch != "" && r.Branch != f.branch {
			continue
		}
		if asked++; asked > maxRevisions {
			return false, "it has too many revisions to ask about each"
		}
		_, err := e.forge.Contains(ctx, f.repo, r.Commit, f.tip)
		switch {
		case err == nil:
			return true, ""
		case !errors.Is(err, pull.ErrUnknownCommit):
			fault = err.Error()
		}
	}
	return false, fault
}
