//go:build e2e

package browser_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"golang.org/x/oauth2"

	"signalbox/test/realserver"
	"signalbox/test/realserver/browser"
)

// page is green in the dark and white else.
const page = `<!doctype html><title>signs</title>
<meta name="viewport" content="width=device-width">
<style>body { margin: 0; background: #fff } @media (prefers-color-scheme: dark) { body { background: #0f0 } }</style>
<p id="text">ready ✅</p><p hidden id="secret">hidden</p><a href="/gone">on</a><script>alert("in front")</script>`

func TestPersons(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/" {
			http.NotFound(w, r)
			return
		}
		if _, err := r.Cookie("seen"); err == nil {
			_, _ = w.Write([]byte("again"))
			return
		}
		http.SetCookie(w, &http.Cookie{Name: "seen", Value: "yes"})
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(page))
	}))
	defer server.Close()
	b := browser.Open(t)
	alice, bob := b.Person(), b.Person()
	for _, p := range []*browser.Person{alice, bob} {
		if status := p.Go(server.URL); status != http.StatusOK {
			t.Errorf("the page answered %d", status)
		}
		if got := p.Read("body"); !strings.Contains(got, "ready ✅") || strings.Contains(got, "hidden") {
			t.Errorf("somebody who comes first reads %q", got)
		}
	}

	for _, c := range []struct {
		width  int
		scheme browser.Scheme
		red    uint32
	}{{360, browser.Light, 0xffff}, {1280, browser.Dark, 0}} {
		file, err := os.ReadFile(alice.Shot("signs", c.width, c.scheme))
		if err != nil {
			t.Fatal(err)
		}
		shot, err := png.Decode(bytes.NewReader(file))
		if err != nil {
			t.Fatal(err)
		}
		red, _, _, _ := shot.At(shot.Bounds().Dx()-1, 0).RGBA()
		if shot.Bounds().Dx() != c.width || red != c.red {
			t.Errorf("%d wide in %s it is %d wide, with %#x of red", c.width, c.scheme, shot.Bounds().Dx(), red)
		}
	}

	if status := alice.Click("a"); status != http.StatusNotFound || alice.At() != server.URL+"/gone" {
		t.Errorf("the link leads to %s, which answered %d", alice.At(), status)
	}
	if alice.Go(server.URL); alice.Read("body") != "again" {
		t.Errorf("alice comes again and reads %q", alice.Read("body"))
	}
}

// TestGitea: alice signs in to Gitea, and then with Gitea to a program; bob, in the same
// browser, does neither.
func TestGitea(t *testing.T) {
	g, err := realserver.StartGitea(t.Context(), realserver.GiteaOptions{Options: realserver.Options{Dir: t.TempDir()}})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	account, err := g.CreateUser(t.Context(), "alice")
	if err != nil {
		t.Fatal(err)
	}
	codes := make(chan string, 1)
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/signin/callback" && r.FormValue("state") == "the state" {
			codes <- r.FormValue("code")
			w.WriteHeader(http.StatusAccepted)
		}
	}))
	defer program.Close()
	app, err := g.CreateOAuth2Application(t.Context(), account, "signalbox", program.URL+"/signin/callback")
	if err != nil {
		t.Fatal(err)
	}
	b := browser.Open(t)
	alice, bob := b.Person(), b.Person()

	alice.SignIn(g, account)
	if name := alice.SignedIn(g); name != "alice" {
		t.Errorf("Gitea shows the name %q to alice", name)
	}
	if name := bob.SignedIn(g); name != "" {
		t.Errorf("Gitea shows the name %q to bob, who has not signed in", name)
	}

	verifier := oauth2.GenerateVerifier()
	client := &oauth2.Config{
		ClientID: app.ClientID, ClientSecret: app.ClientSecret, RedirectURL: program.URL + "/signin/callback",
		Scopes:   []string{"openid", "profile"},
		Endpoint: oauth2.Endpoint{AuthURL: g.URL() + "login/oauth/authorize", TokenURL: g.URL() + "login/oauth/access_token"},
	}
	start := client.AuthCodeURL("the state", oauth2.S256ChallengeOption(verifier))
	if status := alice.Go(start); status != http.StatusOK {
		t.Fatalf("Gitea answered %d at %s", status, alice.At())
	}
	if status := alice.Grant(g); status != http.StatusAccepted {
		t.Fatalf("the program answered %d at %s", status, alice.At())
	}
	token, err := client.Exchange(t.Context(), <-codes, oauth2.VerifierOption(verifier))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Client(t.Context(), token).Get(g.URL() + "login/oauth/userinfo")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var who struct {
		Name string `json:"preferred_username"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&who); err != nil || who.Name != "alice" {
		t.Errorf("the program is told that it is %q, %v", who.Name, err)
	}

	// Bob is sent to sign in first.
	bob.Go(start)
	bob.Do(chromedp.WaitVisible(chromedp.CSS("input#user_name")))
	if !strings.HasPrefix(bob.At(), g.URL()+"user/login") {
		t.Errorf("bob is at %s", bob.At())
	}
	second, err := g.CreateUser(t.Context(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	bob.SignIn(g, second)
	if status := bob.Grant(g); status != http.StatusAccepted || <-codes == "" {
		t.Errorf("for bob the program answered %d at %s", status, bob.At())
	}
}
