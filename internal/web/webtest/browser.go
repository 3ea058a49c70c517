package webtest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"signalbox/internal/pull"
	"signalbox/internal/web"
)

// Form is what the forms of sessions of [World.SignIn] bring back.
const Form = "form-of-the-session-0123456789"

// Browser sends requests to pages, as one who signed in or nobody.
type Browser struct {
	Handler http.Handler
	Cookies []*http.Cookie
}

// Browser makes pages of a world, and a browser of somebody; the zero Person has
// not signed in.
func (w *World) Browser(t testing.TB, as pull.Person) *Browser {
	t.Helper()
	return w.BrowserOf(t, w.Config(), as)
}

// BrowserOf is Browser with another configuration than that of the world.
func (w *World) BrowserOf(t testing.TB, c web.Config, as pull.Person) *Browser {
	t.Helper()
	s, err := web.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	b := &Browser{Handler: s.Handler()}
	if as.ID != 0 {
		b.Cookies = append(b.Cookies, w.SignIn(t, c.URL, as))
	}
	return b
}

// SignIn keeps a session of somebody, and returns its cookie.
func (w *World) SignIn(t testing.TB, address *url.URL, as pull.Person) *http.Cookie {
	t.Helper()
	return w.session(t, address, as, strings.Repeat(as.Login[:1], 43))
}

// SignInAgain is SignIn with a session beside the one of that.
func (w *World) SignInAgain(t testing.TB, address *url.URL, as pull.Person) *http.Cookie {
	t.Helper()
	return w.session(t, address, as, strings.Repeat(strings.ToUpper(as.Login[:1]), 43))
}

func (w *World) session(t testing.TB, address *url.URL, as pull.Person, token string) *http.Cookie {
	t.Helper()
	sum := sha256.Sum256([]byte(token))
	key := hex.EncodeToString(sum[:])
	_, revision, _ := (*Sessions)(w).Get(key)
	_, err := (*Sessions)(w).Put(context.Background(), key, web.Session{
		UserID: as.ID, Until: w.now().Add(12 * time.Hour), Form: Form,
	}, revision)
	if err != nil {
		t.Fatal(err)
	}
	name := "signalbox"
	if address.Scheme == "https" {
		name = "__Host-" + name
	}
	return &http.Cookie{Name: name, Value: token}
}

// Get asks for a path.
func (b *Browser) Get(path string, header ...string) *httptest.ResponseRecorder {
	return b.Do(httptest.NewRequest(http.MethodGet, path, nil), header...)
}

// Post sends a form with the values, and the one that the session wants unless
// there is one named "form".
func (b *Browser) Post(path string, values url.Values, header ...string) *httptest.ResponseRecorder {
	sent := url.Values{"form": {Form}}
	maps.Copy(sent, values)
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(sent.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	return b.Do(r, header...)
}

// Do sends a request with the cookies of the browser and headers, which are names
// and values in turn.
func (b *Browser) Do(r *http.Request, header ...string) *httptest.ResponseRecorder {
	for _, c := range b.Cookies {
		r.AddCookie(c)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	b.Handler.ServeHTTP(w, r)
	return w
}
