package handlers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/events"
	"signalbox/internal/handlers"
)

// stage is a poster that notes what was said and shown.
type stage struct {
	shown []string
	// fail, if set, is called before each.
	fail func(what string) error
}

func (s *stage) note(what string) error {
	if s.fail != nil {
		if err := s.fail(what); err != nil {
			return err
		}
	}
	s.shown = append(s.shown, what)
	return nil
}

func (s *stage) Post(_ context.Context, _ chat.Room, thread, cause string, body chat.Body) (string, error) {
	return "m-" + cause, s.note(fmt.Sprintf("say %s in %q: %s", cause, thread, body.Text))
}

func (s *stage) Edit(context.Context, chat.Room, string, string, chat.Body) error {
	return errors.New("nothing is edited here")
}

func (s *stage) Whisper(_ context.Context, _ chat.Room, _ string, to chat.User, cause string, _ chat.Body) error {
	return s.note("whisper " + cause + " to " + to.ID)
}

func (s *stage) Attach(_ context.Context, _ chat.Room, thread, cause string, p chat.Picture) error {
	return s.note(fmt.Sprintf("show %s in %q: %s", cause, thread, p.Alt))
}

// office is an outbox on a stage, whose store makes the calls.
type office struct {
	*handlers.Outbox
	stage *stage
	store *kept[handlers.Outgoing]
	log   *bytes.Buffer
	due   []string
}

func newOffice() *office {
	o := &office{stage: &stage{}, store: &kept[handlers.Outgoing]{}, log: &bytes.Buffer{}}
	o.store.changed = func(key string, _, after *handlers.Outgoing) {
		if after != nil {
			o.due = append(o.due, key)
		}
	}
	o.Outbox = &handlers.Outbox{
		Store: o.store, Posters: map[chat.Platform]chat.Poster{chat.Slack: o.stage},
		Conflict: func(err error) bool { return errors.Is(err, errConflict) },
		Now:      func() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC) },
		Log:      slog.New(slog.NewTextHandler(o.log, nil)),
	}
	return o
}

// work handles what changed until nothing does, with a restart after each call, and
// what fails once more. It returns the errors.
func (o *office) work(t *testing.T) []error {
	t.Helper()
	var errs []error
	for len(o.due) > 0 {
		key := o.due[0]
		o.due = o.due[1:]
		if err := o.Handle(t.Context(), key); err != nil {
			errs = append(errs, err)
			o.due = append(o.due, key)
		}
		if len(errs) > 10 {
			t.Fatal("it fails for ever: ", errs[0])
		}
	}
	if len(o.store.values) > 0 {
		t.Errorf("%d are kept still", len(o.store.values))
	}
	return errs
}

// chart is something to say with a picture.
func chart() handlers.Outgoing {
	return handlers.Outgoing{
		Room: chat.Room{Platform: chat.Slack, ID: "C1"}, Cause: "digest", Body: chat.Body{Text: "all is well"},
		Picture: &chat.Picture{Name: "volumes.png", Alt: "three volumes", PNG: []byte("png"), Width: 1, Height: 1},
	}
}

func TestOutboxPicture(t *testing.T) {
	const (
		said  = `say digest in "": all is well`
		shown = `show digest in "m-digest": three volumes`
	)
	late := &chat.RetryError{After: time.Minute, Err: errors.New("too many")}
	for name, c := range map[string]struct {
		change func(*handlers.Outgoing)
		// fails is what each fails with, the first time or, if it lasts, always.
		fails  map[string]error
		always bool
		want   []string
		errs   int
		logs   string
	}{
		"once each":         {want: []string{said, shown}},
		"without a picture": {change: func(o *handlers.Outgoing) { o.Picture = nil }, want: []string{said}},
		"in a thread": {
			change: func(o *handlers.Outgoing) { o.Thread = "top" },
			want:   []string{`say digest in "top": all is well`, `show digest in "top": three volumes`},
		},
		"message limited":     {fails: map[string]error{"say": late}, want: []string{said, shown}, errs: 1},
		"picture limited":     {fails: map[string]error{"show": late}, want: []string{said, shown}, errs: 1},
		"token refused":       {fails: map[string]error{"show": chat.ErrRevoked}, want: []string{said, shown}, errs: 1},
		"message is too long": {fails: map[string]error{"say": chat.ErrTooLong}, always: true, logs: "cannot be given"},
		"no right to files":   {fails: map[string]error{"show": chat.ErrNoPictures}, always: true, want: []string{said}, logs: "without its picture"},
		"a bad picture":       {fails: map[string]error{"show": chat.ErrBadPicture}, always: true, want: []string{said}, logs: "without its picture"},
		"a large picture":     {fails: map[string]error{"show": chat.ErrTooLong}, always: true, want: []string{said}, logs: "without its picture"},
		"the room is gone":    {fails: map[string]error{"show": chat.ErrGone}, always: true, want: []string{said}, logs: "without its picture"},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOffice()
			o.stage.fail = func(what string) error {
				verb, _, _ := strings.Cut(what, " ")
				err := c.fails[verb]
				if !c.always {
					delete(c.fails, verb)
				}
				return err
			}
			out := chart()
			if c.change != nil {
				c.change(&out)
			}
			for range 2 {
				if err := o.Say(t.Context(), out); err != nil {
					t.Fatal(err)
				}
			}
			errs := o.work(t)
			if diff := cmp.Diff(c.want, o.stage.shown); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if len(errs) != c.errs {
				t.Errorf("it failed with %v, want %d errors", errs, c.errs)
			}
			if (o.log.Len() > 0) != (c.logs != "") || !strings.Contains(o.log.String(), c.logs) {
				t.Errorf("the log says %q, want %q in it", o.log, c.logs)
			}
		})
	}
}

// TestOutboxPictureNotKept: the message is said, where a bus is too small for both.
func TestOutboxPictureNotKept(t *testing.T) {
	o := newOffice()
	o.store.before = func(o handlers.Outgoing) error {
		if o.Picture != nil {
			return events.Permanent(errors.New("the message is too large"))
		}
		return nil
	}
	if err := o.Say(t.Context(), chart()); err != nil {
		t.Fatal(err)
	}
	o.work(t)
	if diff := cmp.Diff([]string{`say digest in "": all is well`}, o.stage.shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if !strings.Contains(o.log.String(), "without its picture") {
		t.Errorf("the log says %q", o.log)
	}
}

// TestOutboxPictureNotWritten: it is not known that the message was said, so that it
// may be said again, and the picture comes after it.
func TestOutboxPictureNotWritten(t *testing.T) {
	o := newOffice()
	broken := errors.New("the bus is away")
	o.store.before = func(o handlers.Outgoing) error {
		if o.Said != "" && broken != nil {
			err := broken
			broken = nil
			return err
		}
		return nil
	}
	if err := o.Say(t.Context(), chart()); err != nil {
		t.Fatal(err)
	}
	if errs := o.work(t); len(errs) != 1 {
		t.Errorf("it failed with %v, want one error", errs)
	}
	const said = `say digest in "": all is well`
	if diff := cmp.Diff([]string{said, said, `show digest in "m-digest": three volumes`}, o.stage.shown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestOutboxPictureForOne: a picture is never shown to others than the message.
func TestOutboxPictureForOne(t *testing.T) {
	o := newOffice()
	out := chart()
	out.To = chat.User{Platform: chat.Slack, ID: "U1"}
	if err := o.Say(t.Context(), out); !events.IsPermanent(err) {
		t.Errorf("got %v, want a permanent error", err)
	}
	o.work(t)
	if len(o.stage.shown) > 0 {
		t.Errorf("it shows %q", o.stage.shown)
	}
}
