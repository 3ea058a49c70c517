//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"
	"github.com/chromedp/chromedp"

	"signalbox/test/realserver"
	"signalbox/test/realserver/browser"
	"signalbox/test/realserver/seed"
)

// TestPages is what people see in a browser: they sign in with the real Gitea, come
// from the status to the page, watch the cluster change it, approve there, and see
// nothing of what they may not see in Gitea.
func TestPages(t *testing.T) {
	withoutFlux(t)
	const namespace = "platform"
	st := plantStage(t, seed.Options{Owner: "ops", Policy: chatPolicy(namespace)})
	private := true
	if _, _, err := client(t, st.repo, st.repo.Alice).EditRepo(st.repo.Owner, st.repo.Name, sdk.EditRepoOption{Private: &private}); err != nil {
		t.Fatal(err)
	}
	tier := newTier(t, namespace, "tier")
	tip := st.tip(t)
	source(t, namespace, "nobody", tip)
	tier.failing(tip, `no matches for kind "StorageProfile"`)
	st.bot = newBot(t, st.repo, settings{})
	root := "http://" + st.bot.addr + "/"
	app, err := st.repo.World.Gitea.CreateOAuth2Application(t.Context(), st.repo.Bot, "signalbox", root+"sign-in/back")
	if err != nil {
		t.Fatal(err)
	}
	st.bot.configure(settings{extra: fmt.Sprintf(`digests:
  - {name: morning, schedule: "@daily", to: [{issue: %s}]}
web:
  url: %s
  signIn: {clientID: %s}
  operators: [%s]
`, st.repo, root, app.ClientID, st.repo.Carol.Name)})
	st.bot.env = append(st.bot.env, "SIGNALBOX_OAUTH_SECRET="+app.ClientSecret)
	st.bot.start()
	p := st.open(t, "storage-profile", write("clusters/prod/new.yaml", "a: 1\n"))
	p.shows(patience, "pending", "pending")
	page := leads(t, st.repo, p.number)
	if want := fmt.Sprintf("%spulls/%s/%d", root, st.repo, p.number); page != want {
		t.Fatalf("the status leads to %s, want %s", page, want)
	}

	b := browser.Open(t)
	alice := b.Person()
	enter(t, alice, st.repo.Alice, page)
	if got := alice.Read("main"); !strings.Contains(got, `no matches for kind "StorageProfile"`) {
		t.Errorf("the page says\n%s", got)
	}
	album(alice, root, map[string]string{
		"board": "", "pull": strings.TrimPrefix(page, root), "cluster": "clusters/prod", "digest": "digests/now",
		"audit": "audit", "health": "health",
	})

	// The cluster changes, and the page with it; nobody has loaded it again.
	alice.Look(1280, browser.Light)
	alice.Go(page)
	alice.Do(chromedp.Steps(chromedp.Evaluate[chromedp.Void](`void (window.here = true)`)))
	tier.ready(tip)
	reads(t, alice, "carries on", "Preconditions clear")
	if here, err := chromedp.Run(alice.Context(), chromedp.Evaluate[bool](`window.here === true`)); err != nil || !here {
		t.Errorf("the page was loaded anew: %v", err)
	}

	if status := alice.Click("section.decide button.primary"); status != http.StatusOK {
		t.Errorf("approving answers %d", status)
	}
	reads(t, alice, "is told what became of it", "carried out")
	p.shows(patience, "success", "success")
	alice.Shot("approved", 1280, browser.Light)

	// Who is no member sees what is not there.
	mallory := b.Person()
	if status := enter(t, mallory, st.repo.Mallory, page); status != http.StatusNotFound {
		t.Errorf("mallory is answered %d", status)
	}
	for _, path := range []string{"", "audit", "clusters/prod", "digests/now", "health"} {
		mallory.Go(root + path)
		if got := mallory.Read("body"); strings.Contains(got, st.repo.Name) || strings.Contains(got, "StorageProfile") || strings.Contains(got, "tier") {
			t.Errorf("/%s shows mallory\n%s", path, got)
		}
	}
	// And who has signed in nowhere is sent to do so.
	nobody := b.Person()
	nobody.Go(page)
	if at := nobody.At(); !strings.HasPrefix(at, st.repo.World.Gitea.URL()) {
		t.Errorf("nobody is at %s", at)
	}
}

// leads returns where the status of a pull request leads.
func leads(t *testing.T, repo *seed.Repository, number int64) string {
	t.Helper()
	c := client(t, repo, repo.Bob)
	pr, _, err := c.GetPullRequest(repo.Owner, repo.Name, number)
	if err != nil {
		t.Fatal(err)
	}
	all, _, err := c.ListStatuses(repo.Owner, repo.Name, pr.Head.Sha, sdk.ListStatusesOption{})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if strings.HasPrefix(s.Context, "signalbox / preconditions") {
			return s.TargetURL
		}
	}
	t.Fatal("there is no status")
	return ""
}

// enter opens a page for somebody who has not signed in: Gitea asks who they are, and
// whether signalbox may know. It returns what the page answers.
func enter(t *testing.T, p *browser.Person, who realserver.User, page string) int {
	t.Helper()
	p.Go(page)
	p.SignIn(world.Gitea, who)
	return p.Grant(world.Gitea)
}

// reads waits until a page says a text, as a person who waits does.
func reads(t *testing.T, p *browser.Person, what, text string) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("the page %s: %q", what, text), func() error {
		if got := strings.Join(strings.Fields(p.Read("main")), " "); !strings.Contains(got, text) {
			return fmt.Errorf("it says\n%s", got)
		}
		return nil
	})
}

// album takes pictures of pages as they are on a screen and a phone, by day and night.
func album(p *browser.Person, root string, pages map[string]string) {
	for name, path := range pages {
		p.Go(root + path)
		for _, width := range []int{1280, 390} {
			for _, scheme := range []browser.Scheme{browser.Light, browser.Dark} {
				p.Shot(name, width, scheme)
			}
		}
	}
}
