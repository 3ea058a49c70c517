package web_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"

	"signalbox/internal/pull"
	"signalbox/internal/web"
	"signalbox/internal/web/webtest"
)

// issuer is a provider of OpenID Connect as Gitea is one.
type issuer struct {
	*httptest.Server
	key *rsa.PrivateKey

	mu sync.Mutex
	// down makes it answer nothing.
	down bool
	// codes are the sign-ins that were let through, by code.
	codes map[string]url.Values
	// spoil changes the claims of the next id token.
	spoil func(claims map[string]any)
}

// issuerKey is of all issuers: making one takes long.
var issuerKey = sync.OnceValues(func() (*rsa.PrivateKey, error) { return rsa.GenerateKey(rand.Reader, 2048) })

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	key, err := issuerKey()
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{key: key, codes: map[string]url.Values{}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": i.URL + "/", "authorization_endpoint": i.URL + "/login/oauth/authorize", "token_endpoint": i.URL + "/login/oauth/access_token",
			"jwks_uri": i.URL + "/login/oauth/keys", "id_token_signing_alg_values_supported": []string{"RS256"},
		})
	})
	mux.HandleFunc("GET /login/oauth/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "1", Algorithm: "RS256", Use: "sig"}}})
	})
	mux.HandleFunc("POST /login/oauth/access_token", i.token)
	i.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		down := i.down
		i.mu.Unlock()
		if down {
			http.Error(w, "down", http.StatusBadGateway)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(i.Close)
	return i
}

func answer(w http.ResponseWriter, value any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(value)
}

// token gives an id token for a code, once, to who knows the secret and the
// verifier.
func (i *issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	asked, ok := i.codes[r.FormValue("code")]
	delete(i.codes, r.FormValue("code"))
	id, secret, basic := r.BasicAuth()
	if !basic {
		id, secret = r.FormValue("client_id"), r.FormValue("client_secret")
	}
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	switch {
	case !ok, id != "signalbox", secret != "the-client-secret",
		asked.Get("code_challenge_method") != "S256", asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]),
		asked.Get("redirect_uri") != r.FormValue("redirect_uri"):
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"error":"invalid_grant","error_description":"the code is ` + r.FormValue("code") + `"}`))
		return
	}
	claims := map[string]any{
		"iss": i.URL + "/", "aud": "signalbox", "sub": "1", "nonce": asked.Get("nonce"),
		"iat": webtest.Now.Unix(), "exp": webtest.Now.Add(time.Hour).Unix(),
	}
	if i.spoil != nil {
		i.spoil(claims)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: i.key, KeyID: "1"}}, nil)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	compact, _ := signed.CompactSerialize()
	answer(w, map[string]any{"access_token": "the-access-token", "token_type": "bearer", "expires_in": 3600, "id_token": compact})
}

// letThrough is Gitea letting somebody through; it returns the path they are led
// back to.
func (i *issuer) letThrough(t *testing.T, location string) string {
	t.Helper()
	u, err := url.Parse(location)
	if err != nil || !strings.HasPrefix(location, i.URL+"/login/oauth/authorize?") {
		t.Fatalf("led to %q: %v", location, err)
	}
	asked := u.Query()
	code := "code-" + asked.Get("state")[:8]
	i.mu.Lock()
	i.codes[code] = asked
	i.mu.Unlock()
	return "/sign-in/back?" + url.Values{"code": {code}, "state": {asked.Get("state")}}.Encode()
}

// signInWorld is a world whose Gitea signs people in.
func signInWorld(t *testing.T) (*webtest.World, *issuer, web.Config) {
	t.Helper()
	w, i := webtest.New(), newIssuer(t)
	c := w.Config()
	u, err := url.Parse(i.URL + "/")
	if err != nil {
		t.Fatal(err)
	}
	c.Gitea = u
	return w, i, c
}

// take keeps the cookies of an answer.
func take(b *webtest.Browser, from *httptest.ResponseRecorder) {
	for _, c := range from.Result().Cookies() {
		b.Cookies = slices.DeleteFunc(b.Cookies, func(o *http.Cookie) bool { return o.Name == c.Name })
		if c.MaxAge >= 0 {
			b.Cookies = append(b.Cookies, c)
		}
	}
}

func TestSignIn(t *testing.T) {
	w, i, c := signInWorld(t)
	b := w.BrowserOf(t, c, pull.Person{})
	start := b.Get("/sign-in?return=" + url.QueryEscape("/pulls/ops/home-gitops/12?said=x"))
	take(b, start)
	asked, _ := url.Parse(start.Header().Get("Location"))
	if got := asked.Query(); got.Get("scope") != "openid" || got.Get("redirect_uri") != "https://signalbox.example.org/sign-in/back" || len(got.Get("state")) < 40 || len(got.Get("nonce")) < 40 {
		t.Errorf("asked Gitea for %v", got)
	}
	if len(b.Cookies) != 1 || b.Cookies[0].Name != "__Host-signalbox-start" {
		t.Fatalf("cookies %v", b.Cookies)
	}
	back := i.letThrough(t, start.Header().Get("Location"))
	end := b.Get(back)
	if got := end.Header().Get("Location"); end.Code != http.StatusSeeOther || got != "/pulls/ops/home-gitops/12?said=x" {
		t.Fatalf("signed in: %d to %q: %s", end.Code, got, end.Body)
	}
	take(b, end)
	if len(b.Cookies) != 1 {
		t.Fatalf("cookies %v", b.Cookies)
	}
	got := *b.Cookies[0]
	token := got.Value
	got.Value, got.Raw = "", ""
	want := http.Cookie{Name: "__Host-signalbox", Path: "/", MaxAge: 12 * 3600, HttpOnly: true, Secure: true, SameSite: http.SameSiteLaxMode}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cookie (-want +got):\n%s", diff)
	}
	keys := (*webtest.Sessions)(w).Keys()
	if len(keys) != 1 || strings.Contains(keys[0], token) || len(keys[0]) != 64 {
		t.Errorf("sessions are kept under %v", keys)
	}
	kept, _, _ := (*webtest.Sessions)(w).Get(keys[0])
	if kept.UserID != 1 || kept.SignIn != nil || !kept.Until.Equal(webtest.Now.Add(12*time.Hour)) || len(kept.Form) < 40 {
		t.Errorf("session %+v", kept)
	}
	if page := b.Get("/"); page.Code != http.StatusOK || !strings.Contains(page.Body.String(), ">alice<") {
		t.Errorf("the board after it: %d", page.Code)
	}
	t.Run("only once", func(t *testing.T) {
		again := b.Get(back)
		if again.Code != http.StatusBadRequest || len(again.Result().Cookies()) != 0 {
			t.Errorf("the same way back: %d", again.Code)
		}
		replay := &webtest.Browser{Handler: b.Handler}
		take(replay, start)
		if again := replay.Get(back); again.Code != http.StatusBadRequest {
			t.Errorf("with the cookie of the start: %d", again.Code)
		}
	})
	t.Run("signed out", func(t *testing.T) {
		if out := b.Post("/sign-out", url.Values{"form": {"wrong"}}); out.Code != http.StatusForbidden {
			t.Errorf("without the token of the form: %d", out.Code)
		}
		out := b.Post("/sign-out", url.Values{"form": {kept.Form}})
		if out.Code != http.StatusSeeOther || out.Header().Get("Location") != "/signed-out" {
			t.Fatalf("signed out: %d", out.Code)
		}
		if len((*webtest.Sessions)(w).Keys()) != 0 || out.Result().Cookies()[0].MaxAge != -1 {
			t.Error("the session is still there")
		}
		if page := b.Get("/"); page.Code != http.StatusSeeOther {
			t.Errorf("with the old cookie: %d", page.Code)
		}
	})
}

// TestSignInFixation: a session that the browser had, whoever gave it, is over after
// a sign-in, and a forged start signs nobody out.
func TestSignInFixation(t *testing.T) {
	w, i, c := signInWorld(t)
	b := w.BrowserOf(t, c, webtest.Bob)
	before := b.Cookies[0].Value
	start := b.Get("/sign-in")
	take(b, start)
	if page := b.Get("/"); page.Code != http.StatusOK || !strings.Contains(page.Body.String(), ">bob<") {
		t.Errorf("a start that was not finished signed bob out: %d", page.Code)
	}
	end := b.Get(i.letThrough(t, start.Header().Get("Location")))
	take(b, end)
	if len(b.Cookies) != 1 || b.Cookies[0].Value == before {
		t.Fatalf("the token is the one from before: %v", b.Cookies)
	}
	old := &webtest.Browser{Handler: b.Handler, Cookies: []*http.Cookie{{Name: "__Host-signalbox", Value: before}}}
	if page := old.Get("/"); page.Code != http.StatusSeeOther {
		t.Errorf("the session from before is still good: %d", page.Code)
	}
	if n := len((*webtest.Sessions)(w).Keys()); n != 1 {
		t.Errorf("%d sessions are kept", n)
	}
}

func TestSignInFails(t *testing.T) {
	tests := []struct {
		name  string
		spoil func(claims map[string]any)
		// back changes the path that Gitea leads back to.
		back func(string) string
		want int
	}{
		{"wrong state", nil, func(p string) string { return p[:len(p)-3] + "xxx" }, http.StatusBadRequest},
		{"no state", nil, func(p string) string { return strings.Split(p, "&state")[0] }, http.StatusBadRequest},
		{"wrong nonce", func(c map[string]any) { c["nonce"] = "another" }, nil, http.StatusBadGateway},
		{"no nonce", func(c map[string]any) { delete(c, "nonce") }, nil, http.StatusBadGateway},
		{"for another application", func(c map[string]any) { c["aud"] = "another" }, nil, http.StatusBadGateway},
		{"of another issuer", func(c map[string]any) { c["iss"] = "https://gitea.example.net/" }, nil, http.StatusBadGateway},
		{"over", func(c map[string]any) { c["exp"] = webtest.Now.Add(-time.Hour).Unix() }, nil, http.StatusBadGateway},
		{"of nobody", func(c map[string]any) { c["sub"] = "0" }, nil, http.StatusBadGateway},
		{"of a name", func(c map[string]any) { c["sub"] = "alice" }, nil, http.StatusBadGateway},
		{"a code of another", nil, func(p string) string { return strings.Replace(p, "code-", "edoc-", 1) }, http.StatusBadGateway},
		{"refused", nil, func(p string) string { return strings.Replace(p, "code=", "error=access_denied&x=", 1) }, http.StatusForbidden},
		{"refused with markup", nil, func(p string) string { return strings.Replace(p, "code=", "error=<script>x</script>&x=", 1) }, http.StatusForbidden},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w, i, c := signInWorld(t)
			var log strings.Builder
			c.Log = logTo(&log)
			i.spoil = tt.spoil
			b := w.BrowserOf(t, c, pull.Person{})
			start := b.Get("/sign-in")
			take(b, start)
			back := i.letThrough(t, start.Header().Get("Location"))
			if tt.back != nil {
				back = tt.back(back)
			}
			end := b.Get(back)
			if end.Code != tt.want {
				t.Errorf("got %d, want %d: %s", end.Code, tt.want, end.Body)
			}
			for _, c := range end.Result().Cookies() {
				if c.Name == "__Host-signalbox" {
					t.Errorf("a session was given: %v", c)
				}
			}
			for _, hidden := range []string{"the-client-secret", "the-access-token", "code-", "<script>x"} {
				if strings.Contains(end.Body.String(), hidden) || strings.Contains(log.String(), hidden) {
					t.Errorf("%q was told:\n%s\n%s", hidden, end.Body, &log)
				}
			}
		})
	}
	t.Run("without the cookie of the start", func(t *testing.T) {
		w, i, c := signInWorld(t)
		b := w.BrowserOf(t, c, pull.Person{})
		start := b.Get("/sign-in")
		if end := b.Get(i.letThrough(t, start.Header().Get("Location"))); end.Code != http.StatusBadRequest {
			t.Errorf("got %d", end.Code)
		}
	})
	t.Run("too late", func(t *testing.T) {
		w, i, c := signInWorld(t)
		now := webtest.Now
		c.Now = func() time.Time { return now }
		b := w.BrowserOf(t, c, pull.Person{})
		start := b.Get("/sign-in")
		take(b, start)
		now = now.Add(10 * time.Minute)
		if end := b.Get(i.letThrough(t, start.Header().Get("Location"))); end.Code != http.StatusBadRequest {
			t.Errorf("got %d", end.Code)
		}
	})
}

// TestSignInAfterGiteaWasDown: what Gitea says of itself is read again.
// TestSignInOfWhoIsNotSeen: Gitea lets somebody through at once who let signalbox know
// before who they are, so that a sign-in which ends at once would never end.
func TestSignInOfWhoIsNotSeen(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(*webtest.World)
		want  int
	}{
		"private": {func(w *webtest.World) { w.SetPerson(1, "") }, http.StatusForbidden},
		"unknown": {func(w *webtest.World) { w.PeopleError = errors.New("502 Bad Gateway") }, http.StatusBadGateway},
	} {
		t.Run(name, func(t *testing.T) {
			w, i, c := signInWorld(t)
			b := w.BrowserOf(t, c, pull.Person{})
			start := b.Get("/sign-in")
			take(b, start)
			tt.spoil(w)
			got := b.Get(i.letThrough(t, start.Header().Get("Location")))
			take(b, got)
			if got.Code != tt.want || len(b.Cookies) != 0 || len((*webtest.Sessions)(w).Keys())+len(w.SignIns().Keys()) != 0 {
				t.Errorf("%d with the cookies %v", got.Code, b.Cookies)
			}
		})
	}
}

func TestSignInAfterGiteaWasDown(t *testing.T) {
	w, i, c := signInWorld(t)
	i.down = true
	now := webtest.Now
	c.Now = func() time.Time { return now }
	b := w.BrowserOf(t, c, pull.Person{})
	if got := b.Get("/sign-in?return=/a"); got.Code != http.StatusBadGateway || !strings.Contains(got.Body.String(), "/sign-in?return=%2fa") && !strings.Contains(got.Body.String(), "/sign-in?return=%2Fa") {
		t.Errorf("while it is down: %d %s", got.Code, got.Body)
	}
	i.mu.Lock()
	i.down = false
	i.mu.Unlock()
	if got := b.Get("/sign-in"); got.Code != http.StatusBadGateway {
		t.Errorf("it was asked again at once: %d", got.Code)
	}
	now = now.Add(3 * time.Second)
	if got := b.Get("/sign-in"); got.Code != http.StatusSeeOther {
		t.Errorf("after it: %d", got.Code)
	}
}

func TestManySignInsAreRefused(t *testing.T) {
	w, _, c := signInWorld(t)
	b := w.BrowserOf(t, c, pull.Person{})
	codes := map[int]int{}
	for range 150 {
		codes[b.Get("/sign-in").Code]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusSeeOther: 100, http.StatusTooManyRequests: 50}, codes); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	// They are not kept as long as sessions.
	if n, sessions := len(w.SignIns().Keys()), (*webtest.Sessions)(w).Keys(); n != 100 || len(sessions) != 0 {
		t.Errorf("%d are kept, and %d sessions", n, len(sessions))
	}
}

func TestReturnPath(t *testing.T) {
	for in, want := range map[string]string{
		"/pulls/ops/apps/1?x=y":         "/pulls/ops/apps/1?x=y",
		"":                              "/",
		"//gitea.example.net":           "/",
		"/\\gitea.example.net":          "/",
		"https://gitea.example.net/":    "/",
		"/\t/gitea.example.net":         "/",
		"/sign-out":                     "/",
		"/sign-in?return=/":             "/",
		"/" + strings.Repeat("a", 3000): "/",
		"javascript:alert(1)":           "/",
	} {
		w, i, c := signInWorld(t)
		b := w.BrowserOf(t, c, pull.Person{})
		start := b.Get("/sign-in?return=" + url.QueryEscape(in))
		take(b, start)
		if got := b.Get(i.letThrough(t, start.Header().Get("Location"))).Header().Get("Location"); got != want {
			t.Errorf("%.40q leads to %q, want %q", in, got, want)
		}
	}
}

func TestSessionEnds(t *testing.T) {
	t.Run("after twelve hours", func(t *testing.T) {
		w := webtest.New()
		now := webtest.Now
		w.Clock = func() time.Time { return now }
		b := w.Browser(t, webtest.Alice)
		now = now.Add(12*time.Hour - time.Second)
		if got := b.Get("/"); got.Code != http.StatusOK {
			t.Errorf("just before: %d", got.Code)
		}
		now = now.Add(time.Second)
		if got := b.Get("/"); got.Code != http.StatusSeeOther {
			t.Errorf("after it: %d", got.Code)
		}
	})
	t.Run("with the account", func(t *testing.T) {
		w := webtest.New()
		b := w.Browser(t, webtest.Alice)
		w.SetPerson(1, "")
		if got := b.Get("/"); got.Code != http.StatusSeeOther || len((*webtest.Sessions)(w).Keys()) != 0 || got.Result().Cookies()[0].MaxAge != -1 {
			t.Errorf("got %d, %v", got.Code, got.Result().Cookies())
		}
	})
	t.Run("not with a name", func(t *testing.T) {
		w := webtest.New()
		b := w.Browser(t, webtest.Alice)
		w.SetPerson(1, "alicia")
		if got := b.Get("/"); !strings.Contains(got.Body.String(), ">alicia<") {
			t.Errorf("got %d %s", got.Code, got.Body)
		}
	})
	t.Run("not while Gitea is down", func(t *testing.T) {
		w := webtest.New()
		w.PeopleError = errors.New("gitea is down")
		b := w.Browser(t, webtest.Alice)
		if got := b.Get("/"); got.Code != http.StatusServiceUnavailable || len((*webtest.Sessions)(w).Keys()) != 1 {
			t.Errorf("got %d", got.Code)
		}
	})
	t.Run("never for a start", func(t *testing.T) {
		w, _, c := signInWorld(t)
		b := w.BrowserOf(t, c, pull.Person{})
		start := b.Get("/sign-in")
		b.Cookies = []*http.Cookie{{Name: "__Host-signalbox", Value: start.Result().Cookies()[0].Value}}
		if got := b.Get("/"); got.Code != http.StatusSeeOther {
			t.Errorf("a start was taken for a session: %d", got.Code)
		}
	})
}

func TestCookieWithoutTLS(t *testing.T) {
	w, _, c := signInWorld(t)
	c.URL = &url.URL{Scheme: "http", Host: "127.0.0.1:8080", Path: "/"}
	got := w.BrowserOf(t, c, pull.Person{}).Get("/sign-in").Result().Cookies()[0]
	if got.Name != "signalbox-start" || got.Secure || !got.HttpOnly {
		t.Errorf("cookie %v", got)
	}
}
