package pull

import (
	"strconv"
	"strings"
	"time"
)

// Repo names a repository. ID stays when the repository is renamed or moved.
type Repo struct {
	ID    int64  `json:"id"`
	Owner string `json:"owner"`
	Name  string `json:"name"`
}

// String returns "owner/name".
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Numbered returns "owner/name#number", as people write a pull request. Every line
// of the log about one has it as the value of "pull".
func (r Repo) Numbered(number int64) string { return r.String() + "#" + strconv.FormatInt(number, 10) }

// Ref names a pull request for as long as it exists.
type Ref struct {
	RepoID int64 `json:"repoId"`
	Number int64 `json:"number"`
}

// String returns "repository id.number", which is also the key of the pull
// request on the bus.
func (r Ref) String() string {
	return strconv.FormatInt(r.RepoID, 10) + "." + strconv.FormatInt(r.Number, 10)
}

// ParseRef reads the form of [Ref.String], and reports whether it is one. A pull
// request has one spelling, as it is a key.
func ParseRef(s string) (Ref, bool) {
	repo, number, ok := strings.Cut(s, ".")
	r, errRepo := strconv.ParseInt(repo, 10, 64)
	n, errNumber := strconv.ParseInt(number, 10, 64)
	ref := Ref{RepoID: r, Number: n}
	if !ok || errRepo != nil || errNumber != nil || r <= 0 || n <= 0 || ref.String() != s {
		return Ref{}, false
	}
	return ref, true
}

// Person is an account of the forge. ID is zero for an account that is gone.
type Person struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// Is reports whether two accounts are one: by ID where both have one, else by
// login, which is case-insensitive in Gitea.
func (p Person) Is(o Person) bool {
	if p.ID != 0 && o.ID != 0 {
		return p.ID == o.ID
	}
	return p.Login != "" && strings.EqualFold(p.Login, o.Login)
}

// State is whether a pull request is open.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Closed State = "closed"
	Merged State = "merged"
)

// Pull is a pull request as the forge tells it.
type Pull struct {
	Repo   Repo     `json:"repo"`
	Number int64    `json:"number"`
	Title  string   `json:"title"`
	Body   string   `json:"body,omitempty"`
	URL    string   `json:"url"`
	Author Person   `json:"author"`
	State  State    `json:"state"`
	Draft  bool     `json:"draft,omitempty"`
	Labels []string `json:"labels,omitempty"`
	// Head and Base are the branches and the commits they point at now.
	Head Branch `json:"head"`
	Base Branch `json:"base"`
	// MergeBase is the commit that the diff is taken against.
	MergeBase string `json:"mergeBase"`
	// MergedBy and MergeCommit tell who merged it and the commit that the base
	// got by it; zero until then.
	MergedBy    Person `json:"mergedBy,omitzero"`
	MergeCommit string `json:"mergeCommit,omitempty"`
	// Comments is the number of comments on it when it was read.
	Comments  int       `json:"comments"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Ref returns the name of the pull request.
func (p Pull) Ref() Ref { return Ref{RepoID: p.Repo.ID, Number: p.Number} }

// Branch is one end of a pull request.
type Branch struct {
	// Repo is "owner/name", or empty when the fork was deleted.
	Repo string `json:"repo,omitempty"`
	Name string `json:"name"`
	SHA  string `json:"sha"`
}

// Change is what happened to a file.
type Change string

// What can happen to a file, in the words of Gitea. Unchanged is a change of
// mode or of binary content only: it still counts as a change.
const (
	Added     Change = "added"
	Modified  Change = "modified"
	Deleted   Change = "deleted"
	Renamed   Change = "renamed"
	Copied    Change = "copied"
	Unchanged Change = "unchanged"
)

// File is a changed file.
type File struct {
	Path string `json:"path"`
	// Previous is the old path of a renamed file, else empty.
	Previous string `json:"previous,omitempty"`
	Change   Change `json:"change"`
}

// Paths returns the names a file has or had: a rename out of a folder touches
// that folder.
func (f File) Paths() []string {
	if f.Previous == "" || f.Previous == f.Path {
		return []string{f.Path}
	}
	return []string{f.Path, f.Previous}
}

// ReviewState is the word of a review.
type ReviewState string

// The words of a review that signalbox knows.
const (
	Approved         ReviewState = "approved"
	ChangesRequested ReviewState = "changes-requested"
	Commented        ReviewState = "commented"
	Pending          ReviewState = "pending"
	Requested        ReviewState = "requested"
)

// Review is a review as the forge tells it now.
type Review struct {
	ID     int64       `json:"id"`
	Author Person      `json:"author"`
	State  ReviewState `json:"state"`
	Body   string      `json:"body,omitempty"`
	// Commit is the head it was given on.
	Commit      string    `json:"commit"`
	SubmittedAt time.Time `json:"submittedAt"`
	Dismissed   bool      `json:"dismissed,omitempty"`
	Official    bool      `json:"official,omitempty"`
}

// Moment is an entry of the pull request's timeline that can give, take or void
// a decision. Entries are in the order of the server, which alone orders them.
type Moment struct {
	Kind MomentKind `json:"kind"`
	// ReviewID is set on a [MomentReview].
	ReviewID int64 `json:"reviewId,omitempty"`
	// CommentID is set on a [MomentComment], and on a [MomentReview], whose text
	// takes reactions under this id although it is no comment.
	CommentID int64 `json:"commentId,omitempty"`
	// Commits are what a [MomentPush] brought, oldest first, as far as the forge
	// still names them; for a forced push the old and the new head.
	Commits []string `json:"commits,omitempty"`
	Forced  bool     `json:"forced,omitempty"`
	// From and To are the branches of a [MomentRetarget].
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// MomentKind names what happened.
type MomentKind string

// The entries that matter; the forge's other entries are left out.
const (
	MomentReview   MomentKind = "review"
	MomentComment  MomentKind = "comment"
	MomentPush     MomentKind = "push"
	MomentRetarget MomentKind = "retarget"
)

// Status is a commit status. Statuses belong to a commit, not to a pull
// request.
type Status struct {
	ID          int64  `json:"id"`
	Context     string `json:"context"`
	State       string `json:"state"`
	Description string `json:"description"`
	// Creator is the zero Person where the forge names nobody.
	Creator Person `json:"creator"`
}

// Comment is a comment on a pull request.
type Comment struct {
	ID        int64     `json:"id"`
	Author    Person    `json:"author"`
	Body      string    `json:"body"`
	URL       string    `json:"url"`
	CreatedAt time.Time `json:"createdAt"`
	UpdatedAt time.Time `json:"updatedAt"`
}

// Snapshot is all that a policy reads of a pull request, read at one moment.
// The file list is complete: a reader that cannot complete it gives an error.
type Snapshot struct {
	Pull    Pull     `json:"pull"`
	Files   []File   `json:"files"`
	Reviews []Review `json:"reviews,omitempty"`
	// Timeline is read only when there is a review that could count.
	Timeline []Moment `json:"timeline,omitempty"`
	// Diffs maps a head commit to the identity of the diff that it had when it
	// was the head. It holds the heads that reviews were given on and the
	// current one, as far as they were seen.
	Diffs  map[string]Diff `json:"diffs,omitempty"`
	ReadAt time.Time       `json:"readAt"`
}
