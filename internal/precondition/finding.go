package precondition

import "time"

// State is the state of one rule, or of one finding of it.
type State string

// The states of a rule.
const (
	Met           State = "met"
	NotApplicable State = "not-applicable"
	Unknown       State = "unknown"
	Unmet         State = "unmet"
	// Overridden: unmet or unknown, and passed by an override.
	Overridden State = "overridden"
)

var rank = map[State]int{NotApplicable: 0, Met: 1, Overridden: 2, Unknown: 3, Unmet: 4}

// Open reports whether a rule keeps its gate from being clear.
func (s State) Open() bool { return s == Unmet || s == Unknown }

// Worse orders states: it is negative if a is better than b, and positive if it
// is worse.
func Worse(a, b State) int { return rank[a] - rank[b] }

// Check is one finding of a precondition, such as on one cluster.
type Check struct {
	// Cluster is empty for what concerns none.
	Cluster string `json:"cluster,omitempty"`
	State   State  `json:"state"`
	// Reason is one line in plain words: why the state is what it is. Brief is
	// the same for where there is little room, or empty.
	Reason string `json:"reason"`
	Brief  string `json:"brief,omitempty"`
	// Since is when it came into this state; zero if not known.
	Since time.Time `json:"since,omitzero"`
	// ReadAt is when what decided it was read from its source; zero if that says
	// nothing, as for a window of the clock.
	ReadAt time.Time `json:"readAt,omitzero"`
	// Looked is how much was looked at, where that changes all the time and
	// matters little, such as the number of objects; or empty. It is no part of
	// what the finding says.
	Looked   string     `json:"looked,omitempty"`
	Evidence []Evidence `json:"evidence,omitempty"`
}

// Evidence is one thing that was looked at.
type Evidence struct {
	Label string `json:"label"`
	// Value may have many lines and comes from outside: escape it.
	Value string `json:"value,omitempty"`
	// Parts are what it is made of.
	Parts []Evidence `json:"parts,omitempty"`
}

// evidence collects pieces of evidence; those without a value are left out.
type evidence []Evidence

func (ev *evidence) add(label, value string) {
	if value != "" {
		*ev = append(*ev, Evidence{Label: label, Value: value})
	}
}

func (ev *evidence) addTime(label string, t time.Time) {
	if !t.IsZero() {
		ev.add(label, stamp(t))
	}
}

func (ev *evidence) addParts(label, value string, parts []Evidence) {
	if len(parts) > 0 {
		*ev = append(*ev, Evidence{Label: label, Value: value, Parts: parts})
	}
}

// Ask is a question of ancestry: does the history of Applied contain Needed?
// Both are full commit ids.
type Ask struct {
	// Repo is "owner/name", or empty for the repository of the pull request.
	Repo    string `json:"repo,omitempty"`
	Applied string `json:"applied"`
	Needed  string `json:"needed"`
}

// Answer is what is known of an [Ask].
type Answer string

// The answers to an [Ask].
const (
	Contained    Answer = "contained"
	NotContained Answer = "not-contained"
	// Foreign: the repository does not have the applied commit.
	Foreign Answer = "foreign"
)
