package render

import (
	"signalbox/internal/decision"
	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// BecameClear says that the head is clear. Like the others here it is one line,
// for the thread of a card.
func BecameClear(v *policy.Verdict) Talk {
	return Talk{Paragraph{Plain("🟢 "), Code(short(v.Head)), Plain(" is clear to merge into "), Code(v.Base), Plain(".")}}
}

// BecameBlocked says what blocks; see [BecameClear].
func BecameBlocked(v *policy.Verdict) Talk {
	why := v.Preconditions.Reason
	if v.Preconditions.State != v.State() {
		why = v.Approval.Reason
	}
	return Talk{Paragraph{Plain(gateSignOf(v.State()) + " "), Code(short(v.Head)), Plain(" cannot go on: " + why)}}
}

// WasMerged says who merged; see [BecameClear].
func WasMerged(p pull.Pull) Talk {
	return Talk{Paragraph(append(Line{Plain("🟣 ")}, mergedLine(p)...))}
}

// WasClosed says that it was closed without a merge; see [BecameClear].
func WasClosed() Talk { return Talk{Paragraph{Plain("⚫ Closed without a merge.")}} }

// WasOverridden says who passed what, and why; see [BecameClear].
func WasOverridden(o decision.Entry) Talk {
	return Talk{Paragraph(append(append(Line{Plain("⏩ ")}, overriddenLine(o)...), Plain(" · passes "+someOf(o.Passes, cardRows)+" on "), Code(short(o.Head))))}
}
