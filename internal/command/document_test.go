package command_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/command"
)

var update = flag.Bool("update", false, "write docs/commands.md")

const document = "../../docs/commands.md"

// TestDocumentIsCurrent keeps the page of the commands as the table has them:
// go test ./internal/command -run Document -update.
func TestDocumentIsCurrent(t *testing.T) {
	var b strings.Builder
	b.WriteString(head)
	b.WriteString("| Command | Who | What it does |\n|---|---|---|\n")
	for _, s := range command.PullSpecs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Usage, s.Who, s.Does)
	}
	b.WriteString(foot)
	b.WriteString(chatHead)
	b.WriteString("| Command | Who | What it does |\n|---|---|---|\n")
	for _, s := range command.ChatSpecs() {
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", s.Chat, s.Who, s.Does)
	}
	b.WriteString(chatFoot)
	if *update {
		if err := os.WriteFile(document, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), string(have)); diff != "" {
		t.Errorf("docs/commands.md is stale; write it with -update (-want +have):\n%s", diff)
	}
}

const head = `# Commands

<!-- Made from internal/command by its test; edit it there. -->

People steer signalbox by commands on the pull request: in a new comment, or in the text of a review.

`

const foot = `
## What counts

- A command is a whole line that starts with the slash. A line within code, a quote, a list, a heading or an
  HTML comment is none, nor is a slash in the middle of a sentence.
- It counts in a comment as it was created. Anybody who may write can edit a comment, so nobody knows who says
  what was edited: such a command is refused, once, and has to be written in a new comment. For the same reason
  a command is acted upon about two seconds after it was written. Deleting a comment does not undo what it said.
- Each comment is dealt with once, however often Gitea tells of it, and also if its webhook was lost.
- If several commands of one comment contradict each other, the one that stops wins: ` + "`/hold` over `/unhold`\n  and `/merge`, `/freeze` over `/unfreeze` and `/merge`, and `cancel`" + ` over what it takes back.
- An approval, an override and a merge are for the head that was there when the comment was written. If
  something was pushed since, or the base was changed, they are refused. With the whole SHA an approval is for that
  head and no other. The beginning of a SHA is taken as well, but proves nothing by itself, because two commits that
  begin alike can be made: it has to be the only such commit of the change, and nothing may have been pushed since.
- ` + "`/unhold` and `/unfreeze`" + ` lift what was in force when they were written, and nothing that came later.
- signalbox answers with a reaction: eyes while it works, +1 when it is done, -1 when it refused, with one reply
  that says why and who may.

## What a decision is bound to

Every command has an entry in the ledger, which nobody can change or shorten: who (the id of the account in
Gitea), what, on which repository, pull request, base, head and diff, where, when and why. ` + "`bot audit`" + ` shows it.

| Decision | Ends with |
|---|---|
| approval | a push, unless the rule says ` + "`survive: identical-diff`" + ` and the diff is the same; a changed base; ` + "`/approve cancel`" + `; the end of the person's right to approve |
| override | its time (` + "`override.ttl`" + `); a push; a changed base; ` + "`/approve-override cancel`" + `; the end of the person's right to override |
| hold | ` + "`/unhold`" + ` by who holds, or by an approver |
| freeze | its time, or ` + "`/unfreeze`" + ` by who froze, an approver, or who may override; nothing else |
| request to merge | the merge; a push; a changed base; a hold; ` + "`/merge cancel`" + `; a refusal of Gitea |

An override passes the rules that were open when it was given, and no others. It does not pass a review that asks
for changes, nor a policy that is not valid.

## Freezes

` + "`/freeze 2h etcd is being restored`" + ` on any open pull request stops all of the repository, whatever the policy says and
also without one: an unmet precondition, "the repository is not frozen", is in every verdict until the freeze ends.

- How long is said as 30m, 2h, 1h30m or 3d, or as ` + "`until`" + ` and a time with its zone, 14 days at most. It is counted
  from the time of the comment. A freeze that would have ended before signalbox read of it is refused.
- It is in force when signalbox answers with +1, and the other pull requests show it a moment later. What is merged
  before that is merged.
- Who may write to the repository may freeze it. The author of a pull request may not for that alone.
- ` + "`/unfreeze`" + ` may be said on any open pull request too. Who froze may end their own freezes. Who approves the change
  where it is said, or is on an override list there, may end all of them, unless they are its author. Several
  freezes may be in force, and those that stay are named in the reply.
- A freeze outlives pushes, closed pull requests and restarts. When it ends, every verdict is made anew by itself.
- A request to merge waits for the end of the freeze, and then everything is read again before the merge.
- An override given while the repository is frozen passes the freeze on that pull request, by an operator's or the
  repository's list. A freeze that comes after the override is not passed by it.
- The entry of the ledger names the pull request where it was said. A pull request cannot be frozen alone: that is
  ` + "`/hold`" + `.
`

const chatHead = `
## In chat

The same commands can be given in Slack and Matrix, and some that only make sense there: in Slack as
` + "`/signalbox approve home-gitops#12`, in Matrix as `!signalbox approve home-gitops#12`, and in both after a mention of\nsignalbox or in a direct conversation as `approve home-gitops#12`" + `.

`

const chatFoot = `
- PULL comes right after the command: ` + "`home-gitops#12`, `ops/home-gitops#12`" + `, or the address of the pull request. In
  the thread of a card it may be left out, and ` + "`#12`" + ` is another pull request of the same repository. REPO is
  ` + "`home-gitops` or `ops/home-gitops`" + `. Where a REPO stands, a PULL may stand for its repository, but not for ` + "`list`,\n  `subscribe` and `unsubscribe`" + `.
- A name without an owner has to be that of one repository only of those that you may see, counting those that Gitea
  does not tell of just now. A number alone is, outside of such a thread, one of the only repository that the room is
  subscribed to, or that you may see.
- The case of the letters of a command does not matter, and a slash before it is ignored. A word that is nearly a
  command is answered with the command that was probably meant; it is not carried out.
- What a pull request is asked for is carried out there, as if it stood in a comment, with the rules above. The answer
  names the pull request and the commit that it is bound to. What was decided is told on the pull request too, with
  who, where and the commit.
- An approval, an override and a merge are for the commit that the card of the room showed when it was said; an approval
  may name the whole SHA instead. What was said before the card showed its present commit, or within 5 seconds of that, is
  refused, for nobody knows which commit was meant.
- Readers are all in a room that is subscribed to the repository or, for one pull request, has its card; elsewhere
  those whom signalbox knows in Gitea and who can read the repository there. To all others, and also to those who
  would decide, signalbox answers as if there were no such repository. If signalbox's account does not administer the
  repository, Gitea does not tell who can read it, and it is shown in its rooms alone.
- Whoever signalbox does not know in Gitea may only read. ` + "`link` gives a code, and `/link CODE` in a comment on any pull\n  request, from the account in Gitea, says whose the account in chat is. `link cancel`" + ` takes that back,
  and ` + "`/link cancel`" + ` on a pull request ends all links to the account that writes it.
- PATH is a glob as in a policy, such as ` + "`clusters/**`" + `, 20 at most.
`
