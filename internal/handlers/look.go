package handlers

import (
	"context"
	"fmt"

	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Look evaluates a pull request of any state once, as [Evaluator.Handle] does,
// and posts and keeps nothing. If instead is given, it stands for the policy of
// the base branch. Of the decisions, which may be the whole ledger, those about
// the pull request and the freezes of its repository count. Look needs the forge,
// the account, the people, the facts, the demand and the policies of the
// evaluator only.
func (e *Evaluator) Look(ctx context.Context, repo pull.Repo, number int64, instead *Document, decisions decision.Ledger) (*policy.Verdict, error) {
	p, err := e.Forge.Pull(ctx, repo, number)
	if err != nil {
		return nil, err
	}
	self, err := e.Account.Self(ctx)
	if err != nil {
		return nil, err
	}
	r := &run{Evaluator: e, repo: repo, observe: true, self: self, log: e.Log, pull: p, instead: instead}
	r.ledger, r.freezes = decisions.Of(pull.Ref{RepoID: repo.ID, Number: number}), decisions.OfRepo(repo.ID)
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
