package browser

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/chromedp/chromedp"

	"signalbox/test/realserver"
)

// Selectors of Gitea 1.26.
const (
	giteaName     = `input#user_name`
	giteaPassword = `input#password`
	giteaSignIn   = `form[action$="/user/login"] button`
	giteaSignedIn = `.user-menu .header strong`
	giteaGrant    = `button#authorize-app`
)

// SignIn signs the person into a Gitea with name and password, and looks whether Gitea
// took them for that. Where Gitea has sent the person to sign in already, it goes on
// to where they came from.
func (p *Person) SignIn(g *realserver.Gitea, u realserver.User) {
	p.t.Helper()
	if !strings.HasPrefix(p.At(), g.URL()+"user/login") {
		p.Go(g.URL() + "user/login")
	}
	p.Do(
		chromedp.SendKeys(chromedp.CSS(giteaName), u.Name, chromedp.NodeVisible),
		chromedp.SendKeys(chromedp.CSS(giteaPassword), u.Password, chromedp.NodeVisible),
	)
	if status := p.Click(giteaSignIn); status != http.StatusOK || strings.HasPrefix(p.At(), g.URL()+"user/login") {
		p.t.Fatalf("Gitea did not let %s in: it answered %d, at %s", u.Name, status, p.At())
	}
}

// SignedIn returns the name that a Gitea shows for the person on its pages, or nothing
// where they are not signed in. The person is on its first page after that.
func (p *Person) SignedIn(g *realserver.Gitea) string {
	p.t.Helper()
	p.Go(g.URL())
	// It stands in a menu that is closed, and twice, for wide and for narrow windows.
	return ask(p, chromedp.Evaluate[string](`document.querySelector("`+giteaSignedIn+`")?.textContent ?? ""`))
}

// Grant lets an application in on Gitea's page that asks for it, and waits until the
// application has answered. It returns the HTTP status of that. Where the person is at
// another page, as Gitea does not ask twice, the test fails.
func (p *Person) Grant(g *realserver.Gitea) int {
	p.t.Helper()
	at, err := url.Parse(p.At())
	if err != nil || !strings.HasPrefix(at.String(), g.URL()+"login/oauth/authorize") {
		p.t.Fatalf("the page is not that on which Gitea asks whether an application may come in: %s", at)
	}
	return p.Click(giteaGrant)
}
