package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"signalbox/internal/chat"
	"signalbox/internal/pull"
)

// message checks that an item is a message of now, and returns what is alike on
// every platform.
func message(t *testing.T, i item) chat.Message {
	t.Helper()
	if i.Message == nil {
		t.Fatalf("got %s, want a message", i)
	}
	m := *i.Message
	if !strings.HasPrefix(i.Cause, string(m.Room.Platform)+"/") || strings.HasSuffix(i.Cause, "/") {
		t.Errorf("the cause is %q, want one that begins with the platform", i.Cause)
	}
	if since := time.Since(m.At); since.Abs() > time.Hour || m.At.Location() != time.UTC {
		t.Errorf("it was said at %s, want a time of now in UTC", m.At)
	}
	m.At, m.Link = time.Time{}, ""
	return m
}

func mention(t *testing.T, e *env) {
	ctx := within(t)
	const typed = "  approve   home/cluster#12\n<b>now</b> & \"then\" *bold* `x` &amp; "
	id := e.said(ctx, t, e.in(), Alice, typed)
	want := chat.Message{ID: id, Room: e.room, User: e.User(Alice), Text: `approve home/cluster#12 <b>now</b> & "then" *bold* ` + "`x` &amp;"}
	if diff := cmp.Diff(want, message(t, e.next(ctx, t))); diff != "" {
		t.Errorf("the mention (-want +got):\n%s", diff)
	}
	if more := e.rest(ctx, t, e.in()); len(more) > 0 {
		t.Errorf("it came more than once: %v", more)
	}
}

func mentionInThread(t *testing.T, e *env) {
	ctx := within(t)
	top, err := e.Say(ctx, e.in(), Alice, "shall we?")
	must(t, err)
	in := Place{Room: e.room, Thread: top}
	id := e.said(ctx, t, in, Bob, "status")
	want := chat.Message{ID: id, Room: e.room, Thread: top, User: e.User(Bob), Text: "status"}
	if diff := cmp.Diff(want, message(t, e.next(ctx, t))); diff != "" {
		t.Errorf("the mention in a thread (-want +got):\n%s", diff)
	}
}

func direct(t *testing.T, e *env) {
	ctx := within(t)
	room, err := e.Direct(ctx, Alice)
	must(t, err)
	plain, err := e.Say(ctx, Place{Room: room}, Alice, "status 12")
	must(t, err)
	want := chat.Message{ID: plain, Room: room, User: e.User(Alice), Text: "status 12", Direct: true}
	if diff := cmp.Diff(want, message(t, e.next(ctx, t))); diff != "" {
		t.Errorf("the direct message (-want +got):\n%s", diff)
	}
	mentioned := e.said(ctx, t, Place{Room: room}, Alice, "status 13")
	want.ID, want.Text = mentioned, "status 13"
	if diff := cmp.Diff(want, message(t, e.next(ctx, t))); diff != "" {
		t.Errorf("the direct message with a mention (-want +got):\n%s", diff)
	}
}

func talk(t *testing.T, e *env) {
	ctx := within(t)
	for _, text := range []string{"good morning", "approve home/cluster#12"} {
		_, err := e.Say(ctx, e.in(), Alice, text)
		must(t, err)
	}
	if got := e.rest(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("what people say to each other was taken: %v", got)
	}
}

func edited(t *testing.T, e *env) {
	ctx := within(t)
	id, err := e.Say(ctx, e.in(), Alice, "good morning")
	must(t, err)
	must(t, e.Change(ctx, e.in(), id, Alice, "approve home/cluster#12"))
	room, err := e.Direct(ctx, Alice)
	must(t, err)
	id, err = e.Say(ctx, Place{Room: room}, Alice, "status 12")
	must(t, err)
	must(t, e.Change(ctx, Place{Room: room}, id, Alice, "approve home/cluster#12"))
	for _, i := range append(e.rest(ctx, t, Place{Room: room}), e.rest(ctx, t, e.in())...) {
		if m := message(t, i); !m.Edited && m.Text != "status 12" {
			t.Errorf("an edited message was taken like one that was said: %s", i)
		}
	}
}

func programs(t *testing.T, e *env) {
	ctx := within(t)
	room, err := e.Direct(ctx, Alice)
	must(t, err)
	for _, in := range []chat.Room{e.room, room} {
		_, err := e.poster.Post(ctx, in, "", "test/own", e.Body("approve home/cluster#12", ""))
		must(t, err)
	}
	_, err = e.Announce(ctx, e.in(), "approve home/cluster#12")
	must(t, err)
	for _, in := range []chat.Room{e.room, room} {
		if got := e.rest(ctx, t, Place{Room: in}); len(got) > 0 {
			t.Errorf("what programs say was taken: %v", got)
		}
	}
}

func press(t *testing.T, e *env) {
	ctx := within(t)
	ref, head := pull.Ref{RepoID: 7, Number: 12}, strings.Repeat("c0ffee", 6)+"1234"
	id, err := e.poster.Post(ctx, e.room, "", "test/card", e.Body("a card", chat.ButtonValue(ref, head)))
	must(t, err)
	for _, button := range []chat.Button{chat.ButtonApprove, chat.ButtonHold, chat.ButtonDetails} {
		must(t, e.Press(ctx, e.in(), id, Bob, button))
		i := e.next(ctx, t)
		if i.Press == nil {
			t.Fatalf("got %s, want a button", i)
		}
		want := chat.Press{Room: e.room, Message: id, User: e.User(Bob), Button: button, Ref: ref, Head: head}
		if i.Press.Ref == (pull.Ref{}) {
			// Only the message tells, as with a reaction.
			want.Ref, want.Head = pull.Ref{}, ""
		}
		if diff := cmp.Diff(want, *i.Press, cmpopts.IgnoreFields(chat.Press{}, "At")); diff != "" {
			t.Errorf("the button %s (-want +got):\n%s", button, diff)
		}
		if since := time.Since(i.Press.At); since.Abs() > time.Hour || i.Press.At.Location() != time.UTC {
			t.Errorf("it was pressed at %s, want a time of now in UTC", i.Press.At)
		}
	}
}

func longIn(t *testing.T, e *env) {
	ctx := within(t)
	// Two bytes each, after one of a single byte: the limit is within a character.
	id := e.said(ctx, t, e.in(), Mallory, "a"+strings.Repeat("é", 20000))
	m := message(t, e.next(ctx, t))
	if m.ID != id || len(m.Text) > chat.MaxText || len(m.Text) < chat.MaxText-utf8.UTFMax || !utf8.ValidString(m.Text) {
		t.Errorf("%s has %d bytes of text, valid UTF-8: %t; want %s with almost %d", m.ID, len(m.Text), utf8.ValidString(m.Text), id, chat.MaxText)
	}
}

// notTaken: what the receiver refuses is not acknowledged, and comes again.
func notTaken(t *testing.T, e *env) {
	ctx := within(t)
	const times = 2
	ids := make(chan string, 1)
	calls := 0
	acknowledged := make(chan error, times+1)
	e.setRefuse(func(ctx context.Context, i item) error {
		if i.Message == nil || i.Message.Text != "hold 12" {
			return nil
		}
		id := <-ids
		ids <- id
		ok, err := e.Acknowledged(ctx, e.in(), id)
		if ok {
			err = errors.New("it was acknowledged before it was taken")
		}
		acknowledged <- err
		if calls++; calls > times {
			return nil
		}
		return errors.New("the bus is away")
	})
	id := e.said(ctx, t, e.in(), Alice, "hold 12")
	ids <- id
	if m := message(t, e.next(ctx, t)); m.ID != id {
		t.Errorf("got %+v, want the message %s", m, id)
	}
	for range times + 1 {
		if err := <-acknowledged; err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Error(err)
		}
	}
	e.mu.Lock()
	for _, i := range e.all {
		if i.Cause != e.all[0].Cause {
			t.Errorf("it came with the causes %q and %q", e.all[0].Cause, i.Cause)
		}
	}
	e.mu.Unlock()
	eventually(ctx, t, "not acknowledged", func() bool {
		ok, err := e.Acknowledged(ctx, e.in(), id)
		must(t, err)
		return ok
	})
}

func deliveredTwice(t *testing.T, e *env) {
	ctx := within(t)
	id := e.said(ctx, t, e.in(), Alice, "hold 12")
	first := e.next(ctx, t)
	must(t, e.Redeliver(ctx, e.in(), id))
	e.wait(ctx, t, func() bool { return len(e.all) >= 2 })
	e.mu.Lock()
	defer e.mu.Unlock()
	if diff := cmp.Diff(first, e.all[1]); diff != "" {
		t.Errorf("delivered again it differs (-first +again):\n%s", diff)
	}
}

// connectionCut: nothing is lost. What comes again may come later than what follows.
func connectionCut(t *testing.T, e *env) {
	ctx := within(t)
	var want []string
	for _, text := range []string{"one", "two", "three", "four", "five", "six"} {
		want = append(want, text)
		e.said(ctx, t, e.in(), Alice, text)
		must(t, e.Cut(ctx))
	}
	var got []string
	for range want {
		got = append(got, message(t, e.next(ctx, t)).Text)
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(strings.Compare)); diff != "" {
		t.Errorf("what was said around a cut (-want +got):\n%s", diff)
	}
}
