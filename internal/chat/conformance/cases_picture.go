package conformance

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
)

// picture makes a picture of one color, or of noise, which takes 4 bytes for each pixel.
func picture(t *testing.T, side int, gray uint8, noise bool) chat.Picture {
	t.Helper()
	drawn := image.NewNRGBA(image.Rect(0, 0, side, side/2))
	source := rand.New(rand.NewPCG(1, uint64(gray))) //nolint:gosec // Nobody is to be surprised.
	for i := range drawn.Pix {
		drawn.Pix[i] = gray
		if noise {
			drawn.Pix[i] = uint8(source.Uint32())
		}
	}
	drawn.Set(0, 0, color.White)
	var file bytes.Buffer
	if err := png.Encode(&file, drawn); err != nil {
		t.Fatal(err)
	}
	return chat.Picture{Name: "volumes.png", Alt: "Volumes: <b>2</b> of 3 & \"one\" full, @room", PNG: file.Bytes(), Width: side, Height: side / 2}
}

// pictures is what bob sees, who showed none of them.
func (e *env) pictures(ctx context.Context, t *testing.T, in Place) []Picture {
	t.Helper()
	shown, err := e.Pictures(ctx, in, Bob)
	must(t, err)
	return shown
}

// seen are pictures as people see them.
func seen(all ...chat.Picture) []Picture {
	var out []Picture
	for _, p := range all {
		out = append(out, Picture{Alt: p.Alt, PNG: p.PNG})
	}
	return out
}

// diffPictures compares pictures, each file as a whole.
func diffPictures(want, got []Picture) string {
	return cmp.Diff(want, got, cmp.Comparer(bytes.Equal))
}

func attach(t *testing.T, e *env) {
	ctx := within(t)
	first, second := picture(t, 40, 100, false), picture(t, 60, 200, false)
	// Nearly as large as a picture may be.
	large := picture(t, 720, 1, true)
	for range 2 {
		must(t, e.poster.Attach(ctx, e.room, "", cause, first))
	}
	must(t, e.poster.Attach(ctx, e.room, "", cause+"/other", second))
	must(t, e.poster.Attach(ctx, e.room, "", cause+"/large", large))
	if diff := diffPictures(seen(first, second, large), e.pictures(ctx, t, e.in())); diff != "" {
		t.Errorf("three causes, one of them twice (-want +got):\n%s", diff)
	}
	if got := e.texts(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("beside the pictures it says %q", got)
	}
}

// attachInThread: the message and its picture have one cause.
func attachInThread(t *testing.T, e *env) {
	ctx := within(t)
	p := picture(t, 40, 100, false)
	top, err := e.Say(ctx, e.in(), Alice, "how full are they?")
	must(t, err)
	own, err := e.poster.Post(ctx, e.room, "", cause, e.Body("ready", ""))
	must(t, err)
	for _, thread := range []string{top, own} {
		must(t, e.poster.Attach(ctx, e.room, thread, cause+thread, p))
		if diff := diffPictures(seen(p), e.pictures(ctx, t, Place{e.room, thread})); diff != "" {
			t.Errorf("in the thread (-want +got):\n%s", diff)
		}
	}
	must(t, e.poster.Attach(ctx, e.room, own, cause, p))
	if diff := diffPictures(seen(p, p), e.pictures(ctx, t, Place{e.room, own})); diff != "" {
		t.Errorf("with the cause of the message (-want +got):\n%s", diff)
	}
	if got := e.pictures(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("outside of the threads there are %d pictures", len(got))
	}
	if diff := cmp.Diff([]string{"ready"}, e.texts(ctx, t, e.in())); diff != "" {
		t.Errorf("outside of the threads it says (-want +got):\n%s", diff)
	}
}

// attached shows a picture until that succeeds.
func (e *env) attached(ctx context.Context, t *testing.T, p chat.Picture) {
	t.Helper()
	eventually(ctx, t, "attach", func() bool {
		err := e.poster.Attach(ctx, e.room, "", cause, p)
		for _, lasting := range []error{chat.ErrGone, chat.ErrTooLong, chat.ErrBadPicture, chat.ErrNoPictures} {
			if errors.Is(err, lasting) {
				t.Fatal(err)
			}
		}
		return err == nil
	})
	if diff := diffPictures(seen(p), e.pictures(ctx, t, e.in())); diff != "" {
		t.Errorf("after trying again (-want +got):\n%s", diff)
	}
}

func attachAgain(t *testing.T, e *env) {
	ctx := within(t)
	must(t, e.Fail(ctx, Showing, Lost, 0))
	e.attached(ctx, t, picture(t, 40, 100, false))
}

func attachHanging(t *testing.T, e *env) {
	ctx := within(t)
	p := picture(t, 40, 100, false)
	must(t, e.Fail(ctx, Uploading, Hanging, 0))
	short, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := e.poster.Attach(short, e.room, "", cause, p); err == nil {
		t.Error("without an answer there was no error")
	}
	e.attached(ctx, t, p)
}

func attachLimited(t *testing.T, e *env) {
	ctx := within(t)
	const delay = 7 * time.Second
	p := picture(t, 40, 100, false)
	for _, step := range []Step{Uploading, Showing} {
		must(t, e.Fail(ctx, step, Limited, delay))
		err := e.poster.Attach(ctx, e.room, "", cause, p)
		limit, ok := errors.AsType[*chat.RetryError](err)
		if !ok || limit.After != delay {
			t.Fatalf("error = %v, want a RetryError of %s", err, delay)
		}
		if got := e.pictures(ctx, t, e.in()); len(got) > 0 {
			t.Errorf("a refused picture shows: %d", len(got))
		}
	}
	e.attached(ctx, t, p)
}

func attachRemoved(t *testing.T, e *env) {
	ctx := within(t)
	p := picture(t, 40, 100, false)
	must(t, e.poster.Attach(ctx, e.room, "", cause, p))
	nowhere := chat.Room{Platform: e.room.Platform, ID: e.room.ID + "X"}
	if err := e.poster.Attach(ctx, nowhere, "", cause, p); !errors.Is(err, chat.ErrGone) {
		t.Errorf("in a room that is not there: %v, want ErrGone", err)
	}
	must(t, e.Kick(ctx, e.room))
	if err := e.poster.Attach(ctx, e.room, "", cause+"/after", p); !errors.Is(err, chat.ErrGone) {
		t.Errorf("after being removed: %v, want ErrGone", err)
	}
}

func attachRefused(t *testing.T, e *env) {
	ctx := within(t)
	p := picture(t, 40, 100, false)
	must(t, e.Revoke(ctx))
	if err := e.poster.Attach(ctx, e.room, "", cause, p); !errors.Is(err, chat.ErrRevoked) {
		t.Errorf("attach: %v, want ErrRevoked", err)
	}
	must(t, e.Renew(ctx))
	e.attached(ctx, t, p)
}

func attachBad(t *testing.T, e *env) {
	ctx := within(t)
	p := picture(t, 40, 100, false)
	changed := func(change func(*chat.Picture)) chat.Picture {
		c := p
		change(&c)
		return c
	}
	for name, c := range map[string]struct {
		picture chat.Picture
		want    error
	}{
		"too large":     {picture(t, 800, 1, true), chat.ErrTooLong},
		"not a PNG":     {changed(func(p *chat.Picture) { p.PNG = []byte("GIF89a") }), chat.ErrBadPicture},
		"of no size":    {changed(func(p *chat.Picture) { p.Width = 0 }), chat.ErrBadPicture},
		"for few":       {changed(func(p *chat.Picture) { p.Alt = "" }), chat.ErrBadPicture},
		"without name":  {changed(func(p *chat.Picture) { p.Name = "" }), chat.ErrBadPicture},
		"of many words": {changed(func(p *chat.Picture) { p.Alt = string(make([]byte, chat.MaxAlt+1)) }), chat.ErrTooLong},
	} {
		if err := e.poster.Attach(ctx, e.room, "", cause, c.picture); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	if got := e.pictures(ctx, t, e.in()); len(got) > 0 {
		t.Errorf("%d of them are shown", len(got))
	}
	e.attached(ctx, t, p)
}
