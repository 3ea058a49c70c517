package main

import (
	"context"
	"errors"
	"time"

	"signalbox/internal/doctor"
	"signalbox/internal/pull"
)

// maxWorkflows bounds the workflows of one repository that are looked at.
const maxWorkflows = 20

// preconditions looks at what the rules of the default branch ask of Gitea, and
// notes what they ask of clusters about the repository.
func (l *repoLook) preconditions(ctx context.Context, r seenRules) {
	if r.File != nil {
		l.add(doctor.Windows(l.setting.String()+", policy on "+r.Base, r.File, time.Now()))
	}
	p := doctor.PipelinesOf(r.Operator, r.File)
	applied := doctor.AppliedAsks(l.clusterNames(), r.Operator, r.File)
	if len(p.Workflows)+len(p.Contexts)+len(applied) == 0 {
		return
	}
	tip, err := l.forge.Tip(ctx, l.info.Repo, r.Base)
	fault := ""
	if err != nil {
		fault = err.Error()
	}
	l.out.follows = map[string]follow{}
	for cluster, rules := range applied {
		l.out.follows[cluster] = follow{repo: l.info.Repo, branch: r.Base, tip: tip, rules: rules, fault: fault}
	}
	p.Branch, p.Actions, p.StatusesFault, p.RunsFault = r.Base, l.info.Actions, fault, fault
	if len(p.Workflows) > 0 && p.Actions {
		l.pipelines(ctx, tip, &p)
	}
	if len(p.Contexts) > 0 && tip != "" {
		statuses, err := l.forge.CommitStatuses(ctx, l.info.Repo, tip)
		if err != nil {
			p.StatusesFault = err.Error()
		}
		for _, s := range statuses.Statuses {
			p.Statuses = append(p.Statuses, s.Context)
		}
	}
	l.add(p.Judge(l.setting.String()))
}

// pipelines looks at the workflows: their files, their runs on the tip of the
// branch, which shows whether any can be read, and what runs them.
func (l *repoLook) pipelines(ctx context.Context, tip string, p *doctor.Pipelines) {
	for i := range p.Workflows {
		w := &p.Workflows[i]
		if i >= maxWorkflows {
			w.Fault = "there are too many to look at each"
			continue
		}
		_, err := l.forge.WorkflowFile(ctx, l.info.Repo, p.Branch, w.Name)
		switch {
		case errors.Is(err, pull.ErrNotFound):
			w.Absent = true
		case err != nil:
			w.Fault = err.Error()
		}
	}
	if tip != "" {
		if _, err := l.forge.WorkflowRuns(ctx, l.info.Repo, p.Workflows[0].Name, tip); err != nil {
			p.RunsFault, p.RunsRefused = err.Error(), refusedBy(err) || errors.Is(err, pull.ErrNotFound)
		}
	}
	actions, err := l.forge.ActionsOf(ctx, l.info.Repo)
	if err != nil {
		p.HiddenFault = err.Error()
		return
	}
	p.Runners = actions.RunnersProblem
	if p.Secrets, p.Variables, err = l.forge.Hidden(ctx, l.info.Repo); err != nil {
		p.HiddenFault = err.Error()
	}
}
