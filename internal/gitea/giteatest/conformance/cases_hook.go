package conformance

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"signalbox/internal/events"
	"signalbox/internal/gitea"
	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/secret"
)

// inbox keeps the events that an intake publishes.
type inbox struct {
	mu   sync.Mutex
	list []events.Payload
	ids  map[string]bool
}

func (in *inbox) publish(_ context.Context, e events.Event) error {
	p, err := events.Decode(e)
	if err != nil {
		return err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ids == nil {
		in.ids = map[string]bool{}
	}
	in.ids[e.ID] = true
	in.list = append(in.list, p)
	return nil
}

// lines returns the payloads as text, sorted, because deliveries come in any
// order.
func (in *inbox) lines() []string {
	var out []string
	for _, p := range in.payloads() {
		out = append(out, line(p))
	}
	slices.Sort(out)
	return out
}

// payloads returns the payloads in the order in which they came.
func (in *inbox) payloads() []events.Payload {
	in.mu.Lock()
	defer in.mu.Unlock()
	return slices.Clone(in.list)
}

func line(p events.Payload) string {
	// A payload came from JSON and can be encoded again.
	data, _ := json.Marshal(p)
	return string(p.EventType()) + " " + string(data)
}

func hookRegistration(t *testing.T, e env) {
	r := e.repo(t, "hooks")
	spec := gitea.HookSpec{URL: "http://127.0.0.1:9/webhook/gitea", Secret: secret.New("one-secret")}
	ensure := func(spec gitea.HookSpec, want gitea.HookChange) gitea.HookResult {
		t.Helper()
		got, err := e.client.EnsureHook(e.ctx, r, spec)
		must(t, err)
		same(t, "change", want, got.Change)
		return got
	}
	first := ensure(spec, gitea.HookCreated)
	same(t, "id of the webhook that was left alone", first.ID, ensure(spec, gitea.HookUnchanged).ID)

	spec.Secret = secret.New("another-secret")
	second := ensure(spec, gitea.HookReplaced)
	if second.ID == first.ID {
		t.Error("a webhook got another secret by an edit, which Gitea ignores")
	}
	ensure(spec, gitea.HookUnchanged)

	_, err := e.clientOf(t, e.bobToken).EnsureHook(e.ctx, r, spec)
	wantError(t, "a webhook by a writer", err, gitea.ErrForbidden)
}

// none is what a push to a new branch comes from.
const none = "0000000000000000000000000000000000000000"

func hookEvents(t *testing.T, e env) {
	var in inbox
	key := secret.New("whsecret")
	server := httptest.NewServer(gitea.NewIntake(gitea.IntakeConfig{Secrets: []secret.Value{key}, Publish: in.publish}, nil, nil))
	defer server.Close()
	r := e.repo(t, "events")
	_, err := e.client.EnsureHook(e.ctx, r, gitea.HookSpec{URL: server.URL + "/gitea", Secret: key})
	must(t, err)

	repo := events.Repo(r)
	alice, bob, bot := events.Person(e.alice), events.Person(e.bob), events.Person(e.bot)
	want := []string{}
	expect := func(list ...events.Payload) {
		t.Helper()
		for _, p := range list {
			want = append(want, line(p))
		}
		slices.Sort(want)
		e.eventually(t, "events:\n"+strings.Join(want, "\n"), func() bool { return len(in.lines()) >= len(want) })
		same(t, "events", want, in.lines())
	}
	changed := func(number int64, action, head string, by events.Person) events.PullChanged {
		return events.PullChanged{Repo: repo, Number: number, Action: action, Head: head, Sender: by}
	}

	number, head := e.open(t, r, "change")
	expect(events.BranchPushed{Repo: repo, Branch: "change", Before: none, After: head, Sender: alice},
		changed(number, "opened", head, alice))

	next := e.push(t, r, giteatest.Push{Branch: "change", Files: map[string]string{"more.yaml": "y: 1\n"}})
	expect(events.BranchPushed{Repo: repo, Branch: "change", Before: head, After: next, Sender: alice},
		changed(number, "synchronized", next, alice))

	must(t, e.EditPull(e.ctx, r, number, e.alice.Login, giteatest.Edit{Title: "Other title", Body: "Because."}))
	must(t, e.SetLabels(e.ctx, r, number, e.bot.Login, "urgent"))
	// One for the title, one for the body.
	expect(changed(number, "edited", next, alice), changed(number, "edited", next, alice), changed(number, "label_updated", next, bot))

	rejected, err := e.Review(e.ctx, r, number, e.bob.Login, giteatest.RequestChanges, "No.")
	must(t, err)
	_, err = e.Review(e.ctx, r, number, e.alice.Login, giteatest.Remark, "Why?")
	must(t, err)
	_, err = e.Review(e.ctx, r, number, e.bob.Login, giteatest.Approve, "Ok.")
	must(t, err)
	must(t, e.Dismiss(e.ctx, r, number, rejected, e.bot.Login)) // No event says so.
	expect(changed(number, "review_rejected", next, bob), changed(number, "review_commented", next, alice),
		changed(number, "review_approved", next, bob))

	id, err := e.Comment(e.ctx, r, number, e.bob.Login, "/approve")
	must(t, err)
	must(t, e.EditComment(e.ctx, r, id, e.alice.Login, "/hold"))
	must(t, e.DeleteComment(e.ctx, r, id, e.alice.Login))
	comment := func(a events.CommentAction, by events.Person) events.CommentChanged {
		return events.CommentChanged{Repo: repo, Number: number, CommentID: id, Action: a, Author: bob, Sender: by}
	}
	expect(comment(events.CommentCreated, bob), comment(events.CommentEdited, alice), comment(events.CommentDeleted, alice))

	must(t, e.SetStatus(e.ctx, r, next, e.bob.Login, pull.Status{Context: "ci", State: "success"}))
	expect(events.StatusPosted{Repo: repo, SHA: next, Context: "ci", State: "success", Sender: bob})

	rel := e.push(t, r, giteatest.Push{As: e.bot.Login, Branch: "release", Files: map[string]string{"rel": "1\n"}})
	must(t, e.Retarget(e.ctx, r, number, e.alice.Login, "release"))
	expect(events.BranchPushed{Repo: repo, Branch: "release", Before: none, After: rel, Sender: bot},
		changed(number, "retargeted", next, alice))

	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, false))
	must(t, e.SetOpen(e.ctx, r, number, e.alice.Login, true))
	expect(changed(number, "closed", next, alice), changed(number, "reopened", next, alice))

	merge, err := e.Merge(e.ctx, r, number, e.bot.Login)
	must(t, err)
	expect(changed(number, "merged", next, bot),
		events.BranchPushed{Repo: repo, Branch: "release", Before: rel, After: merge, Sender: bot})
	if len(in.ids) != len(want) {
		t.Errorf("%d ids of %d events", len(in.ids), len(want))
	}
}

// runEvents looks at the events about runs and jobs alone.
func runEvents(t *testing.T, e env) {
	var in inbox
	key := secret.New("whsecret")
	server := httptest.NewServer(gitea.NewIntake(gitea.IntakeConfig{Secrets: []secret.Value{key}, Publish: in.publish}, nil, nil))
	defer server.Close()
	r := e.repo(t, "run-events")
	runner, err := e.Register(e.ctx, r, "runner")
	must(t, err)
	_, err = e.client.EnsureHook(e.ctx, r, gitea.HookSpec{URL: server.URL + "/gitea", Secret: key})
	must(t, err)
	sha := e.addWorkflow(t, r, "check.yaml", checkWorkflow)
	id := e.check(t, r, giteatest.NewRun{Event: "push"})

	told := 0
	// Gitea says some of it twice.
	lines := func() (news []string, all int) {
		list := in.payloads()
		for _, p := range list[told:] {
			if p.EventType() == events.TypeWorkflowChanged {
				news = append(news, line(p))
			}
		}
		slices.Sort(news)
		return slices.Compact(news), len(list)
	}
	expect := func(what string, list ...events.WorkflowChanged) {
		t.Helper()
		var want, got []string
		for _, p := range list {
			p.Repo, p.Run, p.Branch, p.Commit, p.Sender = events.Repo(r), id, "main", sha, events.Person(e.alice)
			if p.Job == "" {
				p.Workflow = "check.yaml"
			}
			want = append(want, line(p))
		}
		slices.Sort(want)
		defer func() { same(t, what, want, got) }()
		e.eventually(t, what, func() bool {
			news, all := lines()
			if got = news; len(got) < len(want) {
				return false
			}
			told = all
			return true
		})
	}
	expect("a push",
		events.WorkflowChanged{Status: "queued"},
		events.WorkflowChanged{Job: "lint", Status: "queued"}, events.WorkflowChanged{Job: "test", Status: "waiting"})
	e.take(t, runner, "lint")
	must(t, runner.Log(e.ctx, "fine"))
	expect("a job that begins",
		events.WorkflowChanged{Job: "lint", Status: "in_progress"}, events.WorkflowChanged{Status: "in_progress"})
	must(t, runner.Finish(e.ctx, "success"))
	expect("a job that ends",
		events.WorkflowChanged{Job: "lint", Status: "completed", Conclusion: "success"}, events.WorkflowChanged{Job: "test", Status: "queued"})
	e.take(t, runner, "test")
	must(t, runner.Finish(e.ctx, "skipped"))
	expect("the last job that ends",
		events.WorkflowChanged{Job: "test", Status: "in_progress"},
		events.WorkflowChanged{Job: "test", Status: "completed", Conclusion: "skipped"},
		events.WorkflowChanged{Status: "completed", Conclusion: "success"})
	must(t, e.Rerun(e.ctx, r, id))
	expect("a run that is started again",
		events.WorkflowChanged{Status: "queued"},
		events.WorkflowChanged{Job: "lint", Status: "queued"}, events.WorkflowChanged{Job: "test", Status: "waiting"})
	e.take(t, runner, "lint")
	expect("its first job begins",
		events.WorkflowChanged{Job: "lint", Status: "in_progress"}, events.WorkflowChanged{Status: "in_progress"})
	must(t, runner.Log(e.ctx, "broken"))
	must(t, runner.Finish(e.ctx, "failure"))
	expect("its first job fails",
		events.WorkflowChanged{Job: "lint", Status: "completed", Conclusion: "failure"},
		events.WorkflowChanged{Job: "test", Status: "completed", Conclusion: "skipped"},
		events.WorkflowChanged{Status: "completed", Conclusion: "failure"})
}
