package pull

import "errors"

// MergeOptions say how a pull request is merged.
type MergeOptions struct {
	// Method is merge, rebase, rebase-merge, squash or fast-forward-only; empty
	// means merge. The repository must allow it.
	Method string
	// Head is the commit that must be the head, in full. It is required: a push
	// in between makes the merge fail instead of merging what nobody looked at.
	Head string
	// Title and Message are the two parts of the commit's message. Where Title
	// is empty, the forge makes one.
	Title   string
	Message string
}

// Why a pull request was not merged, to be asked with [errors.Is]. After each
// of them, except [ErrOutcomeUnknown] and [ErrAlreadyMerged], nothing was
// merged.
var (
	// ErrHeadMoved means that the head is no longer the commit that was to be
	// merged.
	ErrHeadMoved = errors.New("the head moved")
	// ErrStillChecking means that the forge could not merge at this moment, but
	// can soon or already: it was looking for conflicts, or the base moved while
	// it merged. Whoever wants to merge reads everything again and tries again.
	ErrStillChecking = errors.New("the forge is not ready yet")
	// ErrMergeConflict means that the change does not fit on the base. It needs
	// a push, or another base.
	ErrMergeConflict = errors.New("merge conflict")
	// ErrNotAllowed means that the forge refuses: by protection of the branch,
	// missing approvals or statuses, a draft, a closed pull request, an archived
	// repository, a method that is switched off. The error tells the forge's
	// words.
	ErrNotAllowed = errors.New("merge not allowed")
	// ErrAlreadyMerged means that it is merged already, by whomever.
	ErrAlreadyMerged = errors.New("already merged")
	// ErrOutcomeUnknown means that the forge may have merged or not: no answer
	// came, or one that leaves it open. Whoever wants to know looks.
	ErrOutcomeUnknown = errors.New("outcome of the merge unknown")
)
