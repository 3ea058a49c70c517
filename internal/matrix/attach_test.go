package matrix

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
)

func picture(t *testing.T) chat.Picture {
	t.Helper()
	var file bytes.Buffer
	if err := png.Encode(&file, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	return chat.Picture{Name: "volumes.png", Alt: "two volumes", PNG: file.Bytes(), Width: 4, Height: 3}
}

// upload lets a function answer what is uploaded.
func (b *backend) upload(answer http.HandlerFunc) {
	b.site.gate.interfere(func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, "/upload") {
			return false
		}
		answer(w, r)
		return true
	})
}

func TestPictureErrors(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was sent elsewhere: %s %s", r.Method, r.URL)
	}))
	defer elsewhere.Close()
	// The same machine by another name is another host.
	foreign := strings.Replace(elsewhere.URL, "127.0.0.1", "localhost", 1)
	for name, c := range map[string]struct {
		status int
		body   string
		want   error
		text   string
	}{
		"forbidden":       {http.StatusForbidden, `{"errcode":"M_FORBIDDEN","error":"no files from you"}`, chat.ErrNoPictures, "no files from you"},
		"not there":       {http.StatusNotFound, `{"errcode":"M_UNRECOGNIZED","error":"what?"}`, chat.ErrNoPictures, "what?"},
		"too large":       {http.StatusRequestEntityTooLarge, `{"errcode":"M_TOO_LARGE","error":"too much"}`, chat.ErrTooLong, "too much"},
		"too large proxy": {http.StatusRequestEntityTooLarge, `<html>`, chat.ErrTooLong, ""},
		"refused":         {http.StatusUnauthorized, `{"errcode":"M_UNKNOWN_TOKEN","error":"who?"}`, chat.ErrRevoked, "log the account in again"},
		"broken":          {http.StatusBadGateway, `<html>`, nil, "502"},
		"no answer":       {http.StatusOK, `{}`, nil, "names no file"},
		"sent elsewhere":  {http.StatusTemporaryRedirect, "", nil, "another host"},
	} {
		t.Run(name, func(t *testing.T) {
			server, b, room := world(t)
			b.start(t)
			b.upload(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", foreign)
				refuse(w, c.status, c.body)
			})
			err := b.adapter.Attach(t.Context(), room, "", "test/cause", picture(t))
			if err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), b.bot.token) {
				t.Errorf("got %v, want %q in it", err, c.text)
			}
			for _, class := range []error{chat.ErrGone, chat.ErrRevoked, chat.ErrTooLong, chat.ErrNoPictures} {
				if errors.Is(err, class) != (class == c.want) { //nolint:errorlint // It is compared with itself.
					t.Errorf("%v is %v: %t", err, class, errors.Is(err, class))
				}
			}
			if n := len(server.Files()); n > 0 {
				t.Errorf("the homeserver has %d files", n)
			}
			b.site.gate.interfere(nil)
			if err := b.adapter.Attach(t.Context(), room, "", "test/cause", picture(t)); err != nil {
				t.Fatal(err)
			}
			shown, err := b.Pictures(t.Context(), conformance.Place{Room: room}, conformance.Bob)
			if err != nil || len(shown) != 1 {
				t.Errorf("bob sees %d pictures, %v; want one", len(shown), err)
			}
		})
	}
}

// TestPictureRedirected: on the same host a redirect is followed.
func TestPictureRedirected(t *testing.T) {
	server, b, room := world(t)
	b.start(t)
	b.upload(func(w http.ResponseWriter, r *http.Request) {
		b.site.gate.interfere(nil)
		http.Redirect(w, r, "/behind/_matrix/media/v3/upload", http.StatusPermanentRedirect)
	})
	if err := b.adapter.Attach(t.Context(), room, "", "test/cause", picture(t)); err != nil {
		t.Fatal(err)
	}
	if files := server.Files(); len(files) != 1 || !bytes.Equal(files[0].Content, picture(t).PNG) || files[0].Type != "image/png" {
		t.Errorf("the homeserver has %v", files)
	}
}

// TestPictureIntoEncryptedRoom: without keys nothing of it leaves.
func TestPictureIntoEncryptedRoom(t *testing.T) {
	server, b, _ := world(t)
	b.encrypted = true
	room, err := b.Room(t.Context(), "secret")
	if err != nil {
		t.Fatal(err)
	}
	b.start(t)
	if err := b.adapter.Attach(t.Context(), room, "", "test/cause", picture(t)); !errors.Is(err, chat.ErrGone) {
		t.Errorf("got %v, want ErrGone", err)
	}
	if n := len(server.Files()); n > 0 {
		t.Errorf("%d files were uploaded", n)
	}
}

// TestPictureShownOnce: it is not even uploaded again.
func TestPictureShownOnce(t *testing.T) {
	server, b, room := world(t)
	b.start(t)
	for range 2 {
		if err := b.adapter.Attach(t.Context(), room, "", "test/cause", picture(t)); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(server.Files()); n != 1 {
		t.Errorf("%d files were uploaded, want one", n)
	}
}
