package decision

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/pull"
)

// Kind is what an entry does.
type Kind string

// The kinds of entries.
const (
	Approve        Kind = "approve"
	ApproveCancel  Kind = "approve-cancel"
	Override       Kind = "override"
	OverrideCancel Kind = "override-cancel"
	Hold           Kind = "hold"
	Unhold         Kind = "unhold"
	// Freeze stops every pull request of the repository, and Unfreeze lifts that.
	Freeze      Kind = "freeze"
	Unfreeze    Kind = "unfreeze"
	Merge       Kind = "merge"
	MergeCancel Kind = "merge-cancel"
	// Merged and MergeFailed end a [Merge].
	Merged      Kind = "merged"
	MergeFailed Kind = "merge-failed"
	// Link says that an account of a chat is the person's, and Unlink that it is
	// not any more. Both act everywhere.
	Link   Kind = "link"
	Unlink Kind = "unlink"
	// Refused is a command that was not carried out; it decides nothing.
	Refused Kind = "refused"
	// Answered is a command that only asked; it decides nothing.
	Answered Kind = "answered"
	// Edited is that somebody edited another's comment; it decides nothing, but
	// what the comment says from then on counts for nothing either.
	Edited Kind = "edited"
)

// Kinds are all kinds, for filters and help.
func Kinds() []Kind {
	return []Kind{
		Approve, ApproveCancel, Override, OverrideCancel, Hold, Unhold, Freeze, Unfreeze,
		Merge, MergeCancel, Merged, MergeFailed, Link, Unlink, Refused, Answered, Edited,
	}
}

// Entry is one line of the ledger.
type Entry struct {
	// ID names the cause, such as "comment/123/0": the first command of a
	// comment. The ledger keeps one entry for an ID.
	ID   string      `json:"id"`
	Kind Kind        `json:"kind"`
	By   pull.Person `json:"by"`
	// Place is where the person said it, such as "comment" or "review"; URL
	// leads there, or is empty.
	Place string `json:"place"`
	URL   string `json:"url,omitempty"`
	// User is the account of a chat, as "platform/id": the one that said it, or
	// that a [Link] is about; empty for what was said in Gitea.
	User string `json:"user,omitempty"`
	// Command is the line as it was written.
	Command string `json:"command,omitempty"`

	Repo   pull.Repo `json:"repo"`
	Number int64     `json:"number"`
	Base   string    `json:"base"`
	Head   string    `json:"head"`
	// Diff is the identity of the diff, where the decision may survive a push.
	Diff *pull.Diff `json:"diff,omitempty"`
	// Retargets is how often the base had been changed before.
	Retargets int `json:"retargets,omitempty"`
	// Reviews are the ids of the reviews that the person had submitted before:
	// the decision is later than those.
	Reviews []int64 `json:"reviews,omitempty"`

	// At is when the person acted, by the clock of the place, in UTC.
	At time.Time `json:"at"`
	// Reason is what the person gave, or why a command was refused.
	Reason string `json:"reason,omitempty"`
	// Passes are the rules that an [Override] passes: those that were open.
	Passes []string `json:"passes,omitempty"`
	// Until is when an [Override] or a [Freeze] ends by itself.
	Until time.Time `json:"until,omitzero"`
	// Lifts are the ids of the holds that an [Unhold] lifts, or of the freezes
	// that an [Unfreeze] lifts.
	Lifts []string `json:"lifts,omitempty"`

	// Seq is the place in the ledger, from 1; the ledger sets it.
	Seq uint64 `json:"-"`
}

// CommentID begins the ids of the entries that a comment causes.
func CommentID(comment int64) string { return fmt.Sprintf("comment/%d", comment) }

// EditID is the id of the [Edited] entry of a comment.
func EditID(comment int64) string { return CommentID(comment) + "/touched" }

// Ref names the pull request.
func (e Entry) Ref() pull.Ref { return pull.Ref{RepoID: e.Repo.ID, Number: e.Number} }

// Check reports what an entry lacks.
func (e Entry) Check() error {
	switch {
	case e.ID == "":
		return errors.New("decision has no id")
	case !slices.Contains(Kinds(), e.Kind):
		return fmt.Errorf("decision %s: unknown kind %q", e.ID, e.Kind)
	case e.Repo.ID <= 0 || e.Number <= 0:
		return fmt.Errorf("decision %s names no pull request", e.ID)
	case e.By.ID <= 0:
		return fmt.Errorf("decision %s names no person", e.ID)
	case (e.Kind == Link || e.Kind == Unlink) && e.User == "":
		return fmt.Errorf("decision %s names no account of a chat", e.ID)
	case e.At.IsZero():
		return fmt.Errorf("decision %s has no time", e.ID)
	case e.Kind == Freeze && !e.Until.After(e.At):
		return fmt.Errorf("decision %s: a freeze that does not end after it begins", e.ID)
	}
	return nil
}
