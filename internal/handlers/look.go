package handlers

import (
	"context"
	"fmt"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Look evaluates a pull request of any state once, as [Evaluator.Handle] does,
// and posts and keeps nothing. If instead is given, it stands for the policy of
// the base branch. Look needs the forge, the account, the facts, the demand and
// the policies of the evaluator only.
func (e *Evaluator) Look(ctx context.Context, repo pull.Repo, number int64, instead *Document) (*policy.Verdict, error) {
	p, err := e.Forge.Pull(ctx, repo, number)
	if err != nil {
		return nil, err
	}
	self, err := e.Account.Self(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{Evaluator: e, repo: repo, observe: true, self: self, log: e.Log, pull: p, instead: instead}
	inputs, err := r.read(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("look at %s#%d: %w", repo, number, err)
	}
	v, err := r.decide(ctx, &inputs, newFactLog(e.Facts))
	if err != nil {
		return nil, fmt.Errorf("look at %s#%d: %w", repo, number, err)
	}
	return &v, nil
}
