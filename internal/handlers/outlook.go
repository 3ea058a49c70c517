package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/digest"
	"signalbox/internal/fact"
	"signalbox/internal/policy"
)

// Outlook tells how things stand, from what is known.
type Outlook struct {
	Facts        SelectableFacts
	Records      Records
	Repositories *Repositories
	Ledger       AllLedger
	// DeadLetters counts what could not be handled.
	DeadLetters func(ctx context.Context) (int, error)
	// Clusters are the names of all configured clusters. Checks and Kured say what is
	// asked of them, and Renovate names the workflows of Renovate, by repository as
	// "owner/name" in lower case.
	Clusters []string
	Checks   []digest.Check
	Kured    []digest.Kured
	Renovate map[string][]string
	// CronJobs are those of Renovate.
	CronJobs []fact.Wish
	// Watching says that the facts of [Outlook.Wishes] are collected: somebody is told of
	// them. Without that nothing is known of nodes, storage and pipelines.
	Watching bool
	// Began is since when this process listens to the clusters; zero if it does not, and
	// others do.
	Began time.Time
	Now   func() time.Time
}

// SelectableFacts is the view of the facts.
type SelectableFacts interface {
	digest.Facts
	Sync(ctx context.Context) error
}

// AllLedger reads the whole ledger.
type AllLedger interface {
	All() decision.Ledger
	Sync(ctx context.Context) error
}

// About is what a digest or an alert is about.
type About struct {
	// Sections are those that are wanted, at least one.
	Sections []digest.Section
	// Clusters are names, and Repositories "owner/name" in any letter case; none are
	// all.
	Clusters, Repositories []string
}

// has reports whether it is about a repository, by its name in the configuration or
// the one that it has now.
func (a *About) has(r *Setting) bool {
	return len(a.Repositories) == 0 || slices.ContainsFunc(a.Repositories, func(name string) bool {
		return strings.EqualFold(name, r.Name) || strings.EqualFold(name, r.String())
	})
}

// Look finds what is not as it should be now. Since is when it was looked for before,
// or zero. All that was acknowledged to anybody before the call is seen.
func (o *Outlook) Look(ctx context.Context, about About, since time.Time) (digest.Result, error) {
	if err := errors.Join(o.Facts.Sync(ctx), o.Records.Sync(ctx), o.Ledger.Sync(ctx)); err != nil {
		return digest.Result{}, fmt.Errorf("look at how things stand: %w", err)
	}
	var dead int // Only the gate tells of them, and counting asks the bus.
	if slices.Contains(about.Sections, digest.Gate) {
		var err error
		if dead, err = o.DeadLetters(ctx); err != nil {
			return digest.Result{}, fmt.Errorf("look at how things stand: %w", err)
		}
	}
	var unwatched []digest.Section
	if !o.Watching {
		about.Sections, unwatched = watched(about.Sections)
	}
	var found digest.Result
	if len(about.Sections) > 0 {
		found = digest.Find(o.input(about, since, dead))
	}
	for _, s := range unwatched {
		found.Blind = append(found.Blind, digest.Blind{Section: s, Why: "this is looked at only while a digest or an alert is configured"})
	}
	return found, nil
}

// watched parts sections into those that are always looked at and the others.
func watched(sections []digest.Section) (always, others []digest.Section) {
	for _, s := range sections {
		if s == digest.Flux || s == digest.Gate {
			always = append(always, s)
		} else {
			others = append(others, s)
		}
	}
	return always, others
}

func (o *Outlook) input(about About, since time.Time, dead int) digest.Input {
	in := digest.Input{
		Facts: o.Facts, Sections: about.Sections, Checks: o.Checks, Kured: o.Kured,
		Decisions: o.Ledger.All(), Since: since, DeadLetters: dead, Began: o.Began, Now: o.Now().UTC(),
		Clusters: o.clusters(about),
	}
	wanted := map[int64]bool{}
	observed := map[int64]bool{}
	for _, r := range o.Repositories.Settings() {
		switch {
		case !about.has(&r):
		case r.ID == 0:
			in.Unread++
		default:
			in.Repositories = append(in.Repositories, digest.Repository{Repo: r.Repo, Main: r.Main, Observed: r.Observe})
			wanted[r.ID], observed[r.ID] = true, r.Observe
		}
	}
	for _, r := range o.Records.All() {
		if s := StandingOf(&r); wanted[s.Pull.Repo.ID] {
			s.Observed = observed[s.Pull.Repo.ID]
			in.Pulls = append(in.Pulls, s)
		}
	}
	return in
}

// clusters are those that a digest is about, in the order of the configuration.
func (o *Outlook) clusters(about About) []string {
	if len(about.Clusters) == 0 {
		return o.Clusters
	}
	return slices.DeleteFunc(slices.Clone(o.Clusters), func(c string) bool { return !slices.Contains(about.Clusters, c) })
}

// StandingOf is how the pull request of a record stands. Whether its repository is
// only observed is not in the record.
func StandingOf(r *Record) policy.Standing {
	return policy.Standing{
		Pull: r.Inputs.Snapshot.Pull, Files: r.Inputs.Snapshot.Files, Verdict: r.Verdict,
		EvaluatedAt: r.EvaluatedAt, History: r.History,
	}
}

// Wishes are the facts that an outlook needs and that nobody else may wish for. Those
// of a repository come as soon as it is known.
func (o *Outlook) Wishes() []fact.Wish {
	wishes := append(digest.Wishes(o.Clusters, o.Checks, o.Kured), o.CronJobs...)
	for _, r := range o.Repositories.Settings() {
		if r.ID == 0 {
			continue
		}
		wishes = append(wishes, fact.Wish{Key: fact.ActionsKey(r.ID)})
		for _, workflow := range o.Renovate[strings.ToLower(r.Name)] {
			wishes = append(wishes, fact.Wish{Key: fact.RenovateKey(r.ID, workflow)})
		}
	}
	return wishes
}
