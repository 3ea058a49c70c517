package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
	"signalbox/internal/pull"
)

// maxRounds bounds how often a verdict may ask for more. One round answers all
// that the facts raise; another is only needed if a policy asks more once it
// has them, as of a pull request that depends on one that depends on another.
const maxRounds = 8

// decide evaluates inputs with the facts of now. It sees to it that the facts
// that the verdict wishes for are collected, and answers the questions of
// ancestry that come up. The answers are kept in the inputs.
func (r *run) decide(ctx context.Context, in *Inputs, facts *factLog) (policy.Verdict, error) {
	input := r.input(in, facts)
	wished := map[fact.Key]bool{}
	for round := range maxRounds {
		// Collecting may have taken a while.
		input.Now = r.Now()
		verdict := policy.Evaluate(input)
		verdict.Notes = in.Notes
		more, err := r.collect(ctx, verdict.Wishes, wished, facts)
		if err != nil {
			return policy.Verdict{}, err
		}
		// What was not read by the last round is unknown, and says so.
		if len(verdict.Asks) == 0 && (!more || round == maxRounds-1) {
			return verdict, nil
		}
		for _, ask := range verdict.Asks {
			answer, err := r.ancestry(ctx, ask)
			if err != nil {
				return policy.Verdict{}, err
			}
			input.Answers[ask] = answer
			in.Answers = append(in.Answers, Answered{ask, answer})
		}
	}
	return policy.Verdict{}, errors.New("the policy asks more and more questions of ancestry")
}

// collect sees to the wishes that this evaluation did not have before, and
// reports whether any fact has to be looked up again for it.
func (r *run) collect(ctx context.Context, wishes []fact.Wish, wished map[fact.Key]bool, facts *factLog) (more bool, err error) {
	var fresh []fact.Wish
	for _, w := range wishes {
		if !wished[w.Key] {
			wished[w.Key] = true
			fresh = append(fresh, w)
		}
	}
	if len(fresh) == 0 {
		return false, nil
	}
	began, err := r.Demand.Collect(ctx, fresh)
	if err != nil {
		return false, fmt.Errorf("collect facts: %w", err)
	}
	if len(began) == 0 {
		return false, nil
	}
	if err := r.Facts.Sync(ctx); err != nil {
		return false, fmt.Errorf("look at the collected facts: %w", err)
	}
	for _, k := range began {
		facts.forget(k)
	}
	return true, nil
}

func (r *run) ancestry(ctx context.Context, ask policy.Ask) (policy.Answer, error) {
	repo := r.repo
	if ask.Repo != "" {
		owner, name, _ := strings.Cut(ask.Repo, "/")
		repo = pull.Repo{Owner: owner, Name: name}
	}
	contained, err := r.Forge.Contains(ctx, repo, ask.Applied, ask.Needed)
	switch {
	case errors.Is(err, pull.ErrUnknownCommit):
		return precondition.Foreign, nil
	case err != nil:
		return "", fmt.Errorf("ask whether %s contains %s: %w", ask.Applied, ask.Needed, err)
	case contained:
		return precondition.Contained, nil
	default:
		return precondition.NotContained, nil
	}
}

// input puts the inputs of a record in the form of the policy. A policy of the
// base branch that is not valid blocks.
func (r *run) input(in *Inputs, facts *factLog) policy.Input {
	input := policy.Input{
		Snapshot: &in.Snapshot,
		Operator: r.Policies.operator,
		Facts:    facts,
		Answers:  map[policy.Ask]policy.Answer{},
		Teams:    in.Teams,

		Decisions: r.ledger,
		Freezes:   r.freezes,
		Accounts:  in.Accounts,

		Clusters: r.Clusters,
		Bots:     append(slices.Clone(r.Bots), r.self),
		Problems: slices.Clone(in.Problems),
		Now:      r.Now(),
	}
	for _, a := range in.Answers {
		input.Answers[a.Ask] = a.Answer
	}
	var problems []string
	input.Repository, problems = r.Policies.compile(in.Policy)
	if len(problems) > 0 {
		input.Problems = append(input.Problems, policy.Problem{
			State: policy.Blocked,
			Text: fmt.Sprintf("the policy on %s is not valid, so nothing can pass; mend it first\n%s",
				in.Snapshot.Pull.Base.Name, strings.Join(problems, "\n")),
		})
	}
	if in.Proposes {
		proposal := &policy.Proposal{}
		proposal.Policy, proposal.Problems = r.Policies.compile(in.Proposal)
		input.Proposal = proposal
	}
	return input
}
