package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"golang.org/x/sync/errgroup"

	"signalbox/internal/config"
	"signalbox/internal/doctor"
	"signalbox/internal/gitea"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// seenRepository is what a look at one repository gave.
type seenRepository struct {
	findings []doctor.Finding
	fixes    []fix
	// rules are those of its policy files.
	rules []*policy.File
	// follows is what they ask about the repository, by the name of a cluster.
	follows map[string]follow
}

func (e *examiner) lookRepositories(ctx context.Context) []seenRepository {
	seen := make([]seenRepository, len(e.config.Repositories))
	var group errgroup.Group
	group.SetLimit(atOnce)
	for i, r := range e.config.Repositories {
		group.Go(func() error {
			seen[i] = e.lookRepository(ctx, r)
			return nil
		})
	}
	_ = group.Wait() // None of them fails.
	return seen
}

// repoLook is a look at one repository while it goes on.
type repoLook struct {
	*examiner
	setting config.Repository
	info    gitea.RepoInfo
	out     seenRepository
}

func (e *examiner) lookRepository(ctx context.Context, setting config.Repository) seenRepository {
	l := &repoLook{examiner: e, setting: setting}
	r := doctor.Repository{
		Name: setting.String(), Observe: setting.Observe, Login: e.self.Login,
		Webhook: doctor.Webhook{Receiver: e.config.Gitea.Webhook.Receiver(), Manage: e.config.Gitea.Webhook.Manage},
	}
	var err error
	if l.info, err = e.forge.RepoInfo(ctx, setting.Owner, setting.Name); err != nil {
		r.Fault, r.Absent = err.Error(), errors.Is(err, pull.ErrNotFound)
		return seenRepository{findings: r.Judge()}
	}
	r.NowName, r.Archived, r.Empty, r.Pulls = l.info.String(), l.info.Archived, l.info.Empty, l.info.Pulls
	r.Permission = l.info.Permission
	l.add(r.Judge())
	if !r.Readable() || r.Archived {
		return l.out
	}
	l.webhook(ctx, r.Webhook)
	for _, branch := range l.policies(ctx) {
		l.branch(ctx, branch)
	}
	return l.out
}

func (l *repoLook) add(findings []doctor.Finding) {
	l.out.findings = append(l.out.findings, findings...)
}

// webhook looks at the webhook, and tries it where somebody can say whether a
// delivery came.
func (l *repoLook) webhook(ctx context.Context, w doctor.Webhook) {
	settings := l.config.Gitea.Webhook
	if w.Receiver == "" {
		l.add(w.Judge(l.setting.String()))
		return
	}
	spec := gitea.HookSpec{URL: w.Receiver, Secret: settings.Secret}
	w.Running = l.pushes != nil
	w.Instructions = spec.Instructions()
	hooks, err := l.forge.Hooks(ctx, l.info.Repo)
	if err != nil {
		w.Fault, w.Refused = err.Error(), errors.Is(err, pull.ErrForbidden) || errors.Is(err, pull.ErrNotFound)
	}
	var try int64
	for _, h := range hooks {
		ours, sealed := spec.Fits(h)
		if !ours {
			continue
		}
		w.Hooks = append(w.Hooks, doctor.Hook{Active: h.Active, Sealed: sealed, Faults: h.Faults})
		if h.Active && len(h.Faults) == 0 && (try == 0 || sealed) {
			try = h.ID
		}
	}
	if try != 0 && w.Running {
		l.deliver(ctx, &w, try)
	}
	found := w.Judge(l.setting.String())
	l.add(found)
	if slices.ContainsFunc(found, func(f doctor.Finding) bool { return f.Fixable }) {
		l.out.fixes = append(l.out.fixes, fix{name: l.setting.String(), repo: l.info.Repo, hook: &spec, why: found[0].What})
	}
}

// deliver asks for a test delivery and waits for it.
func (l *repoLook) deliver(ctx context.Context, w *doctor.Webhook, id int64) {
	before, err := l.pushes(ctx, l.info.ID)
	if err == nil {
		err = l.forge.TestHook(ctx, l.info.Repo, id)
	}
	start := time.Now()
	for err == nil && w.Delivery == doctor.NotTried {
		var now uint64
		now, err = l.pushes(ctx, l.info.ID)
		w.Waited = time.Since(start)
		switch {
		case err != nil:
		case now != before:
			w.Delivery = doctor.Arrived
		case w.Waited > l.deliveryTime:
			w.Delivery = doctor.Lost
		default:
			select {
			case <-ctx.Done():
				err = context.Cause(ctx)
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	if err != nil {
		w.Delivery, w.DeliveryFault = doctor.Failed, err.Error()
	}
}

// base is a branch that the rules are about.
type base struct {
	name    string
	merging bool
}

// maxBases bounds the branches of one repository that are looked at.
const maxBases = 20

// policies judges the rules, and returns the branches that they are about.
func (l *repoLook) policies(ctx context.Context) []base {
	first := l.rules(ctx, l.info.DefaultBranch)
	l.judge(ctx, first)
	l.preconditions(ctx, first)
	bases := []base{{l.info.DefaultBranch, l.merges(first)}}
	for _, name := range l.named(ctx, first) {
		r := l.rules(ctx, name)
		if r.text != first.text || r.Fault != first.Fault {
			l.judge(ctx, r)
		}
		bases = append(bases, base{name, l.merges(r)})
	}
	return bases
}

// seenRules are the rules of a branch with the text they were read from.
type seenRules struct {
	doctor.Rules
	text string
}

// rules reads the policy file of a branch.
func (l *repoLook) rules(ctx context.Context, branch string) seenRules {
	r := seenRules{Rules: doctor.Rules{
		Base: branch, Operator: l.operator(), Owner: l.info.Owner, Bot: l.self.Login, Bots: l.config.Bots,
		Clusters: l.clusterNames(), Users: map[string]doctor.Lookup{}, Teams: map[string]doctor.Lookup{},
	}}
	text, err := l.forge.RawFile(ctx, l.info.Repo, branch, policy.Path)
	switch {
	case errors.Is(err, pull.ErrNotFound):
		return r
	case err != nil:
		r.Fault = err.Error()
		return r
	}
	r.text = string(text)
	pol, problems := policy.Load(policy.Path, text)
	for _, p := range problems {
		r.Invalid = append(r.Invalid, p.Error())
	}
	if pol != nil {
		f := pol.File()
		r.File = &f
		l.out.rules = append(l.out.rules, &f)
	}
	return r
}

// judge finds the people whom rules name and judges the rules.
func (l *repoLook) judge(ctx context.Context, r seenRules) {
	users, teams := doctor.People(l.info.Owner, r.Operator, r.File)
	for _, u := range users {
		found := l.people.user(ctx, u)
		if l.info.Private && l.info.Permission.AtLeast(pull.PermissionAdmin) && len(found.People) > 0 {
			p, err := l.forge.Permission(ctx, l.info.Repo, found.People[0].Login)
			found.NoAccess = err == nil && !p.AtLeast(pull.PermissionRead)
		}
		r.Users[u] = found
	}
	for _, t := range teams {
		org, team, _ := strings.Cut(t, "/")
		r.Teams[t] = l.people.team(ctx, org, team)
	}
	l.add(r.Judge(l.setting.String()))
}

// merges reports whether signalbox merges into a branch.
func (l *repoLook) merges(r seenRules) bool {
	for _, f := range []*policy.File{r.Operator, r.File} {
		if f != nil && f.Merge != nil && f.Merge.Enabled {
			return true
		}
	}
	return false
}

// named returns the branches beside the default one that rules name as a base.
func (l *repoLook) named(ctx context.Context, r seenRules) []string {
	var patterns []string
	for _, f := range []*policy.File{r.Operator, r.File} {
		if f == nil {
			continue
		}
		for _, p := range f.Preconditions {
			patterns = append(patterns, p.Base...)
		}
		for _, a := range f.Approvals {
			patterns = append(patterns, a.Base...)
		}
	}
	patterns = slices.DeleteFunc(patterns, func(p string) bool { return p == l.info.DefaultBranch })
	if len(patterns) == 0 {
		return nil
	}
	subject := l.setting.String()
	branches, err := l.forge.Branches(ctx, l.info.Repo)
	if err != nil {
		l.add([]doctor.Finding{{Check: "branches", Severity: doctor.Unknown, Subject: subject, What: "its branches cannot be read: " + err.Error()}})
		return nil
	}
	branches = slices.DeleteFunc(branches, func(b string) bool {
		return b == l.info.DefaultBranch || !slices.ContainsFunc(patterns, func(p string) bool {
			ok, err := doublestar.Match(p, b)
			return err == nil && ok
		})
	})
	slices.Sort(branches)
	if len(branches) > maxBases {
		l.add([]doctor.Finding{{
			Check: "branches", Severity: doctor.Info, Subject: subject,
			What: fmt.Sprintf("%d branches are bases of rules; the first %d of them were looked at", len(branches), maxBases),
		}})
		branches = branches[:maxBases]
	}
	return branches
}

// branch looks at what protects a branch.
func (l *repoLook) branch(ctx context.Context, on base) {
	b := doctor.Branch{
		Name: on.name, Observe: l.setting.Observe, Merging: on.merging, Bot: l.self.Login,
		Contexts: []string{render.PreconditionsContext(on.name), render.ApprovalContext(on.name)},
	}
	p, protected, err := l.forge.Protection(ctx, l.info.Repo, on.name)
	switch {
	case err != nil:
		b.Fault, b.Refused = err.Error(), errors.Is(err, pull.ErrForbidden)
	case protected:
		b.Protection = &p
	}
	l.add(b.Judge(l.setting.String()))
	if _, needed := b.Fix(); needed {
		l.out.fixes = append(l.out.fixes, fix{name: l.setting.String(), repo: l.info.Repo, branch: &b})
	}
}
