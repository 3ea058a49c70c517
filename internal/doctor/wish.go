package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/fact"
	"signalbox/internal/policy"
	"signalbox/internal/precondition"
)

// Wished is what preconditions read of a cluster beside Flux's objects while a
// pull request asks about it, and what digests and alerts read.
type Wished struct {
	fact.Wish
	// For are the names of the preconditions, or [ForDigests].
	For []string
	// Assumed says that nobody named it: that it is not there is no finding.
	Assumed bool
}

// ForDigests stands for the name of what reads something for digests and alerts.
const ForDigests = "digests and alerts"

// AddStanding adds what digests and alerts read of a cluster to what preconditions
// read there.
func AddStanding(list []Wished, wishes []fact.Wish, assumed bool) []Wished {
	for _, w := range wishes {
		n := len(list)
		if list = addWish(list, w, ForDigests); len(list) > n {
			list[n].Assumed = assumed
		}
	}
	return list
}

// Wishes returns what rules read of clusters beside Flux's objects, by the name
// of the cluster.
func Wishes(clusters []string, files ...*policy.File) map[string][]Wished {
	out := map[string][]Wished{}
	eachOn(clusters, files, func(cluster string, p *policy.Precondition) {
		for _, k := range p.Given() {
			for _, w := range precondition.WishesOn(k.Kind, cluster) {
				out[cluster] = addWish(out[cluster], w, p.Name)
			}
		}
	})
	return out
}

func addWish(list []Wished, w fact.Wish, name string) []Wished {
	i := slices.IndexFunc(list, func(o Wished) bool { return o.Key == w.Key })
	if i < 0 {
		return append(list, Wished{Wish: w, For: []string{name}})
	}
	list[i].For = addName(list[i].For, name)
	return list
}

func addName(list []string, name string) []string {
	if slices.Contains(list, name) {
		return list
	}
	return append(list, name)
}

// eachOn visits each precondition on each cluster that it is likely about.
func eachOn(clusters []string, files []*policy.File, visit func(cluster string, p *policy.Precondition)) {
	for _, f := range files {
		if f == nil {
			continue
		}
		for _, cluster := range reach(f, clusters) {
			for i := range f.Preconditions {
				visit(cluster, &f.Preconditions[i])
			}
		}
	}
}

// AppliedAsks returns the names of the preconditions that ask whether something
// of the repository is applied by all who follow it, by the name of the cluster.
func AppliedAsks(clusters []string, files ...*policy.File) map[string][]string {
	out := map[string][]string{}
	eachOn(clusters, files, func(cluster string, p *policy.Precondition) {
		if p.DependsOn != nil && p.DependsOn.Applied && p.DependsOn.Kustomization == "" {
			out[cluster] = addName(out[cluster], p.Name)
		}
	})
	return out
}

// SeenWish is what a look at a cluster has shown of what is wished.
type SeenWish struct {
	Wished
	// Refused is why it can never be read, NotInstalled what the cluster lacks
	// for it, and Fault why that could not be told; each in one line, or empty.
	Refused, NotInstalled, Fault string
	// Absent are the objects that it names and that do not exist.
	Absent []string
	// Missing are the rights that it needs and the account lacks, in the words of
	// kubectl.
	Missing []string
}

// Follower is a repository of which preconditions ask whether a cluster has
// applied something.
type Follower struct {
	Repo, Branch string
	// For are the names of the preconditions.
	For []string
	// Found says that some Kustomization has applied a commit of the repository.
	// Fault is why that is not known, or empty.
	Found bool
	Fault string
}

// wishes judges what rules read beside Flux's objects.
func (c Cluster) wishes(a *about) {
	before := len(a.findings)
	c.eachMessage(func(w SeenWish) []string { return []string{w.Refused} }, func(message, rules string) {
		a.add(Finding{
			Check: "cluster-resources", Severity: Problem, What: rules + " can never be read: " + message,
			Why: "It stays unknown, and nothing it is about is clear.", Remedy: "Correct it in the policy.",
		})
	})
	c.eachMessage(func(w SeenWish) []string { return []string{w.NotInstalled} }, func(message, rules string) {
		a.add(Finding{
			Check: "cluster-resources", Severity: Warning, What: fmt.Sprintf("%s is unknown until it is installed: %s", rules, message),
			Why:    "What is unknown never passes: nothing it is about is clear.",
			Remedy: "Install what serves it, correct the kind in the policy, or say in targets which paths reach this cluster.",
		})
	})
	c.missing(a)
	c.eachMessage(func(w SeenWish) []string { return w.Absent }, func(object, rules string) {
		a.add(Finding{
			Check: "cluster-objects", Severity: Warning, What: fmt.Sprintf("%s asks about %s, which does not exist", rules, object),
			Why:    "What reaches this cluster and the rule is about waits for it.",
			Remedy: "Correct the name in the policy, create the object, or say in targets which paths reach this cluster.",
		})
	})
	c.eachMessage(func(w SeenWish) []string { return []string{w.Fault} }, func(message, rules string) {
		a.add(Finding{Check: "cluster-resources", Severity: Unknown, What: fmt.Sprintf("whether there is what %s asks about cannot be read: %s", rules, message)})
	})
	if c.WishesFault != "" && c.WishesFault != c.RightsFault {
		a.add(Finding{Check: "cluster-rights", Severity: Unknown, What: "whether the account may read what preconditions ask about cannot be asked: " + c.WishesFault})
	}
	if c.Unlooked > 0 {
		a.add(Finding{
			Check: "cluster-resources", Severity: Info,
			What: fmt.Sprintf("preconditions read %s beside Flux's objects; the first %d were looked at", plural(len(c.Wishes)+c.Unlooked, "thing"), len(c.Wishes)),
		})
	}
	if len(c.Wishes) > 0 && len(a.findings) == before && c.WishesFault == "" {
		a.ok("cluster-resources", "what %s reads beside Flux's objects is there, and the account may read it", c.rulesOf(func(SeenWish) bool { return true }))
	}
}

// missing tells of rights, and how to give them.
func (c Cluster) missing(a *about) {
	var rights []string
	for _, w := range c.Wishes {
		for _, r := range w.Missing {
			rights = addName(rights, r)
		}
	}
	if len(rights) == 0 {
		return
	}
	f := Finding{
		Check: "cluster-rights", Severity: Problem,
		What: fmt.Sprintf("%s reads what the account may not: %s", c.rulesOf(func(w SeenWish) bool { return len(w.Missing) > 0 }), some(grouped(rights))),
		Why:  "It is unknown until the account may, and nothing it is about is clear.", Remedy: "Give the account:\n  " + strings.Join(grouped(rights), "\n  "),
	}
	if c.Role != "" {
		f.Remedy = "kubectl apply -f - with this; it replaces what was given by the same names:\n" + strings.TrimRight(c.Role, "\n")
	}
	a.add(f)
}

// follows judges whether anybody can tell what is applied.
func (c Cluster) follows(a *about) {
	for _, f := range c.Followers {
		what := fmt.Sprintf("follows %s of %s, and %s asks what is applied", f.Branch, f.Repo, rulesText(f.For))
		switch {
		case f.Fault != "":
			a.add(Finding{Check: "cluster-follows", Severity: Unknown, What: "whether a Kustomization " + what + ", cannot be read: " + f.Fault})
		case !f.Found:
			a.add(Finding{
				Check: "cluster-follows", Severity: Warning, What: "no Kustomization " + what,
				Why:    "What depends on another pull request stays unknown there once that is merged.",
				Remedy: "Say in targets which paths reach this cluster, or have Flux follow the repository.",
			})
		}
	}
}

// eachMessage visits what wishes have to tell, each once, with the names of the
// rules that it is about.
func (c Cluster) eachMessage(of func(SeenWish) []string, visit func(message, rules string)) {
	var seen []string
	for _, w := range c.Wishes {
		for _, message := range of(w) {
			if message == "" || slices.Contains(seen, message) {
				continue
			}
			seen = append(seen, message)
			visit(message, c.rulesOf(func(o SeenWish) bool { return slices.Contains(of(o), message) }))
		}
	}
}

func (c Cluster) rulesOf(is func(SeenWish) bool) string {
	var list []string
	for _, w := range c.Wishes {
		if !is(w) {
			continue
		}
		for _, name := range w.For {
			list = addName(list, name)
		}
	}
	return rulesText(list)
}

// rulesText names preconditions.
func rulesText(list []string) string {
	quoted := make([]string, len(list))
	for i, name := range list {
		quoted[i] = strconv.Quote(name)
	}
	if len(list) == 1 {
		return "precondition " + quoted[0]
	}
	return "each of the preconditions " + some(quoted)
}
