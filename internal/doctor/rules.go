package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// Lookup is what became of looking for an account or a team.
type Lookup struct {
	// People are the account, or the members of the team.
	People []pull.Person
	// Absent says that there is none, or that it may not be seen; Refused that
	// the account may not read it. Fault is why it could not be read otherwise,
	// or empty.
	Absent, Refused bool
	Fault           string
	// NoAccess says that the account cannot read the repository.
	NoAccess bool
}

// known reports whether People is complete.
func (l Lookup) known() bool { return !l.Refused && l.Fault == "" }

// Rules are the rules for one base branch of a repository, and whom they name.
type Rules struct {
	// Base is the branch whose policy file it is.
	Base string
	// Fault is why the policy file could not be read, or empty. Invalid is what
	// is wrong with it.
	Fault   string
	Invalid []string
	// Operator and File are the rules of the configuration and of the
	// repository; nil where there are none.
	Operator, File *policy.File
	// Owner owns the repository. Users are by lower-case login, Teams by
	// [policy.TeamKey].
	Owner string
	Users map[string]Lookup
	Teams map[string]Lookup
	// Bots never count; signalbox's own account, Bot, is one of them.
	Bot  string
	Bots []string
	// Clusters are the names that the configuration has.
	Clusters []string
}

// files are the rules in force.
func (r Rules) files() []*policy.File {
	return slices.DeleteFunc([]*policy.File{r.Operator, r.File}, func(f *policy.File) bool { return f == nil })
}

// People returns the users, and the teams by their keys, that rules name.
func People(owner string, files ...*policy.File) (users, teams []string) {
	userSet, teamSet := map[string]bool{}, map[string]bool{}
	take := func(p policy.People) {
		for _, u := range p.Users {
			userSet[strings.ToLower(u)] = true
		}
		for _, t := range p.Teams {
			teamSet[policy.TeamKey(t, owner)] = true
		}
	}
	for _, f := range files {
		if f == nil {
			continue
		}
		for _, a := range f.Approvals {
			take(a.From)
		}
		if f.Override != nil {
			take(f.Override.From)
		}
	}
	return slices.Sorted(maps.Keys(userSet)), slices.Sorted(maps.Keys(teamSet))
}

// Judge judges the rules of a base branch of a repository.
func (r Rules) Judge(repo string) []Finding {
	a := &about{subject: fmt.Sprintf("%s, policy on %s", repo, r.Base)}
	switch {
	case r.Fault != "":
		a.add(Finding{
			Check: "policy", Severity: Unknown, What: policy.Path + " cannot be read: " + r.Fault,
			Why: "Which rules apply is not known.",
		})
		return a.findings
	case len(r.Invalid) > 0:
		a.add(Finding{
			Check: "policy", Severity: Problem, What: policy.Path + " is not valid",
			Why:    "Every pull request into " + r.Base + " is blocked until it is.",
			Remedy: "bot validate FILE says the same before you push:\n  " + strings.Join(r.Invalid, "\n  "),
		})
		return a.findings
	}
	preconditions, approvals, clustered := 0, 0, false
	for _, f := range r.files() {
		preconditions += len(f.Preconditions)
		approvals += len(f.Approvals)
		clustered = clustered || slices.ContainsFunc(f.Preconditions, ofClusters)
	}
	if preconditions+approvals == 0 {
		a.add(Finding{
			Check: "policy", Severity: Problem, What: "there are no rules",
			Why:    "Every pull request is clear at once.",
			Remedy: "Write " + policy.Path + " on " + r.Base + ", or policy: in the configuration of signalbox.",
		})
		return a.findings
	}
	r.people(a)
	r.approvals(a)
	r.targets(a, clustered)
	r.override(a)
	if len(a.findings) == 0 {
		a.ok("policy", "%s and %s, and there are people to meet them", plural(preconditions, "precondition"), plural(approvals, "approval rule"))
	}
	return a.findings
}

// people tells of names that lead to nobody.
func (r Rules) people(a *about) {
	users, teams := People(r.Owner, r.files()...)
	for _, u := range users {
		l := r.Users[u]
		switch {
		case r.isBot(u):
			a.add(Finding{
				Check: "approvers", Severity: Warning, What: "rules name " + u + ", which is a bot", Why: "What a bot says never counts.",
				Remedy: "Take it out of the rules, or out of bots in the configuration.",
			})
		case l.Absent:
			a.add(Finding{
				Check: "approvers", Severity: Warning, What: "rules name " + u + ", and there is no such account",
				Why: "Whoever makes an account of that name becomes an approver.", Remedy: "Take the name out of the rules.",
			})
		case !l.known():
			a.add(Finding{Check: "approvers", Severity: Unknown, What: "account " + u + " cannot be read: " + orWord(l.Fault, "the token may not")})
		case l.NoAccess:
			a.add(Finding{
				Check: "approvers", Severity: Warning, What: u + " may not see the repository", Why: "So " + u + " cannot approve anything in it.",
				Remedy: "Add " + u + " to the repository, or take the name out of the rules.",
			})
		}
	}
	for _, t := range teams {
		l := r.Teams[t]
		org, _, _ := strings.Cut(t, "/")
		switch {
		case l.Absent:
			a.add(Finding{
				Check: "approvers", Severity: Problem, What: "rules name team " + t + ", and there is no such team, or signalbox may not see it",
				Why:    "What nobody can be found for stays unapproved.",
				Remedy: fmt.Sprintf("Make the team, correct the name (a team of another organisation is written \"organisation/team\"), or add %s to a team of %s.", orWord(r.Bot, "signalbox's account"), org),
			})
		case l.Refused:
			a.add(Finding{
				Check: "approvers", Severity: Problem, What: "the members of team " + t + " cannot be read",
				Why: "Gitea tells the members of a team only to members of that very team, to owners of the organisation and to administrators of Gitea. " +
					"Nobody is known to be in it, so its rules stay unapproved.",
				Remedy: fmt.Sprintf("Add %s to team %s. It never counts as an approver itself.", orWord(r.Bot, "signalbox's account"), t),
			})
		case !l.known():
			a.add(Finding{Check: "approvers", Severity: Unknown, What: "team " + t + " cannot be read: " + l.Fault})
		case len(r.humans(l.People)) == 0:
			a.add(Finding{
				Check: "approvers", Severity: Warning, What: "rules name team " + t + ", and no person is in it",
				Remedy: "Add people to the team, or take it out of the rules.",
			})
		}
	}
}

func (r Rules) isBot(login string) bool {
	return slices.ContainsFunc(append([]string{r.Bot}, r.Bots...), func(b string) bool { return strings.EqualFold(b, login) })
}

func (r Rules) humans(people []pull.Person) []pull.Person {
	return slices.DeleteFunc(slices.Clone(people), func(p pull.Person) bool { return r.isBot(p.Login) })
}

// entitled returns the people whom a rule names, each once, and whether they are
// all known.
func (r Rules) entitled(from policy.People) (people []pull.Person, complete bool) {
	complete = true
	var lookups []Lookup
	for _, u := range from.Users {
		l := r.Users[strings.ToLower(u)]
		if l.NoAccess {
			continue
		}
		lookups = append(lookups, l)
	}
	for _, t := range from.Teams {
		lookups = append(lookups, r.Teams[policy.TeamKey(t, r.Owner)])
	}
	for _, l := range lookups {
		complete = complete && l.known()
		for _, p := range r.humans(l.People) {
			if !slices.ContainsFunc(people, p.Is) {
				people = append(people, p)
			}
		}
	}
	return people, complete
}

func logins(people []pull.Person) []string {
	out := make([]string, len(people))
	for i, p := range people {
		out[i] = p.Login
	}
	return out
}

// approvals tells of rules that cannot be met.
func (r Rules) approvals(a *about) {
	for _, f := range r.files() {
		for _, rule := range f.Approvals {
			people, complete := r.entitled(rule.From)
			count := max(rule.Count, 1)
			what := fmt.Sprintf("approval rule %q asks for %s of ", rule.Name, plural(count, "approval"))
			switch {
			case len(people) > count:
			case !complete:
				// Told above, with what is missing.
			case len(people) < count:
				a.add(Finding{
					Check: "approvers-enough", Severity: Problem, What: what + orWord(some(logins(people)), "people who do not exist"),
					Why:    "Nobody can ever meet it: what it is about is never approved.",
					Remedy: "Name more people in the rule, or lower its count.",
				})
			default:
				a.add(Finding{
					Check: "approvers-enough", Severity: Warning, What: what + some(logins(people)) + " and has nobody to spare",
					Why:    "An author's own approval never counts, so what one of them writes can only pass by an override.",
					Remedy: fmt.Sprintf("Name at least %s in the rule.", plural(count+1, "person")),
				})
			}
		}
	}
}

// ofClusters reports whether a precondition asks about clusters.
func ofClusters(p policy.Precondition) bool {
	return p.Flux != nil || p.Kured != nil || p.Objects != nil || p.Renovate != nil && p.Renovate.CronJob != "" ||
		p.DependsOn != nil && p.DependsOn.Applied
}

// targets tells of clusters that are not there. Clustered says that there are
// preconditions about clusters.
func (r Rules) targets(a *about, clustered bool) {
	if clustered && len(r.Clusters) == 0 {
		a.add(Finding{
			Check: "policy-clusters", Severity: Problem, What: "there are preconditions about clusters, and the configuration has no cluster",
			Why: "They stay unknown, and nothing they are about is ever clear.", Remedy: "Add clusters: to the configuration.",
		})
		return
	}
	for _, f := range r.files() {
		for _, t := range f.Targets {
			if !slices.Contains(r.Clusters, t.Cluster) {
				a.add(Finding{
					Check: "policy-clusters", Severity: Problem, What: fmt.Sprintf("the policy names cluster %q, and the configuration has %s", t.Cluster, orWord(some(r.Clusters), "none")),
					Why: "What reaches it stays unknown, and is never clear.", Remedy: "Add the cluster to the configuration, or correct the name.",
				})
			}
		}
	}
}

// override tells of what can be done in an emergency.
func (r Rules) override(a *about) {
	var people []pull.Person
	given, complete := false, true
	need := 1
	for _, f := range r.files() {
		if f.Override == nil {
			continue
		}
		given = true
		some, all := r.entitled(f.Override.From)
		people, complete = append(people, some...), complete && all
		if f.Override.SecondPerson {
			need = 2
		}
	}
	switch {
	case !given:
		a.add(Finding{
			Check: "override", Severity: Warning, What: "nobody may override",
			Why:    "When a cluster cannot be reached its rules are unknown, and the repair cannot be merged either.",
			Remedy: "Name people for it: override: {from: {users: [alice]}} in the policy, better in that of the configuration.",
		})
	case complete && len(people) < need:
		a.add(Finding{
			Check: "override", Severity: Warning, What: "not enough of the people who may override exist",
			Why:    fmt.Sprintf("An override needs %s.", plural(need, "person")),
			Remedy: "Correct override in the policy.",
		})
	}
}
