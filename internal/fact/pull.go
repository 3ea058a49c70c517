package fact

import (
	"strconv"
	"strings"
	"time"
)

// PullKey returns the key of the [Pull] fact of a pull request. Owner and name
// of the repository are in any letter case.
func PullKey(owner, name string, number int64) Key {
	return Key{
		Source: SourceGitea, Kind: KindPull,
		Namespace: strings.ToLower(owner + "/" + name), Name: strconv.FormatInt(number, 10),
	}
}

// Pull is another pull request that one depends on.
type Pull struct {
	// Repo is "owner/name" as Gitea spells it, RepoID its id.
	Repo   string `json:"repo"`
	RepoID int64  `json:"repoId"`
	Number int64  `json:"number"`
	Title  string `json:"title"`
	URL    string `json:"url"`
	// State is open, closed or merged.
	State string `json:"state"`
	Base  string `json:"base"`
	// MergeCommit is the commit that the base got by merging it, and MergedAt
	// when; zero until then.
	MergeCommit string    `json:"mergeCommit,omitempty"`
	MergedAt    time.Time `json:"mergedAt,omitzero"`
	// Body is its description, cut at [MaxBody] bytes.
	Body string `json:"body,omitempty"`
}

// MaxBody bounds the description that a [Pull] keeps, in bytes. Dependencies
// stand in the first lines.
const MaxBody = 16 << 10

// States of a pull request, in the words of a [Pull].
const (
	PullOpen   = "open"
	PullClosed = "closed"
	PullMerged = "merged"
)
