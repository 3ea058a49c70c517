//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
)

// decisionPolicy lets people decide everything. It asks nothing of a cluster.
const decisionPolicy = approvalPolicy + `override: {from: {users: [alice]}, ttl: 1h}
merge: {enabled: true}
`

// alone is the stage with a working copy of its own, for a scene beside others.
func (st *stage) alone(t *testing.T) *stage {
	t.Helper()
	clone, err := st.repo.Clone(t.Context(), st.repo.Bob, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return &stage{repo: st.repo, bot: st.bot, clone: clone}
}

// say comments on the pull request.
func (p *page) say(by realserver.User, text string) int64 {
	p.t.Helper()
	c, _, err := client(p.t, p.repo, by).CreateIssueComment(p.repo.Owner, p.repo.Name, p.number, sdk.CreateIssueCommentOption{Body: text})
	if err != nil {
		p.t.Fatal(err)
	}
	return c.ID
}

// rewrite changes somebody's comment.
func (p *page) rewrite(by realserver.User, comment int64, text string) {
	p.t.Helper()
	if _, _, err := client(p.t, p.repo, by).EditIssueComment(p.repo.Owner, p.repo.Name, comment, sdk.EditIssueCommentOption{Body: text}); err != nil {
		p.t.Fatal(err)
	}
}

// reactions are those of signalbox to a comment.
func (p *page) reactions(comment int64) (string, error) {
	all, _, err := p.reader.GetIssueCommentReactions(p.repo.Owner, p.repo.Name, comment)
	if err != nil {
		return "", err
	}
	var own []string
	for _, r := range all {
		if r.User.UserName == p.repo.Bot.Name {
			own = append(own, r.Reaction)
		}
	}
	return strings.Join(own, " "), nil
}

// gets waits until a comment has one reaction and no other.
func (p *page) gets(comment int64, want string) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("comment %d gets %s", comment, want), func() error {
		got, err := p.reactions(comment)
		if err != nil || got == want {
			return err
		}
		s, err := p.look()
		if err != nil {
			return err
		}
		return fmt.Errorf("it has %q\n%s", got, s)
	})
}

// ends waits until a comment has its last reaction, and returns that.
func (p *page) ends(comment int64) string {
	p.t.Helper()
	last := ""
	eventually(p.t, patience, fmt.Sprintf("comment %d is answered", comment), func() error {
		got, err := p.reactions(comment)
		if last = got; err == nil && got != "+1" && got != "-1" {
			err = fmt.Errorf("it has %q", got)
		}
		return err
	})
	return last
}

// refused waits until a command is refused with a text.
func (p *page) refused(comment int64, text string) {
	p.t.Helper()
	p.gets(comment, "-1")
	p.replies(text)
}

// replies waits until signalbox answered with each of the texts, and returns
// all its answers.
func (p *page) replies(texts ...string) []string {
	p.t.Helper()
	var all []string
	eventually(p.t, patience, fmt.Sprintf("replies say %q", texts), func() error {
		s, err := p.look()
		if err != nil {
			return err
		}
		all = nil
		for _, c := range s.replies {
			all = append(all, strings.ReplaceAll(plain(c.Body), "`", ""))
		}
		for _, text := range texts {
			if !strings.Contains(strings.Join(all, "\n"), text) {
				return fmt.Errorf("it shows\n%s", s)
			}
		}
		return nil
	})
	return all
}

// pull reads the pull request.
func (p *page) pull() *sdk.PullRequest {
	p.t.Helper()
	pr, _, err := p.reader.GetPullRequest(p.repo.Owner, p.repo.Name, p.number)
	if err != nil {
		p.t.Fatal(err)
	}
	return pr
}

// merged waits until the pull request is merged by signalbox at a head.
func (p *page) merged(head string) {
	p.t.Helper()
	eventually(p.t, patience, fmt.Sprintf("pull request %d is merged", p.number), func() error {
		pr := p.pull()
		if !pr.HasMerged {
			s, err := p.look()
			if err != nil {
				return err
			}
			return fmt.Errorf("it is %s\n%s", pr.State, s)
		}
		if pr.MergedBy.UserName != p.repo.Bot.Name || pr.Head.Sha != head {
			p.t.Fatalf("it was merged by %s at %s, want by signalbox at %s", pr.MergedBy.UserName, pr.Head.Sha, head)
		}
		return nil
	})
}

// still waits until signalbox has seen all that was said up to now, and fails
// if the pull request is merged then.
func (p *page) still(by realserver.User) {
	p.t.Helper()
	p.settle(by)
	if p.pull().HasMerged {
		p.t.Fatal("it was merged")
	}
}

// settle waits until signalbox has dealt with all that was said up to now:
// commands are answered in the order of their comments.
func (p *page) settle(by realserver.User) {
	p.t.Helper()
	p.gets(p.say(by, "/help"), "+1")
}

// carriedOut counts how often the program carried out what a comment asks for.
func (b *bot) carriedOut(comment int64) int {
	n := 0
	for line := range strings.Lines(b.log()) {
		if strings.Contains(line, `"msg":"command carried out"`) && strings.Contains(line, fmt.Sprintf(`"entry":"comment/%d/`, comment)) {
			n++
		}
	}
	return n
}

// newTap is a way from signalbox to Gitea on which requests can be stopped.
func newTap(t *testing.T) *realserver.Tap {
	t.Helper()
	tap, err := realserver.NewTap(world.Gitea.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	return tap
}
