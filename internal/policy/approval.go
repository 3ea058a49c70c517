package policy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"signalbox/internal/decision"
	"signalbox/internal/pull"
)

// selfRule is the name of the rule that guards the policy itself.
const selfRule = "the policy of signalbox"

// gateFiles are the paths that decide gates: whoever changes them needs the
// agreement of an approver, whatever the rules say.
var gateFiles = []string{Path}

// approvals evaluates every approval rule of the policies in force, and the
// one that guards the policy file.
func (e *evaluation) approvals(inForce []*Policy, overriding overriding) []ApprovalResult {
	var results []ApprovalResult
	add := func(pol *Policy, name string, rule *ApprovalRule) {
		r := e.approval(name, rule)
		if r.State.Open() && overriding.passes(pol, RuleKey("approval", r.Name)) {
			r.State = Overridden
		}
		results = append(results, r)
	}
	for _, pol := range inForce {
		for i := range pol.file.Approvals {
			add(pol, pol.Name, &pol.file.Approvals[i])
		}
	}
	if rule, ok := e.guardRule(inForce); ok {
		add(nil, BuiltIn, &rule)
	}
	return results
}

// guardRule makes the rule that guards the files that decide gates: one
// approval by anybody whom some rule in force names. Where no rule names
// anybody there is nobody to ask, and no rule. It is only made when such a
// file is changed and no other rule covers it.
func (e *evaluation) guardRule(inForce []*Policy) (ApprovalRule, bool) {
	rule := ApprovalRule{Name: selfRule, Scope: Scope{Paths: gateFiles}, Count: 1, Survive: SurviveNone}
	files, touched := match(rule.Scope, nil, e.in.Snapshot)
	if !touched {
		return rule, false
	}
	for _, pol := range inForce {
		for _, r := range pol.file.Approvals {
			if covered, applies := match(r.Scope, r.Unless, e.in.Snapshot); applies && containsAll(covered, files) {
				return rule, false
			}
			rule.From.Teams = append(rule.From.Teams, r.From.Teams...)
			rule.From.Users = append(rule.From.Users, r.From.Users...)
		}
	}
	return rule, len(rule.From.Teams)+len(rule.From.Users) > 0
}

func containsAll(all, some []pull.File) bool {
	return !slices.ContainsFunc(some, func(f pull.File) bool { return !slices.Contains(all, f) })
}

func (e *evaluation) approval(policyName string, rule *ApprovalRule) ApprovalResult {
	r := ApprovalResult{Name: rule.Name, Policy: policyName, Need: rule.Count}
	files, applies := match(rule.Scope, rule.Unless, e.in.Snapshot)
	if !applies {
		r.State, r.Reason = NotApplicable, "is not about this change"
		return r
	}
	for _, f := range files {
		r.Files = append(r.Files, f.Path)
	}
	entitled, problems := e.entitled(rule.From)
	e.count(rule, entitled, &r)
	r.CanApprove = e.canStillApprove(entitled, r.By)
	missing := r.Need - len(r.By)
	r.Unsatisfiable = missing > len(r.CanApprove) && len(problems) == 0
	switch {
	case missing <= 0:
		r.State, r.Reason = Met, "approved by "+strings.Join(approvers([]ApprovalResult{r}), ", ")
	case len(problems) > 0:
		r.State, r.Reason = Unknown, strings.Join(problems, "; ")
	case r.Unsatisfiable:
		r.State, r.Reason = Unmet, unsatisfiableReason(&r, missing, e.in.Snapshot.Pull.Author)
	default:
		r.State = Unmet
		r.Reason = fmt.Sprintf("needs %s by %s", plural(missing, "approval"), list(r.CanApprove, "or"))
		if len(r.By) > 0 {
			r.Reason = fmt.Sprintf("needs %s more by %s", plural(missing, "approval"), list(r.CanApprove, "or"))
		}
	}
	return r
}

func unsatisfiableReason(r *ApprovalResult, missing int, author pull.Person) string {
	if len(r.CanApprove) == 0 {
		return fmt.Sprintf("needs %s, but nobody is left who could give it: only %s and bots are entitled", plural(missing, "approval"), author.Login)
	}
	return fmt.Sprintf("needs %s, but only %s could still give one", plural(missing, "approval"), list(r.CanApprove, "and"))
}

// entitled returns the people of a rule, as they are now, without repetition,
// and the teams whose members are not known.
func (e *evaluation) entitled(from People) ([]pull.Person, []string) {
	var people []pull.Person
	var problems []string
	add := func(p pull.Person) {
		if !slices.ContainsFunc(people, p.Is) {
			people = append(people, p)
		}
	}
	for _, team := range from.Teams {
		t, ok := e.in.Teams[TeamKey(team, e.in.Snapshot.Pull.Repo.Owner)]
		switch {
		case !ok:
			problems = append(problems, fmt.Sprintf("the members of team %s are not known", team))
		case t.Problem != "":
			problems = append(problems, t.Problem)
		default:
			for _, m := range t.Members {
				add(m)
			}
		}
	}
	for _, login := range from.Users {
		add(pull.Person{Login: login})
	}
	return people, problems
}

func (e *evaluation) canStillApprove(entitled []pull.Person, by []Approval) []string {
	var logins []string
	for _, p := range entitled {
		approved := slices.ContainsFunc(by, func(a Approval) bool { return a.Person.Is(p) })
		if !approved && !p.Is(e.in.Snapshot.Pull.Author) && !e.bot(p) {
			logins = append(logins, p.Login)
		}
	}
	slices.SortFunc(logins, func(a, b string) int { return cmp.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return logins
}

func (e *evaluation) bot(p pull.Person) bool { return slices.ContainsFunc(e.in.Bots, p.Is) }

// count sorts the standing approvals into those that count and those that do
// not. One person counts once, wherever the approval was given.
func (e *evaluation) count(rule *ApprovalRule, entitled []pull.Person, r *ApprovalResult) {
	for _, v := range e.votes() {
		if !slices.ContainsFunc(entitled, v.Person.Is) {
			continue
		}
		if why := v.void(rule); why != "" {
			r.Voided = append(r.Voided, Voided{v.Person, why})
			continue
		}
		if !slices.ContainsFunc(r.By, func(a Approval) bool { return a.Person.Is(v.Person) }) {
			r.By = append(r.By, v.Approval)
		}
	}
	// Who approved anew needs no word about the approval before.
	r.Voided = slices.DeleteFunc(r.Voided, func(v Voided) bool {
		return slices.ContainsFunc(r.By, func(a Approval) bool { return a.Person.Is(v.Person) })
	})
}

// vote is an approval that stands; void says why it does not count for a rule.
type vote struct {
	Approval
	void func(*ApprovalRule) string
}

// votes are the standing approvals by review and by command.
func (e *evaluation) votes() []vote {
	var votes []vote
	for _, review := range e.standing(pull.Approved) {
		if e.in.Decisions.Withdrawn(review.Author, review.ID) {
			continue
		}
		votes = append(votes, vote{
			Approval{review.Author, review.Commit, review.SubmittedAt, "review"},
			func(rule *ApprovalRule) string { return e.void(rule, review) },
		})
	}
	for _, d := range e.in.Decisions.Approvals() {
		person, ok := e.in.Accounts[d.By.ID]
		if !ok || e.rejectedAfter(d) {
			continue
		}
		votes = append(votes, vote{
			Approval{person, d.Head, d.At, d.Place},
			func(rule *ApprovalRule) string { return e.voidDecision(rule, person, d) },
		})
	}
	return votes
}

// rejectedAfter reports whether the person asked for changes after an approval
// by command, even if that was dismissed since.
func (e *evaluation) rejectedAfter(d decision.Entry) bool {
	return slices.ContainsFunc(e.in.Snapshot.Reviews, func(r pull.Review) bool {
		return r.State == pull.ChangesRequested && r.Author.Is(d.By) && !slices.Contains(d.Reviews, r.ID)
	})
}

// standing returns, for each person, the latest review that says yes or no, if
// it says what is asked for. A dismissed one is no word, nor is an earlier one
// that it replaced.
func (e *evaluation) standing(state pull.ReviewState) []pull.Review {
	var latest []pull.Review
	for _, review := range e.in.Snapshot.Reviews {
		if review.State != pull.Approved && review.State != pull.ChangesRequested {
			continue
		}
		i := slices.IndexFunc(latest, func(l pull.Review) bool { return l.Author.Is(review.Author) })
		switch {
		case i < 0:
			latest = append(latest, review)
		case e.later(review, latest[i]):
			latest[i] = review
		}
	}
	latest = slices.DeleteFunc(latest, func(l pull.Review) bool { return l.Dismissed || l.State != state })
	slices.SortFunc(latest, func(a, b pull.Review) int { return cmp.Compare(a.ID, b.ID) })
	return latest
}

// later reports whether a was submitted after b. The timeline knows: id and
// time of a review are of when it was begun, and one that was begun early can
// be submitted last.
func (e *evaluation) later(a, b pull.Review) bool {
	atA, atB := placeOf(e.in.Snapshot.Timeline, a), placeOf(e.in.Snapshot.Timeline, b)
	if atA >= 0 && atB >= 0 {
		return atA > atB
	}
	return a.ID > b.ID
}

// placeOf returns the place of a review in the timeline, or -1.
func placeOf(timeline []pull.Moment, review pull.Review) int {
	return slices.IndexFunc(timeline, func(m pull.Moment) bool {
		return m.Kind == pull.MomentReview && m.ReviewID == review.ID
	})
}

// void says why an approving review of an entitled person does not count, or
// nothing.
func (e *evaluation) void(rule *ApprovalRule, review pull.Review) string {
	snap := e.in.Snapshot
	if why := e.voidPerson(review.Author); why != "" {
		return why
	}
	if why := retargeted(snap, review); why != "" {
		return why
	}
	then, seen := snap.Diffs[review.Commit]
	if !seen {
		return e.voidHead(rule, review.Commit, nil)
	}
	return e.voidHead(rule, review.Commit, &then)
}

// voidDecision is void for an approval by command.
func (e *evaluation) voidDecision(rule *ApprovalRule, person pull.Person, d decision.Entry) string {
	p := &e.in.Snapshot.Pull
	switch why := e.voidPerson(person); {
	case why != "":
		return why
	case d.Base != p.Base.Name:
		return fmt.Sprintf("was given for %s, not %s", d.Base, p.Base.Name)
	case d.Retargets != retargets(e.in.Snapshot):
		return "was given before the base was changed"
	}
	return e.voidHead(rule, d.Head, d.Diff)
}

func (e *evaluation) voidPerson(p pull.Person) string {
	switch {
	case p.Is(e.in.Snapshot.Pull.Author):
		return "the author's own approval never counts"
	case e.bot(p):
		return "a bot's approval never counts"
	}
	return ""
}

// voidHead says why an approval given on a head does not count on the present
// one; then is the diff of that head, or nil if it is not known.
func (e *evaluation) voidHead(rule *ApprovalRule, given string, then *pull.Diff) string {
	head := e.in.Snapshot.Pull.Head.SHA
	if given == head {
		return ""
	}
	pushed := fmt.Sprintf("was given on %s; %s was pushed since", short(given), short(head))
	if rule.Survive != SurviveIdenticalDiff {
		return pushed
	}
	now, seen := e.in.Snapshot.Diffs[head]
	switch {
	case then == nil || !seen:
		return pushed + ", and signalbox did not see whether the diff is the same"
	case !then.Same(now):
		return pushed + ", and the diff is another"
	}
	return ""
}

// retargets counts how often the base was changed.
func retargets(snap *pull.Snapshot) int {
	n := 0
	for _, m := range snap.Timeline {
		if m.Kind == pull.MomentRetarget {
			n++
		}
	}
	return n
}

// retargeted says whether the base branch was changed after a review. A review
// that is not in the timeline cannot be placed, so it does not count.
func retargeted(snap *pull.Snapshot, review pull.Review) string {
	i := placeOf(snap.Timeline, review)
	if i < 0 {
		return "the timeline does not show when it was given"
	}
	for _, m := range snap.Timeline[i:] {
		if m.Kind == pull.MomentRetarget {
			return fmt.Sprintf("was given for %s; the base was changed to %s since", m.From, m.To)
		}
	}
	return ""
}

// rejections returns the reviews that ask for changes and stand. The author's
// own and a bot's do not count.
func (e *evaluation) rejections() []Rejection {
	var rejections []Rejection
	for _, review := range e.standing(pull.ChangesRequested) {
		if !review.Author.Is(e.in.Snapshot.Pull.Author) && !e.bot(review.Author) && !e.in.Decisions.ApprovedAfter(review.Author, review.ID) {
			rejections = append(rejections, Rejection{review.Author, review.SubmittedAt})
		}
	}
	return rejections
}

// short abbreviates a commit id for people.
func short(sha string) string { return sha[:min(len(sha), 10)] }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// maxNames bounds the names in a reason.
const maxNames = 6

// list joins names for people: "a, b or c".
func list(names []string, word string) string {
	switch {
	case len(names) == 0:
		return "nobody"
	case len(names) == 1:
		return names[0]
	case len(names) > maxNames:
		return fmt.Sprintf("%s %s %d others", strings.Join(names[:maxNames-1], ", "), word, len(names)-maxNames+1)
	}
	last := len(names) - 1
	return strings.Join(names[:last], ", ") + " " + word + " " + names[last]
}
