//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// page is a pull request as a person sees it.
type page struct {
	t      *testing.T
	repo   *seed.Repository
	number int64
	// reader is bob, who may do no more than write.
	reader *sdk.Client
	// watch, if not nil, sees the page at every look.
	watch func(shown)
}

func plant(t *testing.T, o seed.Options) *seed.Repository {
	t.Helper()
	name := world.Name(t)
	if o.Owner == "" {
		o.Owner = name
	}
	if o.Namespace == "" {
		o.Namespace = name
	}
	repo, err := seed.Plant(t.Context(), world, o)
	if err != nil {
		t.Fatal(err)
	}
	return repo
}

// bootstrap lets Flux apply a repository until the test ends.
func bootstrap(t *testing.T, repo *seed.Repository) {
	t.Helper()
	if err := repo.Bootstrap(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
		defer cancel()
		if err := repo.Uproot(ctx); err != nil {
			t.Error(err)
		}
	})
}

func newPage(t *testing.T, repo *seed.Repository, number int64) *page {
	t.Helper()
	return &page{t: t, repo: repo, number: number, reader: client(t, repo, repo.Bob)}
}

// client is how a person talks to the Gitea of a repository.
func client(t *testing.T, repo *seed.Repository, u realserver.User) *sdk.Client {
	t.Helper()
	c, err := repo.World.Gitea.API(t.Context(), u.Token)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// status is one commit status.
type status struct{ State, Description, Creator string }

// shown is what signalbox shows on a pull request.
type shown struct {
	head                    string
	preconditions, approval status
	comments                []*sdk.Comment
	// replies are the answers to commands.
	replies []*sdk.Comment
}

func (s shown) String() string {
	text := fmt.Sprintf("head %s\npreconditions: %+v\napproval: %+v", s.head, s.preconditions, s.approval)
	for _, c := range s.comments {
		text += "\ncomment: " + c.Body
	}
	for _, c := range s.replies {
		text += "\nreply: " + c.Body
	}
	return text
}

// comment is the text of the one comment without its escapes.
func (s shown) comment() string {
	if len(s.comments) != 1 {
		return ""
	}
	return plain(s.comments[0].Body)
}

// plain takes the escapes out of a text of signalbox.
func plain(text string) string { return strings.NewReplacer("\\", "", "\u2060", "").Replace(text) }

func (p *page) look() (shown, error) {
	pr, _, err := p.reader.GetPullRequest(p.repo.Owner, p.repo.Name, p.number)
	if err != nil {
		return shown{}, err
	}
	s := shown{head: pr.Head.Sha}
	statuses, err := p.statuses(pr.Head.Sha)
	if err != nil {
		return shown{}, err
	}
	s.preconditions = statuses["signalbox / preconditions ("+pr.Base.Ref+")"]
	s.approval = statuses["signalbox / approval ("+pr.Base.Ref+")"]
	comments, _, err := p.reader.ListIssueComments(p.repo.Owner, p.repo.Name, p.number, sdk.ListIssueCommentOptions{})
	if err != nil {
		return shown{}, err
	}
	for _, c := range comments {
		switch {
		case c.Poster.UserName != p.repo.Bot.Name:
		case strings.HasPrefix(c.Body, "<!-- signalbox reply "):
			s.replies = append(s.replies, c)
		default:
			s.comments = append(s.comments, c)
		}
	}
	return s, nil
}

// statuses returns the newest status of each context on a commit.
func (p *page) statuses(sha string) (map[string]status, error) {
	newest, ids := map[string]status{}, map[string]int64{}
	for n := 1; ; n++ {
		list, _, err := p.reader.ListStatuses(p.repo.Owner, p.repo.Name, sha, sdk.ListStatusesOption{ListOptions: sdk.ListOptions{Page: n, PageSize: 50}})
		if err != nil {
			return nil, err
		}
		for _, st := range list {
			if st.ID > ids[st.Context] {
				ids[st.Context] = st.ID
				newest[st.Context] = status{State: string(st.State), Description: st.Description, Creator: creator(st)}
			}
		}
		if len(list) < 50 {
			return newest, nil
		}
	}
}

func creator(st *sdk.Status) string {
	if st.Creator == nil {
		return ""
	}
	return st.Creator.UserName
}

// shows waits until the page shows two states, exactly one comment, and texts
// in it. It returns the page and how long that took.
func (p *page) shows(limit time.Duration, preconditions, approval string, texts ...string) (shown, time.Duration) {
	p.t.Helper()
	start := time.Now()
	var s shown
	eventually(p.t, limit, fmt.Sprintf("pull request %d shows %s and %s", p.number, preconditions, approval), func() error {
		var err error
		if s, err = p.look(); err != nil {
			return err
		}
		if p.watch != nil {
			p.watch(s)
		}
		if s.preconditions.State != preconditions || s.approval.State != approval || len(s.comments) != 1 {
			return fmt.Errorf("it shows\n%s", s)
		}
		for _, text := range texts {
			if !strings.Contains(s.comment(), text) {
				return fmt.Errorf("the comment lacks %q:\n%s", text, s)
			}
		}
		return nil
	})
	return s, time.Since(start)
}

// reading is the description of a status before anything is decided.
const reading = "signalbox is reading this change"

// decided is nil once a head is shown as decided.
func (p *page) decided(head string) error {
	s, err := p.look()
	if err != nil {
		return err
	}
	if s.head != head || s.approval.State == "" || s.approval.Description == reading {
		return fmt.Errorf("it shows\n%s", s)
	}
	return nil
}
