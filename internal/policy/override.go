package policy

import (
	"fmt"
	"slices"
	"time"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// RuleKey names a rule for an override; kind is "precondition" or "approval".
func RuleKey(kind, name string) string { return kind + ": " + name }

// OpenRules are the keys of all rules that keep a verdict from being clear: what
// an override given now passes.
func (v *Verdict) OpenRules() []string {
	var keys []string
	for _, r := range v.Results {
		if r.State.Open() {
			keys = append(keys, RuleKey("precondition", r.Name))
		}
	}
	for _, a := range v.Approvals {
		if a.State.Open() {
			keys = append(keys, RuleKey("approval", a.Name))
		}
	}
	return keys
}

// target is the pull request as decisions are asked about it.
func (e *evaluation) target() decision.Target {
	p := &e.in.Snapshot.Pull
	return decision.Target{Base: p.Base.Name, Head: p.Head.SHA, Retargets: retargets(e.in.Snapshot), Now: e.in.Now}
}

// decisions notes the holds, overrides, freezes and the request to merge in
// force.
func (e *evaluation) decisions(v *Verdict) {
	v.Holds = unplaced(e.in.Decisions.Holds())
	v.Freezes = e.freezes()
	for _, o := range e.in.Decisions.Overrides(e.target()) {
		if person, ok := e.mayOverride(o); ok {
			o.By, o.Seq = person, 0
			v.Overrides = append(v.Overrides, o)
		}
	}
	if m, ok := e.in.Decisions.MergeRequest(e.target()); ok {
		m.Seq = 0
		v.Merge = &m
	}
}

// unplaced takes the place in the ledger out of entries. It is not kept with a
// verdict, and two verdicts of the same truth are equal: no entries are nil.
func unplaced(entries []decision.Entry) []decision.Entry {
	if len(entries) == 0 {
		return nil
	}
	for i := range entries {
		entries[i].Seq = 0
	}
	return entries
}

// mayOverride returns who gave an override, as called now, if that person may
// give one under any policy.
func (e *evaluation) mayOverride(o decision.Entry) (pull.Person, bool) {
	person, ok := e.in.Accounts[o.By.ID]
	if !ok || e.voidPerson(person) != "" {
		return pull.Person{}, false
	}
	for _, pol := range []*Policy{e.in.Operator, e.in.Repository} {
		if e.onOverrideList(pol, person) {
			return person, true
		}
	}
	return pull.Person{}, false
}

func (e *evaluation) onOverrideList(pol *Policy, person pull.Person) bool {
	if pol == nil || pol.file.Override == nil {
		return false
	}
	// Who cannot be found on the list is not on it: an unknown team passes nobody.
	people, _ := e.entitled(pol.file.Override.From)
	return slices.ContainsFunc(people, person.Is)
}

// overriding is what the overrides in force pass.
type overriding struct {
	operator *Policy
	// byOperator and byRepository are the keys of the rules that each list
	// passes.
	byOperator, byRepository map[string]bool
}

// passes reports whether a rule of a policy is passed. The operator's list
// passes every rule; a repository's list passes its own and the built-in one.
func (o overriding) passes(pol *Policy, key string) bool {
	return o.byOperator[key] || (pol == nil || pol != o.operator) && o.byRepository[key]
}

// overriding evaluates the overrides under the policies in force that come after
// a place in the ledger. An override lasts no longer than the policy allows now.
func (e *evaluation) overriding(repository *Policy, after uint64) overriding {
	return overriding{
		operator:     e.in.Operator,
		byOperator:   e.passedBy(e.in.Operator, after),
		byRepository: e.passedBy(repository, after),
	}
}

// passedBy returns the keys that the overrides of the people on one list pass,
// as far as those come after a place in the ledger.
func (e *evaluation) passedBy(pol *Policy, after uint64) map[string]bool {
	passed := map[string]bool{}
	if pol == nil || pol.file.Override == nil {
		return passed
	}
	rule := pol.file.Override
	need := 1
	if rule.SecondPerson {
		need = 2
	}
	people := map[string]int{}
	for _, o := range e.in.Decisions.Overrides(e.target()) {
		person, ok := e.in.Accounts[o.By.ID]
		until := o.At.Add(rule.TTL.D())
		if o.Until.Before(until) {
			until = o.Until
		}
		if o.Seq < after || !ok || e.voidPerson(person) != "" || !e.onOverrideList(pol, person) || !e.in.Now.Before(until) {
			continue
		}
		e.reading.Again(until)
		for _, key := range o.Passes {
			people[key]++
			passed[key] = people[key] >= need
		}
	}
	return passed
}

// Approvers are the people whom some approval rule about the change names, as
// they are now.
func Approvers(in Input) []pull.Person {
	e := &evaluation{in: &in}
	var out []pull.Person
	for _, pol := range []*Policy{in.Operator, in.Repository} {
		if pol == nil {
			continue
		}
		for i := range pol.file.Approvals {
			rule := &pol.file.Approvals[i]
			if _, applies := match(rule.Scope, rule.Unless, in.Snapshot); applies {
				people, _ := e.entitled(rule.From)
				out = append(out, people...)
			}
		}
	}
	if rule, ok := e.guardRule(policies(in.Operator, in.Repository)); ok {
		people, _ := e.entitled(rule.From)
		out = append(out, people...)
	}
	return distinct(out)
}

// Overriders are the people who may override, and for how long at most.
func Overriders(in Input) ([]pull.Person, time.Duration) {
	e := &evaluation{in: &in}
	var out []pull.Person
	var ttl time.Duration
	for _, pol := range policies(in.Operator, in.Repository) {
		if pol.file.Override == nil {
			continue
		}
		people, _ := e.entitled(pol.file.Override.From)
		out = append(out, people...)
		ttl = max(ttl, pol.file.Override.TTL.D())
	}
	return distinct(out), ttl
}

// Retargets counts how often the base of a pull request was changed.
func Retargets(snap *pull.Snapshot) int { return retargets(snap) }

func policies(ps ...*Policy) []*Policy {
	return slices.DeleteFunc(ps, func(p *Policy) bool { return p == nil })
}

func distinct(people []pull.Person) []pull.Person {
	var out []pull.Person
	for _, p := range people {
		if !slices.ContainsFunc(out, p.Is) {
			out = append(out, p)
		}
	}
	return out
}

// holdText says who holds a pull request and why.
func holdText(h decision.Entry) string {
	if h.Reason == "" {
		return fmt.Sprintf("held by %s", h.By.Login)
	}
	return fmt.Sprintf("held by %s: %s", h.By.Login, h.Reason)
}
