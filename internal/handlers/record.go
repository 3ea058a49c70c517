package handlers

import (
	"context"
	"iter"
	"time"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Record is what is kept of an open pull request between evaluations. It can
// be rebuilt from the forge; what is lost with it is only which diffs were seen
// on earlier heads, and an approval that depends on one is void then.
type Record struct {
	// Seen is where the pull request was when it was last looked at. It is kept
	// before anything else is read or posted, so that what happens meanwhile
	// finds the pull request.
	Seen    Place          `json:"seen,omitzero"`
	Inputs  Inputs         `json:"inputs"`
	Verdict policy.Verdict `json:"verdict"`
	Posted  Posted         `json:"posted"`
	// History is how the verdict changed, the oldest first; see [policy.MaxHistory].
	History []policy.Change `json:"history,omitempty"`
	// Answered are the places whose commands were dealt with and answered.
	Answered []string `json:"answered,omitempty"`
	// Heard are the comments with commands that are about to be acted upon.
	Heard map[string]Heard `json:"heard,omitempty"`
	// EvaluatedAt is when the verdict was made; zero while there is none.
	EvaluatedAt time.Time `json:"evaluatedAt"`
}

// Place is what an event finds a pull request by.
type Place struct {
	Ref pull.Ref `json:"ref"`
	// Base is the name of a branch, Head a commit.
	Base string `json:"base"`
	Head string `json:"head"`
}

func placeOf(p *pull.Pull) Place { return Place{Ref: p.Ref(), Base: p.Base.Name, Head: p.Head.SHA} }

// place is where the pull request was last seen.
func (r *Record) place() Place {
	if r.Seen.Ref.Number == 0 {
		return placeOf(&r.Inputs.Snapshot.Pull)
	}
	return r.Seen
}

// Inputs is all that a verdict follows from, apart from facts and time.
type Inputs struct {
	Snapshot pull.Snapshot `json:"snapshot"`
	// Policy is the file of the base branch, Proposal that of the head if the
	// pull request changes it; nil for no file.
	Policy   *Document `json:"policy,omitempty"`
	Proposal *Document `json:"proposal,omitempty"`
	// Proposes says that the pull request changes or removes the policy.
	Proposes bool `json:"proposes,omitempty"`
	// Teams are the teams that the policies name, by [policy.TeamKey].
	Teams map[string]policy.Team `json:"teams,omitempty"`
	// Accounts are those who decided, as they are called now.
	Accounts map[int64]pull.Person `json:"accounts,omitempty"`
	// Answers are what is known of ancestry.
	Answers  []Answered       `json:"answers,omitempty"`
	Problems []policy.Problem `json:"problems,omitempty"`
	// Notes are shown beside the verdict while the head stays.
	Notes []string `json:"notes,omitempty"`
}

// Heard is what a comment said when it was first read.
type Heard struct {
	// Sum identifies the text.
	Sum string    `json:"sum"`
	At  time.Time `json:"at"`
}

// Document is the text of a policy and its name for people.
type Document struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Answered is the answer to a question of ancestry.
type Answered struct {
	policy.Ask
	Answer policy.Answer `json:"answer"`
}

// Posted is what signalbox last put on the pull request.
type Posted struct {
	// Head is the commit that the statuses are on.
	Head string `json:"head,omitempty"`
	// Statuses are by context.
	Statuses map[string]pull.Status `json:"statuses,omitempty"`
	// Unsure is set while something is put there: whoever finds it set does not
	// know how far that came.
	Unsure bool `json:"unsure,omitempty"`
	// CommentID is zero while there is no comment, or it is not known.
	CommentID int64 `json:"commentId,omitempty"`
	// CommentSum identifies the text of the comment.
	CommentSum string `json:"commentSum,omitempty"`
}

// Records is where records are kept, by [pull.Ref.String].
type Records interface {
	// Get reads the view in memory; a revision of 0 means that there is none.
	Get(key string) (r Record, revision uint64, ok bool)
	// Put writes if the revision is still the stored one.
	Put(ctx context.Context, key string, r Record, revision uint64) (uint64, error)
	Delete(ctx context.Context, key string) error
	All() iter.Seq2[string, Record]
	// Sync waits until the view holds all that was written before the call.
	Sync(ctx context.Context) error
}
