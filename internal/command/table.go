package command

import "slices"

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

// The commands of chat; on a pull request there is only the answer to a [Link].
const (
	Status      Name = "status"
	Who         Name = "who"
	List        Name = "list"
	Health      Name = "health"
	Digest      Name = "digest"
	Subscribe   Name = "subscribe"
	Unsubscribe Name = "unsubscribe"
	Link        Name = "link"
)

// Cancel is the argument that takes a command back.
const Cancel = "cancel"

// Spec describes a command, or one of its forms.
type Spec struct {
	Name Name
	// Usage is how it is written on a pull request, or empty where it cannot be
	// given there.
	Usage string
	// Chat is how it is written in chat, or empty. PULL and REPO stand for what
	// [Target] describes.
	Chat string
	// Who may give it, in words.
	Who string
	// Does is one sentence.
	Does string
	// about is what it is about in chat.
	about about
	// parse checks the arguments; it returns what is wrong with them.
	parse func(*Command, string) string
}

// about is what a command of chat is about.
type about int

const (
	// aboutNothing: signalbox itself, or who says it.
	aboutNothing about = iota
	// aboutPull: a pull request; that of the thread where none is named.
	aboutPull
	// aboutEither: a repository, or the one of a pull request.
	aboutEither
	// aboutRepo: a repository, which has to be named.
	aboutRepo
	// aboutAnyRepo: a repository, or all of them.
	aboutAnyRepo
)

// Specs are all commands, in the order of the help.
func Specs() []Spec {
	return []Spec{
		{Approve, "/approve [SHA]", "approve PULL [SHA]", "approvers, not the author", "Approve the head that is shown. With a SHA it is refused if the head is another.", aboutPull, parseApprove},
		{Approve, "/approve cancel", "approve PULL cancel", "whoever approved", "Take your approval back.", aboutPull, parseApprove},
		{Override, "/approve-override REASON", "approve-override PULL REASON", "the override list, not the author", "Pass what is unmet, unknown or unapproved now. It ends after its time, or with the next push.", aboutPull, parseOverride},
		{Override, "/approve-override cancel", "approve-override PULL cancel", "the override list", "End the override.", aboutPull, parseOverride},
		{Hold, "/hold [REASON]", "hold PULL [REASON]", "writers, and the author", "Stop the pull request until the hold is lifted.", aboutPull, parseText},
		{Unhold, "/unhold", "unhold PULL", "the owner of the hold, or an approver", "Lift the hold.", aboutPull, parseNothing},
		{Freeze, "/freeze DURATION [REASON]", "freeze REPO DURATION [REASON]", "writers", "Stop every pull request of the repository for a time such as 30m, 2h, 1h30m or 3d, 14 days at most.", aboutEither, parseFreeze},
		{Freeze, "/freeze until TIME [REASON]", "freeze REPO until TIME [REASON]", "writers", "Stop every pull request of the repository until a time such as 2026-12-01T08:00Z.", aboutEither, parseFreeze},
		{Unfreeze, "/unfreeze", "unfreeze REPO", "who froze, an approver, the override list", "End the freezes of the repository that you may end.", aboutEither, parseNothing},
		{Recheck, "/recheck", "recheck PULL", "writers", "Read everything afresh and evaluate again now.", aboutPull, parseNothing},
		{Merge, "/merge", "merge PULL", "writers, where merging is enabled", "Merge as soon as everything is clear, after checking all of it again.", aboutPull, parseCancel},
		{Merge, "/merge cancel", "merge PULL cancel", "writers", "Take the merge back.", aboutPull, parseCancel},
		{Status, "", "status PULL", "readers", "Say in short how it stands.", aboutPull, parseNothing},
		{Preconditions, "/preconditions", "preconditions PULL", "readers", "Answer with the verdict.", aboutPull, parseNothing},
		{Who, "", "who PULL", "readers", "Say who can approve it.", aboutPull, parseNothing},
		{List, "", "list [REPO]", "readers", "List the open pull requests by how they stand: those that you may see here.", aboutAnyRepo, parseNothing},
		{Health, "", "health", "anyone", "Say which clusters are heard from.", aboutNothing, parseNothing},
		{Digest, "", "digest [NAME]", "rooms of the digest, and writers", "Say how things stand now, as the digest of that name would.", aboutNothing, parseText},
		{Subscribe, "", "subscribe REPO [PATH...] [sensitive]", "writers", "Show the pull requests of the repository in this room: all, or only those that change one of the paths, or with \"sensitive\" only those that somebody has to approve.", aboutRepo, parseNothing},
		{Unsubscribe, "", "unsubscribe REPO", "writers", "Show them no longer.", aboutRepo, parseNothing},
		{Link, "/link CODE", "", "whoever asked for the code", "Say that the account in chat that asked for the code is yours.", aboutNothing, parseCode},
		{Link, "/link cancel", "", "whose account it is", "End what links accounts in chat to yours, all of it.", aboutNothing, parseCode},
		{Link, "", "link", "anyone", "Get a code by which you show which account in Gitea is yours.", aboutNothing, parseCancel},
		{Link, "", "link cancel", "whose account it is", "Take that back.", aboutNothing, parseCancel},
		{Help, "/help", "help", "anyone", "List the commands.", aboutNothing, parseNothing},
	}
}

// PullSpecs are those of the commands that can be given on a pull request.
func PullSpecs() []Spec { return onlyThose(func(s Spec) bool { return s.Usage != "" }) }

// ChatSpecs are those of the commands that can be given in chat.
func ChatSpecs() []Spec { return onlyThose(func(s Spec) bool { return s.Chat != "" }) }

func onlyThose(keep func(Spec) bool) []Spec {
	return slices.DeleteFunc(Specs(), func(s Spec) bool { return !keep(s) })
}

func specOf(n Name, specs []Spec) (Spec, bool) {
	i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == n })
	if i < 0 {
		return Spec{}, false
	}
	return specs[i], true
}
