package handlers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// maxRounds bounds how often a verdict may ask for more answers. One round
// answers all questions that the facts raise; another is only needed if a
// policy asks more once it has them.
const maxRounds = 4

// decide evaluates inputs with the facts of now, and answers the questions of
// ancestry that come up. The answers are kept in the inputs.
func (r *run) decide(ctx context.Context, in *Inputs, facts *factLog) (policy.Verdict, error) {
	input := r.input(in, facts)
	for range maxRounds {
		verdict := policy.Evaluate(input)
		verdict.Notes = in.Notes
		if len(verdict.Asks) == 0 {
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

func (r *run) ancestry(ctx context.Context, ask policy.Ask) (policy.Answer, error) {
	contained, err := r.Forge.Contains(ctx, r.repo, ask.Applied, ask.Needed)
	switch {
	case errors.Is(err, pull.ErrUnknownCommit):
		return policy.Foreign, nil
	case err != nil:
		return "", fmt.Errorf("ask whether %s contains %s: %w", ask.Applied, ask.Needed, err)
	case contained:
		return policy.Contained, nil
	default:
		return policy.NotContained, nil
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
