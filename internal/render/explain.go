package render

import (
	"fmt"
	"strings"

	"signalbox/internal/policy"
)

// Explain is a verdict as plain text with all evidence, as a tree: for each rule
// its findings, and for each of them what was looked at and when. With color,
// states are marked by ANSI colors too.
func Explain(v *policy.Verdict, color bool) string {
	p := terminal{color: color}
	p.line(0, v.State(), "%s", headline(v))
	p.gate("preconditions", v.Preconditions)
	p.gate("approval", v.Approval)
	for _, problem := range v.Problems {
		p.b.WriteString("\n" + printable(problem.Text) + "\n")
	}
	for _, r := range v.Results {
		node := node{text: ruleText(r.State, r.Name, r.Policy)}
		for _, c := range r.Checks {
			node.under = append(node.under, checkNode(c))
		}
		if len(r.Checks) == 0 {
			node.add("%s", r.Reason)
		}
		p.b.WriteByte('\n')
		node.write(&p.b, "", "")
	}
	for _, a := range v.Approvals {
		p.b.WriteByte('\n')
		approvalNode(a).write(&p.b, "", "")
	}
	if v.Proposed != nil {
		p.b.WriteByte('\n')
		proposedNode(v.Proposed).write(&p.b, "", "")
	}
	if len(v.Policies) > 0 {
		fmt.Fprintf(&p.b, "\npolicies: %s\n", printable(strings.Join(v.Policies, ", ")))
	}
	return p.b.String()
}

// ruleText names a rule, and the policy that it is from if that has a name.
func ruleText(s policy.ResultState, name, from string) string {
	text := fmt.Sprintf("%s: %s", s, name)
	if from != "" {
		text += " (" + from + ")"
	}
	return text
}

// node is a line of a tree and what is under it.
type node struct {
	text  string
	under []node
}

func (n *node) add(format string, args ...any) {
	n.under = append(n.under, node{text: fmt.Sprintf(format, args...)})
}

// write writes the node and all under it. Its first line begins with head, the
// others with rest.
func (n *node) write(b *strings.Builder, head, rest string) {
	lines := strings.Split(strings.TrimSpace(printable(n.text)), "\n")
	b.WriteString(head + lines[0] + "\n")
	stem := rest
	if len(n.under) > 0 {
		stem += "│"
	}
	for _, line := range lines[1:] {
		b.WriteString(strings.TrimRight(stem+"   "+line, " ") + "\n")
	}
	for i := range n.under {
		if i == len(n.under)-1 {
			n.under[i].write(b, rest+"└─ ", rest+"   ")
		} else {
			n.under[i].write(b, rest+"├─ ", rest+"│  ")
		}
	}
}

func checkNode(c policy.Check) node {
	n := node{text: fmt.Sprintf("%s: %s", c.State, c.Reason)}
	if !c.Since.IsZero() {
		n.add("since: %s", stamp(c.Since))
	}
	if c.Looked != "" {
		n.add("looked at: %s", c.Looked)
	}
	if !c.ReadAt.IsZero() {
		n.add("read: %s", c.ReadAt.UTC().Format("2006-01-02 15:04:05 UTC"))
	}
	n.under = append(n.under, evidenceNodes(c.Evidence)...)
	return n
}

func evidenceNodes(ev []policy.Evidence) []node {
	var nodes []node
	for _, e := range ev {
		nodes = append(nodes, node{strings.TrimSuffix(oneLine(e.Label)+": "+e.Value, ": "), evidenceNodes(e.Parts)})
	}
	return nodes
}

// proposedNode is the policy that the pull request brings.
func proposedNode(proposed *policy.Proposed) *node {
	if len(proposed.Problems) > 0 {
		n := &node{text: "the policy in this pull request is not valid"}
		for _, problem := range proposed.Problems {
			n.add("%s", problem)
		}
		return n
	}
	n := &node{text: "by the policy in this pull request"}
	n.add("preconditions %s: %s", proposed.Preconditions.State, proposed.Preconditions.Reason)
	n.add("approval %s: %s", proposed.Approval.State, proposed.Approval.Reason)
	return n
}

func approvalNode(a policy.ApprovalResult) *node {
	n := &node{text: ruleText(a.State, a.Name, a.Policy)}
	if a.Reason != "" {
		n.add("%s", a.Reason)
	}
	for _, by := range a.By {
		n.add("approved by %s on %s at %s (%s)", by.Person.Login, short(by.Commit), stamp(by.At), by.Place)
	}
	for _, w := range a.Voided {
		n.add("voided: %s %s", w.Person.Login, w.Why)
	}
	if len(a.CanApprove) > 0 {
		n.add("who can approve: %s", strings.Join(a.CanApprove, ", "))
	}
	if len(a.Files) > 0 {
		files := node{text: "about: " + count(len(a.Files), "file")}
		const most = 20
		for _, f := range a.Files[:min(len(a.Files), most)] {
			files.add("%s", oneLine(f))
		}
		if more := len(a.Files) - most; more > 0 {
			files.add("and %d more", more)
		}
		n.under = append(n.under, files)
	}
	return n
}
