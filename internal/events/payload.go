package events

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Type names a kind of event.
type Type string

// The kinds of event.
const (
	TypePullChanged     Type = "pull.changed"
	TypeBranchPushed    Type = "branch.pushed"
	TypeCommentChanged  Type = "comment.changed"
	TypeStatusPosted    Type = "status.posted"
	TypeWorkflowChanged Type = "workflow.changed"
	TypeChatSaid        Type = "chat.said"
	TypeChatPressed     Type = "chat.pressed"
	TypeTick            Type = "clock.tick"
)

// Types returns every kind of event.
func Types() []Type {
	return []Type{
		TypePullChanged, TypeBranchPushed, TypeCommentChanged, TypeStatusPosted, TypeWorkflowChanged,
		TypeChatSaid, TypeChatPressed, TypeTick,
	}
}

// SubjectRoot is the first token of every subject in this package.
const SubjectRoot = "event"

// Repo names a repository. The ID stays when the repository is renamed or
// moved; Owner and Name are what it was called when the event was seen.
type Repo struct {
	ID    int64  `json:"id"`
	Owner string `json:"owner"`
	Name  string `json:"name"`
}

// String returns "owner/name".
func (r Repo) String() string { return r.Owner + "/" + r.Name }

// Person names an account of the forge. The ID stays when it is renamed; zero
// means that the source named nobody.
type Person struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
}

// PullChanged says that something about one pull request may have changed:
// it was opened, pushed to, edited, reviewed, labelled, closed or reopened.
type PullChanged struct {
	Repo   Repo   `json:"repo"`
	Number int64  `json:"number"`
	Action string `json:"action"`
	// Head is the head commit when the event was seen, or empty.
	Head   string `json:"head,omitempty"`
	Sender Person `json:"sender"`
}

// EventType implements [Payload].
func (PullChanged) EventType() Type { return TypePullChanged }

// BusSubject implements [Payload].
func (p PullChanged) BusSubject() string { return subject("gitea.pull", p.Repo.ID, p.Number) }

// BranchPushed says that a branch moved, was created or was deleted.
type BranchPushed struct {
	Repo   Repo   `json:"repo"`
	Branch string `json:"branch"`
	// Before and After are commit ids; all zeros or empty mean none.
	Before string `json:"before"`
	After  string `json:"after"`
	Sender Person `json:"sender"`
}

// EventType implements [Payload].
func (BranchPushed) EventType() Type { return TypeBranchPushed }

// BusSubject implements [Payload].
func (p BranchPushed) BusSubject() string { return subject("gitea.push", p.Repo.ID) }

// CommentAction is what happened to a comment.
type CommentAction string

// What can happen to a comment.
const (
	CommentCreated CommentAction = "created"
	CommentEdited  CommentAction = "edited"
	CommentDeleted CommentAction = "deleted"
)

// CommentChanged says that a comment on a pull request was created, edited or
// deleted. It does not carry the text: whoever acts on it reads the comment
// again, because any writer can edit anyone's comment meanwhile.
type CommentChanged struct {
	Repo      Repo          `json:"repo"`
	Number    int64         `json:"number"`
	CommentID int64         `json:"commentId"`
	Action    CommentAction `json:"action"`
	// Author wrote the comment; Sender did what the event is about.
	Author Person `json:"author"`
	Sender Person `json:"sender"`
}

// EventType implements [Payload].
func (CommentChanged) EventType() Type { return TypeCommentChanged }

// BusSubject implements [Payload].
func (p CommentChanged) BusSubject() string { return subject("gitea.comment", p.Repo.ID, p.Number) }

// StatusPosted says that somebody posted a commit status.
type StatusPosted struct {
	Repo    Repo   `json:"repo"`
	SHA     string `json:"sha"`
	Context string `json:"context"`
	State   string `json:"state"`
	// Sender has ID zero where the forge names nobody, as for its own Actions.
	Sender Person `json:"sender"`
}

// EventType implements [Payload].
func (StatusPosted) EventType() Type { return TypeStatusPosted }

// BusSubject implements [Payload].
func (p StatusPosted) BusSubject() string { return subject("gitea.status", p.Repo.ID) }

// WorkflowChanged says that a run of a workflow, or a job of one, was queued,
// began or ended.
type WorkflowChanged struct {
	Repo Repo `json:"repo"`
	// Run is the id of the run.
	Run int64 `json:"run"`
	// Workflow is the name of its file, such as "renovate.yaml"; empty in an event
	// about a job, which does not tell it.
	Workflow string `json:"workflow,omitempty"`
	// Job is the name of the job; empty in an event about the run as a whole.
	Job string `json:"job,omitempty"`
	// Branch and Commit are what it runs on; the branch is empty for the run of a
	// pull request, and either where the event does not tell it.
	Branch string `json:"branch,omitempty"`
	Commit string `json:"commit,omitempty"`
	// Status is queued, waiting, in_progress or completed; Conclusion is success,
	// failure, cancelled or skipped once it is completed. A run can be completed
	// while a job of it is not.
	Status     string `json:"status"`
	Conclusion string `json:"conclusion,omitempty"`
	Sender     Person `json:"sender"`
}

// EventType implements [Payload].
func (WorkflowChanged) EventType() Type { return TypeWorkflowChanged }

// BusSubject implements [Payload].
func (p WorkflowChanged) BusSubject() string { return subject("gitea.workflow", p.Repo.ID) }

// Tick is a moment on a schedule, such as the reconciler's. All replicas
// publish it; its message id makes it one.
type Tick struct {
	Name string `json:"name"`
	// At is the scheduled time, not the time it was published.
	At time.Time `json:"at"`
}

// EventType implements [Payload].
func (Tick) EventType() Type { return TypeTick }

// BusSubject implements [Payload].
func (p Tick) BusSubject() string { return SubjectRoot + ".clock." + p.Name }

// ID is the message id of the tick: the same on every replica.
func (p Tick) ID() string { return "clock/" + p.Name + "/" + p.At.UTC().Format(time.RFC3339Nano) }

// Decode returns the payload of an event as the struct (not a pointer) that
// its type names. An unknown type or broken data is a permanent error: a
// repeat cannot help.
func Decode(e Event) (Payload, error) {
	switch e.Type {
	case TypePullChanged:
		return decode[PullChanged](e)
	case TypeBranchPushed:
		return decode[BranchPushed](e)
	case TypeCommentChanged:
		return decode[CommentChanged](e)
	case TypeStatusPosted:
		return decode[StatusPosted](e)
	case TypeWorkflowChanged:
		return decode[WorkflowChanged](e)
	case TypeChatSaid:
		return decode[ChatSaid](e)
	case TypeChatPressed:
		return decode[ChatPressed](e)
	case TypeTick:
		return decode[Tick](e)
	default:
		return nil, Permanent(fmt.Errorf("event %s: unknown type %q", e.ID, e.Type))
	}
}

func decode[P Payload](e Event) (Payload, error) {
	var p P
	if err := json.Unmarshal(e.Data, &p); err != nil {
		return nil, Permanent(fmt.Errorf("event %s: decode %s: %w", e.ID, e.Type, err))
	}
	return p, nil
}

func subject(kind string, ids ...int64) string {
	s := []byte(SubjectRoot + "." + kind)
	for _, id := range ids {
		s = strconv.AppendInt(append(s, '.'), id, 10)
	}
	return string(s)
}
