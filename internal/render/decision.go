package render

import (
	"fmt"
	"strings"

	"signalbox/internal/command"
	"signalbox/internal/decision"
	"signalbox/internal/policy"
)

// ReplyMarker is the first line of an answer to a cause, such as a command in a
// comment; by it an answer is given once.
func ReplyMarker(cause string) string { return "<!-- signalbox reply " + cause + " -->" }

// Help lists the commands of a pull request.
func Help() string {
	var b strings.Builder
	b.WriteString("| Command | Who | What it does |\n|---|---|---|\n")
	for _, s := range command.PullSpecs() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", code(s.Usage), inline(s.Who), inline(s.Does))
	}
	b.WriteString("\nA command is a line of its own in a new comment, or in the text of a review.\n")
	return b.String()
}

// Answer is the verdict in short, for who asks for it.
func Answer(v *policy.Verdict) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n\n", gateSign[v.State()], headline(v))
	fmt.Fprintf(&b, "- Preconditions: %s\n- Approval: %s\n", inline(v.Preconditions.Reason), inline(v.Approval.Reason))
	return b.String()
}

// MergeWaits says what a request to merge waits for.
func MergeWaits(v *policy.Verdict) string {
	return "signalbox merges this as soon as it is clear. A push, a hold or `/merge cancel` ends that.\n\n" + Answer(v)
}

// MergeEnded says how a request to merge ended; no reason means that it was
// merged.
func MergeEnded(request decision.Entry, why string) string {
	who := inline(request.By.Login)
	if why == "" {
		return fmt.Sprintf("Merged %s as %s asked.", code(short(request.Head)), who)
	}
	return fmt.Sprintf("%s was not merged as %s asked: %s\n\nThe request has ended; `/merge` asks again.", code(short(request.Head)), who, inline(why))
}

// decisions shows what people decided and is in force.
func decisions(b *strings.Builder, v *policy.Verdict) {
	for _, f := range v.Freezes {
		fmt.Fprintf(b, "🧊 **Frozen by %s** since %s until %s%s. %s, an approver, or who may override ends it with `/unfreeze`. Said on %s.\n\n",
			inline(f.By.Login), stamp(f.At), stamp(f.Until), because(f.Reason), inline(f.By.Login),
			link(fmt.Sprintf("pull request %d", f.Number), f.URL))
	}
	for _, h := range v.Holds {
		fmt.Fprintf(b, "✋ **Held by %s** since %s%s. %s or an approver lifts it with `/unhold`.\n\n",
			inline(h.By.Login), stamp(h.At), because(h.Reason), inline(h.By.Login))
	}
	for _, o := range v.Overrides {
		fmt.Fprintf(b, "⏩ **Overridden by %s** until %s%s. It passes: %s.\n\n",
			inline(o.By.Login), stamp(o.Until), because(o.Reason), inline(strings.Join(o.Passes, "; ")))
	}
	if v.Merge != nil {
		fmt.Fprintf(b, "🔀 %s asked to merge. signalbox does it as soon as this is clear.\n\n", inline(v.Merge.By.Login))
	}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + inline(reason)
}
