package slack_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/chat"
	"signalbox/internal/chat/conformance"
	"signalbox/internal/slack"
	"signalbox/internal/slack/slacktest"
)

func picture(t *testing.T) chat.Picture {
	t.Helper()
	var file bytes.Buffer
	must(t, png.Encode(&file, image.NewGray(image.Rect(0, 0, 4, 3))))
	return chat.Picture{Name: "volumes.png", Alt: "two volumes", PNG: file.Bytes(), Width: 4, Height: 3}
}

func (w *workspace) pictures(t *testing.T, room chat.Room, thread string) int {
	t.Helper()
	all, err := w.Pictures(t.Context(), conformance.Place{Room: room, Thread: thread}, conformance.Alice)
	must(t, err)
	return len(all)
}

// TestPictureOfAnotherReplica: what another process has shown for a cause is found by
// the name of the file, and what others call a file does not count.
func TestPictureOfAnotherReplica(t *testing.T) {
	w, a, room := poster(t, slacktest.Options{})
	b, err := slack.New(w.config(), newInbox(), nil, nil)
	must(t, err)
	top, err := w.Server.Say(room.ID, "", w.people[conformance.Alice], "how full are they?")
	must(t, err)
	for _, thread := range []string{"", top} {
		must(t, a.Attach(t.Context(), room, thread, "test/cause"+thread, picture(t)))
		must(t, b.Attach(t.Context(), room, thread, "test/cause"+thread, picture(t)))
		if n := w.pictures(t, room, thread); n != 1 {
			t.Errorf("in thread %q there are %d pictures, want one", thread, n)
		}
	}
	shown := w.Uploads()[0]
	elsewhere, err := w.Room(t.Context(), "other")
	must(t, err)
	_, err = w.SayAs(elsewhere.ID, slacktest.Message{User: w.people[conformance.Mallory], Files: []*slacktest.File{{ID: "F1", Name: shown.Name}}})
	must(t, err)
	must(t, b.Attach(t.Context(), elsewhere, "", "test/cause", picture(t)))
	if n := w.pictures(t, elsewhere, ""); n != 1 {
		t.Errorf("after mallory has shown a file of that name there are %d pictures, want one", n)
	}
}

func TestPictureErrors(t *testing.T) {
	for name, tc := range map[string]struct {
		fault slacktest.Fault
		class error
		text  string
	}{
		"no files":       {slacktest.Fault{Method: "files.getUploadURLExternal", Code: "file_uploads_disabled"}, chat.ErrNoPictures, "administrator"},
		"no room":        {slacktest.Fault{Method: "files.completeUploadExternal", Code: "storage_limit_reached"}, chat.ErrNoPictures, "administrator"},
		"too large":      {slacktest.Fault{Method: "files.getUploadURLExternal", Code: "file_upload_size_restricted"}, chat.ErrTooLong, "does not take"},
		"too large sent": {slacktest.Fault{Method: slacktest.MethodUpload, Status: http.StatusRequestEntityTooLarge}, chat.ErrTooLong, "413"},
		"archived":       {slacktest.Fault{Method: "files.completeUploadExternal", Code: "is_archived"}, chat.ErrGone, "archived"},
		"revoked":        {slacktest.Fault{Method: "files.completeUploadExternal", Code: "token_revoked"}, chat.ErrRevoked, "token_revoked"},
		"broken":         {slacktest.Fault{Method: slacktest.MethodUpload, Status: http.StatusBadGateway}, nil, "HTTP 502"},
		"redirected":     {slacktest.Fault{Method: slacktest.MethodUpload, Status: http.StatusTemporaryRedirect}, nil, "HTTP 307"},
		"unknown":        {slacktest.Fault{Method: "files.completeUploadExternal", Code: "file_not_found"}, nil, "file_not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			w, a, room := poster(t, slacktest.Options{})
			w.Server.Fail(tc.fault)
			err := a.Attach(t.Context(), room, "", "test/cause", picture(t))
			if err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Fatalf("error = %v, want %q in it", err, tc.text)
			}
			for _, class := range []error{chat.ErrGone, chat.ErrRevoked, chat.ErrTooLong, chat.ErrNoPictures} {
				if errors.Is(err, class) != (class == tc.class) { //nolint:errorlint // It is compared with itself.
					t.Errorf("%v is %v: %t", err, class, errors.Is(err, class))
				}
			}
			for _, secret := range []string{slacktest.BotToken, "/upload/v1"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("the error tells %s: %v", secret, err)
				}
			}
			must(t, a.Attach(t.Context(), room, "", "test/cause", picture(t)))
			if n := w.pictures(t, room, ""); n != 1 {
				t.Errorf("after that there are %d pictures, want one", n)
			}
		})
	}
}

// TestPictureWithoutScope: an installation from before the scope says what to do, and
// everything else works.
func TestPictureWithoutScope(t *testing.T) {
	scopes := slices.DeleteFunc(manifest(t).OAuthConfig.Scopes.Bot, func(s string) bool { return s == "files:write" })
	w, a, room := poster(t, slacktest.Options{Scopes: scopes})
	err := a.Attach(t.Context(), room, "", "test/cause", picture(t))
	if !errors.Is(err, chat.ErrNoPictures) || !strings.Contains(err.Error(), "files:write") || !strings.Contains(err.Error(), "install the app again") {
		t.Errorf("got %v, want ErrNoPictures and what to do", err)
	}
	_, err = a.Post(t.Context(), room, "", "test/cause", w.Body("ready", ""))
	must(t, err)
	if diff := cmp.Diff([]string{"ready"}, w.texts(room.ID, "")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestPictureGoesToSlack: whatever address is named for it, it and the token go to no
// host that is not Slack's.
func TestPictureGoesToSlack(t *testing.T) {
	foreign := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("it was sent elsewhere: %s %s", r.Method, r.URL)
	}))
	defer foreign.Close()
	w, a, room := poster(t, slacktest.Options{})
	w.SetUploadRoot(foreign.URL)
	err := a.Attach(t.Context(), room, "", "test/cause", picture(t))
	if err == nil || strings.Contains(err.Error(), foreign.URL) {
		t.Errorf("got %v, want an error that does not tell the address", err)
	}
	w.SetUploadRoot(strings.TrimSuffix(w.APIURL(), "/api/"))
	must(t, a.Attach(t.Context(), room, "", "test/cause", picture(t)))
}
