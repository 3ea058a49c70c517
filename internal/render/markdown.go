package render

import (
	"fmt"
	"strings"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// MaxComment bounds a comment, in bytes.
const MaxComment = 60_000

// Marker is the first line of the comment of a pull request. It is invisible
// and names the pull request, so that a copy elsewhere is not taken for it.
func Marker(ref pull.Ref) string { return "<!-- signalbox verdict " + ref.String() + " -->" }

// Comment is the comment of a verdict, at most [MaxComment] bytes: the longest
// evidence is cut first, between lines, then rows are left out, and it says so.
func Comment(v *policy.Verdict) string {
	limit := limits{evidence: 8192, rows: 200}
	for {
		s := comment(v, limit)
		if len(s) <= MaxComment || limit.rows <= 1 {
			return s
		}
		if limit.evidence > 128 {
			limit.evidence /= 2
		} else {
			limit.rows /= 2
		}
	}
}

// limits are what a comment is cut to.
type limits struct {
	// evidence bounds the text of one piece of evidence, in bytes.
	evidence int
	// rows bounds the rows of a table and the sections of evidence.
	rows int
}

func comment(v *policy.Verdict, limit limits) string {
	var b strings.Builder
	b.WriteString(Marker(v.Ref) + "\n")
	fmt.Fprintf(&b, "### %s %s\n\n", gateSign[v.State()], headline(v))
	fmt.Fprintf(&b, "%s into %s\n\n", code(short(v.Head)), code(v.Base))
	problems(&b, v, limit)
	decisions(&b, v)
	preconditions(&b, v, limit)
	approvals(&b, v, limit)
	proposed(&b, v)
	evidence(&b, v, limit)
	footer(&b, v)
	return b.String()
}

var gateSign = map[policy.GateState]string{
	policy.Clear: "🟢", policy.Waiting: "🟡", policy.Blocked: "🔴", policy.Undecided: "⚪",
}

var resultSign = map[policy.ResultState]string{
	policy.Met: "✅", policy.Unmet: "❌", policy.Unknown: "❓", policy.NotApplicable: "➖", policy.Overridden: "⏩",
}

// headline says in a few words how it stands.
func headline(v *policy.Verdict) string {
	switch v.State() {
	case policy.Clear:
		return "Clear to merge"
	case policy.Blocked:
		return "Blocked"
	case policy.Undecided:
		return "Cannot decide"
	case policy.Waiting:
	}
	var open []string
	if n := openResults(v); n > 0 {
		open = append(open, count(n, "precondition"))
	}
	if n := openApprovals(v); n > 0 {
		open = append(open, count(n, "approval rule"))
	}
	if len(v.Holds) > 0 {
		open = append(open, count(len(v.Holds), "hold"))
	}
	return "Waiting for " + enumerate(open)
}

// enumerate joins texts as a sentence does.
func enumerate(texts []string) string {
	if n := len(texts) - 1; n > 0 {
		return strings.Join(texts[:n], ", ") + " and " + texts[n]
	}
	return strings.Join(texts, "")
}

func openResults(v *policy.Verdict) int {
	n := 0
	for _, r := range v.Results {
		if r.State == policy.Unmet || r.State == policy.Unknown {
			n++
		}
	}
	return n
}

func openApprovals(v *policy.Verdict) int {
	n := 0
	for _, r := range v.Approvals {
		if r.State == policy.Unmet || r.State == policy.Unknown {
			n++
		}
	}
	return n
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func problems(b *strings.Builder, v *policy.Verdict, limit limits) {
	for i, p := range v.Problems {
		if i == limit.rows {
			fmt.Fprintf(b, "…and %s more.\n\n", count(len(v.Problems)-i, "problem"))
			return
		}
		first, rest, _ := strings.Cut(p.Text, "\n")
		fmt.Fprintf(b, "%s **%s**\n\n", gateSign[p.State], inline(first))
		if rest != "" {
			b.WriteString(block(cutLines(rest, limit.evidence)) + "\n")
		}
	}
	for _, r := range v.Rejections {
		fmt.Fprintf(b, "🔴 **%s asks for changes.** It stands until %s approves or the review is dismissed.\n\n", inline(r.Person.Login), inline(r.Person.Login))
	}
	for _, g := range v.Gaps {
		fmt.Fprintf(b, "🔓 Gitea does not hold %s to this: %s. `bot doctor` says how to mend it.\n\n", code(v.Base), inline(g))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(b, "⚠️ %s\n\n", inline(n))
	}
}

func preconditions(b *strings.Builder, v *policy.Verdict, limit limits) {
	rows := make([][3]string, 0, len(v.Results))
	aside := 0
	for _, r := range v.Results {
		if r.State == policy.NotApplicable {
			aside++
			continue
		}
		rows = append(rows, [3]string{resultSign[r.State], inline(r.Name), checkLines(r)})
	}
	table(b, [2]string{"Precondition", "What is true now"}, rows, limit)
	if aside > 0 {
		fmt.Fprintf(b, "%s not about this change.\n\n", capital(isAre(aside, "precondition")))
	}
}

// checkLines are the findings of one precondition, a line for each cluster.
func checkLines(r policy.Result) string {
	if len(r.Checks) == 0 {
		return inline(r.Reason)
	}
	lines := make([]string, len(r.Checks))
	for i, c := range r.Checks {
		lines[i] = capital(inline(c.Reason))
		if len(r.Checks) > 1 {
			lines[i] = resultSign[c.State] + " " + lines[i]
		}
		if c.State != policy.Met && !c.Since.IsZero() && !strings.Contains(c.Reason, stamp(c.Since)) {
			lines[i] += " *(since " + stamp(c.Since) + ")*"
		}
	}
	return strings.Join(lines, "<br>")
}

func approvals(b *strings.Builder, v *policy.Verdict, limit limits) {
	var rows [][3]string
	aside := 0
	for _, r := range v.Approvals {
		if r.State == policy.NotApplicable {
			aside++
			continue
		}
		var text strings.Builder
		text.WriteString(capital(inline(r.Reason)))
		for _, w := range r.Voided {
			text.WriteString("<br>🚫 " + inline(w.Person.Login+": "+w.Why))
		}
		rows = append(rows, [3]string{resultSign[r.State], inline(r.Name), text.String()})
	}
	table(b, [2]string{"Approval", "Who"}, rows, limit)
	if aside > 0 {
		fmt.Fprintf(b, "%s not about this change.\n\n", capital(isAre(aside, "approval rule")))
	}
}

func table(b *strings.Builder, heads [2]string, rows [][3]string, limit limits) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "| | %s | %s |\n|---|---|---|\n", heads[0], heads[1])
	for i, row := range rows {
		if i == limit.rows {
			fmt.Fprintf(b, "| | …and %s more | |\n", count(len(rows)-i, "row"))
			break
		}
		fmt.Fprintf(b, "| %s | **%s** | %s |\n", row[0], row[1], row[2])
	}
	b.WriteByte('\n')
}

func proposed(b *strings.Builder, v *policy.Verdict) {
	if v.Proposed == nil {
		return
	}
	if len(v.Proposed.Problems) > 0 {
		b.WriteString("🔴 **This pull request changes the policy, and the new one is not valid:**\n\n")
		b.WriteString(block(cutLines(strings.Join(v.Proposed.Problems, "\n"), 8192)) + "\n")
		return
	}
	fmt.Fprintf(b, "This pull request changes the policy. It is judged by the policy of %s. Under its own it would be: %s preconditions – %s; %s approval – %s.\n\n",
		code(v.Base), gateSign[v.Proposed.Preconditions.State], inline(v.Proposed.Preconditions.Reason),
		gateSign[v.Proposed.Approval.State], inline(v.Proposed.Approval.Reason))
}

func evidence(b *strings.Builder, v *policy.Verdict, limit limits) {
	sections := 0
	for _, r := range v.Results {
		for _, c := range r.Checks {
			if len(c.Evidence) == 0 {
				continue
			}
			if sections == limit.rows {
				b.WriteString("…and more evidence, left out.\n\n")
				return
			}
			sections++
			where := ""
			if c.Cluster != "" {
				where = " on " + c.Cluster
			}
			fmt.Fprintf(b, "<details><summary>%s Evidence: %s</summary>\n\n", resultSign[c.State], htmlText(r.Name+where))
			var text strings.Builder
			evidenceLines(&text, "", c.Evidence)
			if !c.Since.IsZero() {
				fmt.Fprintf(&text, "since: %s\n", stamp(c.Since))
			}
			b.WriteString(block(cutLines(text.String(), limit.evidence)))
			b.WriteString("\n</details>\n\n")
		}
	}
}

// evidenceLines writes pieces of evidence, a line each, with what they are made
// of below them.
func evidenceLines(b *strings.Builder, indent string, ev []policy.Evidence) {
	for _, e := range ev {
		fmt.Fprintf(b, "%s%s: %s\n", indent, oneLine(e.Label), strings.ReplaceAll(strings.TrimSpace(e.Value), "\n", "\n"+indent+"    "))
		evidenceLines(b, indent+"  ", e.Parts)
	}
}

// cutLines cuts text between lines to about a number of bytes, and says so.
func cutLines(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	size, n := 0, 0
	for n < len(lines) && size+len(lines[n])+1 <= limit {
		size += len(lines[n]) + 1
		n++
	}
	if n == 0 {
		// One line alone is too long: keep its beginning.
		return clip(lines[0], limit/4) + fmt.Sprintf("\n… (%s cut)", count(len(lines)-1, "line"))
	}
	return strings.Join(lines[:n], "\n") + fmt.Sprintf("\n… (%s cut)", count(len(lines)-n, "line"))
}

func footer(b *strings.Builder, v *policy.Verdict) {
	b.WriteString("<sub>signalbox keeps this comment true as the cluster changes. ")
	switch {
	case len(v.Policies) == 0 && len(v.Problems) == 0:
		fmt.Fprintf(b, "%s has no policy (%s).", code(v.Base), code(policy.Path))
	case len(v.Policies) > 0:
		names := make([]string, len(v.Policies))
		for i, n := range v.Policies {
			names[i] = code(n)
		}
		fmt.Fprintf(b, "Policy: %s.", strings.Join(names, ", "))
	}
	b.WriteString("</sub>\n")
}
