package precondition

import (
	"fmt"
	"slices"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// Facts is where facts are looked up. It must not change during an evaluation
// in a way that one key gives two answers.
type Facts interface {
	Lookup(fact.Key) (fact.Fact, bool)
	// Select returns the facts of a kind, sorted by key, absent ones included.
	Select(source, scope, kind string) []fact.Fact
}

// Evaluation is what preconditions read from, and what they read. Make one with
// its first fields for each evaluation of a pull request.
type Evaluation struct {
	Snapshot *pull.Snapshot
	Facts    Facts
	// Answers holds what is known of ancestry.
	Answers map[Ask]Answer
	// Clusters are the names of all configured clusters.
	Clusters []string
	Now      time.Time
	// Collected, if set, says which of the facts that are collected on demand may
	// be looked at; no other is wished for.
	Collected func(fact.Key) bool

	reads     []fact.Key
	read      map[fact.Key]bool
	kinds     map[fact.Key][]fact.Fact
	wishes    []fact.Wish
	asks      []Ask
	lookAgain time.Time
}

// Reads are the facts that were looked up, present or not, without repetition.
// A key without a name is of every fact of its kind.
func (e *Evaluation) Reads() []fact.Key { return e.reads }

// Wishes are those of the facts that are collected only while they are wished
// for.
func (e *Evaluation) Wishes() []fact.Wish { return e.wishes }

// Asks are the questions of ancestry that had no answer.
func (e *Evaluation) Asks() []Ask { return e.asks }

// LookAgain is when time alone may change what was found; zero for never.
func (e *Evaluation) LookAgain() time.Time { return e.lookAgain }

func (e *Evaluation) note(k fact.Key) (first bool) {
	if e.read[k] {
		return false
	}
	if e.read == nil {
		e.read = map[fact.Key]bool{}
	}
	e.read[k] = true
	e.reads = append(e.reads, k)
	return true
}

// Fact looks a fact up and notes that it was read. An absent fact is not found.
func (e *Evaluation) Fact(k fact.Key) (fact.Fact, bool) {
	e.note(k)
	f, ok := e.Facts.Lookup(k)
	return f, ok && !f.Absent
}

// each returns the facts of a kind on a cluster, and notes that all were read.
func (e *Evaluation) each(cluster, kind string) []fact.Fact {
	all := fact.Kube(cluster, kind, "", "")
	if !e.note(all) {
		return e.kinds[all]
	}
	facts := slices.DeleteFunc(e.Facts.Select(fact.SourceKube, cluster, kind), func(f fact.Fact) bool {
		return f.Absent || f.Key.Name == ""
	})
	if e.kinds == nil {
		e.kinds = map[fact.Key][]fact.Fact{}
	}
	e.kinds[all] = facts
	return facts
}

// wished looks up a fact that is collected on demand. What names it for people.
// Ok is false where nothing can be said, and the finding says why.
func (e *Evaluation) wished(w fact.Wish, what string) (f fact.Fact, finding Check, ok bool) {
	if e.Collected != nil && !e.Collected(w.Key) {
		return f, Check{State: Unknown, Reason: what + " is read once the policy is merged; bot check --policy reads it before"}, false
	}
	if e.note(w.Key) {
		e.wishes = append(e.wishes, w)
	}
	f, ok = e.Facts.Lookup(w.Key)
	switch {
	case !ok || f.Absent:
		return f, Check{State: Unknown, Reason: what + " has not been read yet"}, false
	case f.Problem != "":
		return f, Check{
			State: Unknown, Since: f.Since, ReadAt: f.SeenAt,
			Reason: fmt.Sprintf("%s cannot be read since %s: %s", what, stamp(f.Since), oneLine(f.Problem)),
		}, false
	}
	return f, Check{ReadAt: f.SeenAt}, true
}

// contains answers a question of ancestry; ok is false while nobody knows.
func (e *Evaluation) contains(a Ask) (answer Answer, ok bool) {
	if a.Applied == a.Needed {
		return Contained, true
	}
	if answer, ok = e.Answers[a]; !ok && !slices.Contains(e.asks, a) {
		e.asks = append(e.asks, a)
	}
	return answer, ok
}

// Again notes a time at which what was found may change by itself.
func (e *Evaluation) Again(t time.Time) {
	if t.After(e.Now) && (e.lookAgain.IsZero() || t.Before(e.lookAgain)) {
		e.lookAgain = t
	}
}

// onEach asks about each target cluster that is heard from.
func (e *Evaluation) onEach(clusters []string, ask func(cluster string) Check) []Check {
	if len(clusters) == 0 {
		return []Check{{State: Unknown, Reason: "signalbox watches no cluster, so nobody can tell"}}
	}
	checks := make([]Check, len(clusters))
	for i, cluster := range clusters {
		finding, heard := e.heard(cluster)
		if heard {
			finding = ask(cluster)
		}
		finding.Cluster = cluster
		checks[i] = finding
	}
	return checks
}

// heard reports whether a cluster is configured and heard from, and if not, a
// finding that says so.
func (e *Evaluation) heard(cluster string) (Check, bool) {
	if !slices.Contains(e.Clusters, cluster) {
		return Check{State: Unknown, Reason: fmt.Sprintf("the policy names cluster %s, which signalbox does not watch", cluster)}, false
	}
	beat, ok := e.Fact(fact.HeartbeatKey(cluster))
	switch {
	case !ok || beat.Heartbeat == nil || (beat.Heartbeat.Silent && beat.Heartbeat.LastHeard.IsZero()):
		return Check{State: Unknown, Reason: fmt.Sprintf("cluster %s has not been heard from yet", cluster)}, false
	case beat.Heartbeat.Silent:
		heard := beat.Heartbeat.LastHeard
		return Check{State: Unknown, Since: heard, Reason: fmt.Sprintf("nothing has been heard from cluster %s since %s", cluster, stamp(heard))}, false
	}
	return Check{}, true
}

// synced reports whether a watch has shown everything, and if not, a finding
// that says why. What is the plural of what is watched.
func synced(w fact.Watch, what, cluster string) (Check, bool) {
	finding := Check{State: Unknown, Since: w.Since}
	switch w.State {
	case fact.WatchSynced:
		return Check{}, true
	case fact.WatchNotInstalled:
		finding.Reason = fmt.Sprintf("cluster %s has no %s", cluster, what)
		if w.Message != "" {
			finding.Reason += ": " + oneLine(w.Message)
		}
	case fact.WatchSyncing:
		finding.Reason = fmt.Sprintf("the list of %s on %s has not arrived yet", what, cluster)
	default:
		finding.Reason = fmt.Sprintf("%s on %s cannot be watched since %s: %s", what, cluster, stamp(w.Since), oneLine(w.Message))
	}
	return finding, false
}
