package command

// Name is the word of a command, without the slash.
type Name string

// The commands.
const (
	Approve       Name = "approve"
	Override      Name = "approve-override"
	Hold          Name = "hold"
	Unhold        Name = "unhold"
	Freeze        Name = "freeze"
	Unfreeze      Name = "unfreeze"
	Recheck       Name = "recheck"
	Merge         Name = "merge"
	Preconditions Name = "preconditions"
	Help          Name = "help"
)

// Cancel is the argument that takes a command back.
const Cancel = "cancel"

// Spec describes a command.
type Spec struct {
	Name Name
	// Usage is how it is written.
	Usage string
	// Who may give it, in words.
	Who string
	// Does is one sentence.
	Does string
	// parse checks the arguments; it returns what is wrong with them.
	parse func(*Command, string) string
}

// Specs are all commands, in the order of the help.
func Specs() []Spec {
	return []Spec{
		{Approve, "/approve [SHA]", "approvers, not the author", "Approve the head that is shown. With a SHA it is refused if the head is another.", parseApprove},
		{Approve, "/approve cancel", "whoever approved", "Take your approval back.", parseApprove},
		{Override, "/approve-override REASON", "the override list, not the author", "Pass what is unmet, unknown or unapproved now. It ends after its time, or with the next push.", parseOverride},
		{Override, "/approve-override cancel", "the override list", "End the override.", parseOverride},
		{Hold, "/hold [REASON]", "writers, and the author", "Stop the pull request until the hold is lifted.", parseText},
		{Unhold, "/unhold", "the owner of the hold, or an approver", "Lift the hold.", parseNothing},
		{Freeze, "/freeze DURATION [REASON]", "writers", "Stop every pull request of the repository for a time such as 30m, 2h, 1h30m or 3d, 14 days at most.", parseFreeze},
		{Freeze, "/freeze until TIME [REASON]", "writers", "Stop every pull request of the repository until a time such as 2026-12-01T08:00Z.", parseFreeze},
		{Unfreeze, "/unfreeze", "who froze, an approver, the override list", "End the freezes of the repository that you may end.", parseNothing},
		{Recheck, "/recheck", "writers", "Read everything afresh and evaluate again now.", parseNothing},
		{Merge, "/merge", "writers, where merging is enabled", "Merge as soon as everything is clear, after checking all of it again.", parseMerge},
		{Merge, "/merge cancel", "writers", "Take the merge back.", parseMerge},
		{Preconditions, "/preconditions", "readers", "Answer with the verdict.", parseNothing},
		{Help, "/help", "anyone", "List the commands.", parseNothing},
	}
}

func specOf(n Name) (Spec, bool) {
	for _, s := range Specs() {
		if s.Name == n {
			return s, true
		}
	}
	return Spec{}, false
}

func names() []string {
	var out []string
	for _, s := range Specs() {
		if len(out) == 0 || out[len(out)-1] != string(s.Name) {
			out = append(out, string(s.Name))
		}
	}
	return out
}
