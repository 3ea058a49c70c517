package gitea

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"signalbox/internal/events"
)

// source is the source of the events of this package.
const source = "gitea"

// The parts of a payload that are read. Everything may be missing or null.
type (
	hookUser struct {
		ID    int64  `json:"id"`
		Login string `json:"login"`
	}
	hookRepo struct {
		ID    int64     `json:"id"`
		Name  string    `json:"name"`
		Owner *hookUser `json:"owner"`
	}
	hookPayload struct {
		Action      string    `json:"action"`
		Number      int64     `json:"number"`
		Repository  *hookRepo `json:"repository"`
		Sender      *hookUser `json:"sender"`
		IsPull      bool      `json:"is_pull"`
		PullRequest *struct {
			Number int64 `json:"number"`
			Merged bool  `json:"merged"`
			Head   *struct {
				SHA string `json:"sha"`
			} `json:"head"`
		} `json:"pull_request"`
		Changes *struct {
			Ref *struct {
				From string `json:"from"`
			} `json:"ref"`
		} `json:"changes"`
		Issue *struct {
			Number int64 `json:"number"`
		} `json:"issue"`
		Comment *struct {
			ID   int64     `json:"id"`
			User *hookUser `json:"user"`
		} `json:"comment"`

		// Of Actions.
		WorkflowRun *hookRun `json:"workflow_run"`
		WorkflowJob *hookRun `json:"workflow_job"`

		// Of a push.
		Ref    string `json:"ref"`
		Before string `json:"before"`
		After  string `json:"after"`
		// Of a status.
		SHA     string `json:"sha"`
		Context string `json:"context"`
		State   string `json:"state"`
	}
)

// errIgnored marks a delivery that is well-formed and of no interest.
var errIgnored = errors.New("ignored")

// delivery is what a webhook says about itself.
type delivery struct {
	id    string
	event string
	kind  string
}

// deliveryID is what is accepted of an id: a UUID, or a token as short.
var deliveryID = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z._-]{7,63}$`)

// readDelivery reads the headers. Gitea sends its own and those of Gogs,
// Forgejo its own too; each family is taken as a whole.
func readDelivery(h http.Header, body []byte) delivery {
	d := delivery{}
	for _, family := range []string{"X-Gitea-", "X-Forgejo-", "X-Gogs-"} {
		if h.Get(family+"Event") != "" {
			d = delivery{id: h.Get(family + "Delivery"), event: h.Get(family + "Event"), kind: h.Get(family + "Event-Type")}
			break
		}
	}
	if !deliveryID.MatchString(d.id) {
		// The same body again is the same event; that is all an id is for.
		sum := sha256.Sum256(body)
		d.id = "body-" + hex.EncodeToString(sum[:16])
	}
	return d
}

// Decode turns a delivery into events: one, or none where the kind of event
// is of no interest. It trusts nothing of the delivery and never panics. The
// signature is the business of the intake.
//
// The id of an event is "gitea/" and the id of the delivery, so a delivery that
// arrives twice is one event.
func Decode(h http.Header, body []byte, now time.Time) ([]events.Event, error) {
	e, _, err := decode(readDelivery(h, body), body, now)
	switch {
	case errors.Is(err, errIgnored):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return []events.Event{e}, nil
}

// decode returns the event and the repository that it is about.
func decode(d delivery, body []byte, now time.Time) (events.Event, events.Repo, error) {
	read, ok := readers[d.event+" "+d.kind]
	if !ok && d.kind == "" {
		// Older versions send no type.
		read, ok = readers[d.event+" "+defaultKind[d.event]]
	}
	if !ok {
		return events.Event{}, events.Repo{}, errIgnored
	}
	var p hookPayload
	if err := json.Unmarshal(body, &p); err != nil {
		return events.Event{}, events.Repo{}, fmt.Errorf("payload of %s: %w", d.event, err)
	}
	repo, err := p.repo()
	if err != nil {
		return events.Event{}, events.Repo{}, fmt.Errorf("payload of %s: %w", d.event, err)
	}
	payload, err := read(&p, repo)
	if err != nil {
		return events.Event{}, repo, fmt.Errorf("payload of %s: %w", d.event, err)
	}
	e, err := events.New(source+"/"+d.id, source, now, payload)
	return e, repo, err
}

type reader func(*hookPayload, events.Repo) (events.Payload, error)

// readers maps event and type to how its payload is read. Types that change
// nothing that signalbox reads (assignees, milestones, wiki) are left out. The pair matters: a review comment is of event pull_request_comment, an
// ordinary comment of type pull_request_comment.
var readers = map[string]reader{
	"push push":                                          readPush,
	"status status":                                      readStatus,
	"workflow_run workflow_run":                          readRun,
	"workflow_job workflow_job":                          readJob,
	"issue_comment pull_request_comment":                 readComment,
	"issue_comment issue_comment":                        readComment,
	"pull_request pull_request":                          readPull(""),
	"pull_request pull_request_sync":                     readPull(""),
	"pull_request pull_request_label":                    readPull(""),
	"pull_request pull_request_review_request":           readPull(""),
	"pull_request_approved pull_request_review_approved": readPull("review_approved"),
	"pull_request_rejected pull_request_review_rejected": readPull("review_rejected"),
	"pull_request_comment pull_request_review_comment":   readPull("review_commented"),
}

// defaultKind is the type that an event without one is taken for.
var defaultKind = map[string]string{
	"push":                  "push",
	"status":                "status",
	"workflow_run":          "workflow_run",
	"workflow_job":          "workflow_job",
	"issue_comment":         "issue_comment",
	"pull_request":          "pull_request",
	"pull_request_approved": "pull_request_review_approved",
	"pull_request_rejected": "pull_request_review_rejected",
	"pull_request_comment":  "pull_request_review_comment",
}

func (p *hookPayload) repo() (events.Repo, error) {
	if p.Repository == nil || p.Repository.ID <= 0 || p.Repository.Name == "" ||
		p.Repository.Owner == nil || p.Repository.Owner.Login == "" {
		return events.Repo{}, errors.New("repository is missing or incomplete")
	}
	return events.Repo{ID: p.Repository.ID, Owner: p.Repository.Owner.Login, Name: p.Repository.Name}, nil
}

// person reads an account; negative ids are accounts that are none.
func (u *hookUser) person() events.Person {
	if u == nil {
		return events.Person{}
	}
	return events.Person{ID: max(u.ID, 0), Login: u.Login}
}

// word is what an action looks like.
var word = regexp.MustCompile(`^[a-z_]{1,40}$`)

// readPull reads an event about a pull request. A fixed action replaces that
// of the payload, which says "reviewed" for every review.
func readPull(fixed string) reader {
	return func(p *hookPayload, repo events.Repo) (events.Payload, error) {
		if p.PullRequest == nil {
			return nil, errors.New("pull_request is missing or null")
		}
		number := p.Number
		if number == 0 {
			number = p.PullRequest.Number
		}
		if number <= 0 {
			return nil, errors.New("number of the pull request is missing")
		}
		action := fixed
		if action == "" {
			action = pullAction(p)
		}
		if !word.MatchString(action) {
			return nil, errors.New("action is missing or no word")
		}
		out := events.PullChanged{Repo: repo, Number: number, Action: action, Sender: p.Sender.person()}
		if p.PullRequest.Head != nil && checkCommit(p.PullRequest.Head.SHA) == nil {
			out.Head = p.PullRequest.Head.SHA
		}
		return out, nil
	}
}

// pullAction tells apart what Gitea gives one word for.
func pullAction(p *hookPayload) string {
	switch {
	case p.Action == "closed" && p.PullRequest.Merged:
		return "merged"
	case p.Action == "edited" && p.Changes != nil && p.Changes.Ref != nil:
		return "retargeted"
	}
	return p.Action
}

func readPush(p *hookPayload, repo events.Repo) (events.Payload, error) {
	branch, ok := strings.CutPrefix(p.Ref, "refs/heads/")
	switch {
	case !ok && strings.HasPrefix(p.Ref, "refs/"):
		return nil, errIgnored
	case branch == "" || !ok:
		return nil, errors.New("ref is missing or no reference")
	}
	for _, sha := range []string{p.Before, p.After} {
		if sha != "" && checkCommit(sha) != nil {
			return nil, errors.New("before or after is no commit id")
		}
	}
	return events.BranchPushed{Repo: repo, Branch: branch, Before: p.Before, After: p.After, Sender: p.Sender.person()}, nil
}

func readComment(p *hookPayload, repo events.Repo) (events.Payload, error) {
	switch {
	case p.Comment == nil || p.Comment.ID <= 0:
		return nil, errors.New("comment is missing or null")
	case p.Issue == nil || p.Issue.Number <= 0:
		return nil, errors.New("issue is missing or null")
	case !p.IsPull:
		return nil, errIgnored
	}
	action := events.CommentAction(p.Action)
	switch action {
	case events.CommentCreated, events.CommentEdited, events.CommentDeleted:
	default:
		return nil, errors.New("action is not one of created, edited, deleted")
	}
	return events.CommentChanged{
		Repo:      repo,
		Number:    p.Issue.Number,
		CommentID: p.Comment.ID,
		Action:    action,
		Author:    p.Comment.User.person(),
		Sender:    p.Sender.person(),
	}, nil
}

func readStatus(p *hookPayload, repo events.Repo) (events.Payload, error) {
	if checkCommit(p.SHA) != nil {
		return nil, errors.New("sha is missing or no commit id")
	}
	return events.StatusPosted{Repo: repo, SHA: p.SHA, Context: p.Context, State: p.State, Sender: p.Sender.person()}, nil
}
