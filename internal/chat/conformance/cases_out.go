package conformance

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
)

// cause is why the suite says something.
const cause = "test/cause"

func postAndEdit(t *testing.T, e *env) {
	ctx := within(t)
	id, err := e.poster.Post(ctx, e.room, "", cause, e.Body("waiting", ""))
	must(t, err)
	if diff := cmp.Diff([]string{"waiting"}, e.texts(ctx, t, e.in())); diff != "" {
		t.Errorf("after the post (-want +got):\n%s", diff)
	}
	for _, text := range []string{"ready", "merged", "merged"} {
		must(t, e.poster.Edit(ctx, e.room, id, cause+"/"+text, e.Body(text, "")))
		shown, err := e.Shown(ctx, e.in(), Bob)
		must(t, err)
		if diff := cmp.Diff([]Shown{{ID: id, Text: text}}, shown); diff != "" {
			t.Errorf("after the edit (-want +got):\n%s", diff)
		}
	}
	err = e.poster.Edit(ctx, chat.Room{Platform: e.room.Platform, ID: e.room.ID + "X"}, id, cause, e.Body("elsewhere", ""))
	if !errors.Is(err, chat.ErrGone) {
		t.Errorf("edit in a room that is not there: %v, want ErrGone", err)
	}
}

func postInThread(t *testing.T, e *env) {
	ctx := within(t)
	top, err := e.Say(ctx, e.in(), Alice, "shall we?")
	must(t, err)
	_, err = e.poster.Post(ctx, e.room, top, cause, e.Body("we shall", ""))
	must(t, err)
	if diff := cmp.Diff([]string{"we shall"}, e.texts(ctx, t, Place{e.room, top})); diff != "" {
		t.Errorf("in the thread (-want +got):\n%s", diff)
	}
	if got := e.texts(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("outside of the thread there is %q", got)
	}
}

func whisper(t *testing.T, e *env) {
	ctx := within(t)
	top, err := e.Say(ctx, e.in(), Alice, "shall we?")
	must(t, err)
	own, err := e.Direct(ctx, Alice)
	must(t, err)
	for thread, text := range map[string]string{"": "in the room", top: "in the thread"} {
		must(t, e.poster.Whisper(ctx, e.room, thread, e.User(Alice), cause+"/"+text, e.Body(text, "")))
		seen := slices.Concat(e.texts(ctx, t, Place{e.room, thread}), e.texts(ctx, t, Place{Room: own}))
		if !slices.Contains(seen, text) {
			t.Errorf("alice was whispered %q and sees %q", text, seen)
		}
		others, err := e.Shown(ctx, Place{e.room, thread}, Bob)
		must(t, err)
		if slices.ContainsFunc(others, func(s Shown) bool { return s.Text == text }) {
			t.Errorf("alice was whispered %q and bob sees %v", text, others)
		}
	}
}

func postTwice(t *testing.T, e *env) {
	ctx := within(t)
	id, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
	must(t, err)
	again, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
	must(t, err)
	if id == "" || again != id {
		t.Errorf("the ids are %q and %q, want one twice", id, again)
	}
	other, err := e.poster.Post(ctx, e.room, "", cause+"/other", e.Body("ready", ""))
	must(t, err)
	if other == id {
		t.Error("another cause has the same id")
	}
	if diff := cmp.Diff([]string{"ready", "ready"}, e.texts(ctx, t, e.in())); diff != "" {
		t.Errorf("two causes, one of them twice (-want +got):\n%s", diff)
	}
}

// posted posts "ready" until it succeeds.
func (e *env) posted(ctx context.Context, t *testing.T) string {
	t.Helper()
	var id string
	eventually(ctx, t, "post", func() bool {
		var err error
		id, err = e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
		return err == nil
	})
	return id
}

func answerLost(t *testing.T, e *env) {
	ctx := within(t)
	must(t, e.Fail(ctx, Posting, Lost, 0))
	id := e.posted(ctx, t)
	shown, err := e.Shown(ctx, e.in(), Alice)
	must(t, err)
	if diff := cmp.Diff([]Shown{{ID: id, Text: "ready"}}, shown); diff != "" {
		t.Errorf("after the answer was lost (-want +got):\n%s", diff)
	}
}

func noAnswer(t *testing.T, e *env) {
	ctx := within(t)
	must(t, e.Fail(ctx, Posting, Hanging, 0))
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, err := e.poster.Post(short, e.room, "", cause, e.Body("ready", "")); err == nil {
		t.Error("without an answer there was no error")
	}
	e.posted(ctx, t)
	if diff := cmp.Diff([]string{"ready"}, e.texts(ctx, t, e.in())); diff != "" {
		t.Errorf("after no answer (-want +got):\n%s", diff)
	}
}

func rateLimited(t *testing.T, e *env) {
	ctx := within(t)
	const delay = 7 * time.Second
	must(t, e.Fail(ctx, Posting, Limited, delay))
	_, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
	limit, ok := errors.AsType[*chat.RetryError](err)
	if !ok || limit.After != delay {
		t.Fatalf("error = %v, want a RetryError of %s", err, delay)
	}
	if got := e.texts(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("a refused message shows: %q", got)
	}
	e.posted(ctx, t)
}

func removed(t *testing.T, e *env) {
	ctx := within(t)
	id, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
	must(t, err)
	must(t, e.Kick(ctx, e.room))
	if _, err := e.poster.Post(ctx, e.room, "", cause+"/after", e.Body("merged", "")); !errors.Is(err, chat.ErrGone) {
		t.Errorf("post: %v, want ErrGone", err)
	}
	if err := e.poster.Edit(ctx, e.room, id, cause+"/edit", e.Body("merged", "")); !errors.Is(err, chat.ErrGone) {
		t.Errorf("edit: %v, want ErrGone", err)
	}
}

func refused(t *testing.T, e *env) {
	ctx := within(t)
	must(t, e.Revoke(ctx))
	if _, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", "")); !errors.Is(err, chat.ErrRevoked) {
		t.Errorf("post: %v, want ErrRevoked", err)
	}
	must(t, e.Renew(ctx))
	e.posted(ctx, t)
	id := e.said(ctx, t, e.in(), Alice, "status 12")
	if m := message(t, e.next(ctx, t)); m.ID != id {
		t.Errorf("got %+v, want the message %s", m, id)
	}
}

func longOut(t *testing.T, e *env) {
	ctx := within(t)
	long := e.Body(strings.Repeat("all work and no play ", 50000), "")
	if _, err := e.poster.Post(ctx, e.room, "", cause, long); !errors.Is(err, chat.ErrTooLong) {
		t.Errorf("post: %v, want ErrTooLong", err)
	}
	id, err := e.poster.Post(ctx, e.room, "", cause, e.Body("short", ""))
	must(t, err)
	if err := e.poster.Edit(ctx, e.room, id, cause, long); !errors.Is(err, chat.ErrTooLong) {
		t.Errorf("edit: %v, want ErrTooLong", err)
	}
	if diff := cmp.Diff([]string{"short"}, e.texts(ctx, t, e.in())); diff != "" {
		t.Errorf("what is too long (-want +got):\n%s", diff)
	}
}

// hostile: what the renderer escaped arrives as it was given.
func hostile(t *testing.T, e *env) {
	ctx := within(t)
	for i, text := range []string{
		"<!channel> <!here> <!everyone>",
		"@room @channel @here",
		"<@" + e.User(Alice).ID + "> " + e.User(Bob).ID,
		"<https://example.org|https://signalbox.example.org>",
		"[signalbox](https://example.org) ![](https://example.org/a.png)",
		"<img src=x onerror=alert(1)> &lt;b&gt; &amp;amp; <b>bold</b>",
		"\u202Eexe.fdp \u200B zero",
		`{"type":"section"} "quotes" \back\slash`,
	} {
		body := e.Body(text, "")
		id, err := e.poster.Post(ctx, e.room, "", cause+"/"+strings.Repeat("i", i+1), body)
		must(t, err)
		shown, err := e.Shown(ctx, e.in(), Alice)
		must(t, err)
		if diff := cmp.Diff(Shown{ID: id, Text: text}, shown[len(shown)-1]); diff != "" {
			t.Errorf("the hostile text (-want +got):\n%s", diff)
		}
	}
}
