package renovate

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/fact"
)

// Word is the mode in the words of facts, which are the same.
func (m Mode) Word() string { return string(cmp.Or(m, ModeUnknown)) }

// Keep bounds what a fact keeps of runs.
type Keep struct {
	// Proof bounds proofs and failures, each; Branches branches and pull requests.
	Proof, Branches int
}

// Add adds to a fact, whose mode is set, what one run did. What is of another
// repository than own is marked so; an empty own marks all.
func (k Keep) Add(out *fact.RenovateRun, run Run, own string) {
	out.Version = cmp.Or(out.Version, run.Version)
	for _, f := range run.Failures {
		out.Failures = appendText(out.Failures, f.text(), k.Proof)
	}
	for _, r := range run.Repositories {
		k.addRepository(out, r, own)
	}
}

func (k Keep) addRepository(out *fact.RenovateRun, r Repository, own string) {
	mark := r.Name + ": "
	if own != "" && strings.EqualFold(r.Name, own) {
		mark = ""
	}
	proof := r.Proof
	if out.Mode == fact.RenovateLive {
		proof = r.Disproof
	}
	for _, e := range proof {
		out.Proof = appendText(out.Proof, fmt.Sprintf("%sline %d: %s", mark, e.Line, e.Text), k.Proof)
	}
	for _, f := range r.Failures {
		out.Failures = appendText(out.Failures, mark+f.text(), k.Proof)
	}
	for _, b := range r.Branches {
		out.Branches = appendText(out.Branches, mark+b.Name, k.Branches)
		switch {
		case b.Pull != 0:
			out.Pulls = appendText(out.Pulls, strings.TrimSpace(fmt.Sprintf("%s#%d %s", mark, b.Pull, b.Title)), k.Branches)
		case b.Title != "":
			out.Pulls = appendText(out.Pulls, mark+b.Title, k.Branches)
		}
	}
	if len(r.Updates) > 0 && out.Updates == nil {
		out.Updates = map[string]int{}
	}
	for _, kind := range slices.Sorted(maps.Keys(r.Updates)) {
		out.Updates[kind] += r.Updates[kind]
	}
}

func (f Failure) text() string {
	if f.Detail == "" {
		return f.Message
	}
	return f.Message + ": " + f.Detail
}

// appendText adds a text that is not there yet, up to a limit.
func appendText(list []string, text string, limit int) []string {
	if len(list) >= limit || slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
