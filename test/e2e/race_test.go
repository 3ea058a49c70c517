//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "code.gitea.io/sdk/gitea"

	"signalbox/test/realserver"
	"signalbox/test/realserver/seed"
)

// hold keeps requests to post or edit the comment back until it is released:
// the statuses are posted then, and nothing is recorded yet.
func hold(t *testing.T, tap *realserver.Tap) (held <-chan struct{}, release func()) {
	t.Helper()
	h, r := make(chan struct{}), make(chan struct{})
	first := make(chan struct{}, 1)
	first <- struct{}{}
	tap.Intercept(func(req *http.Request) *realserver.Answer {
		if !strings.Contains(req.URL.Path, "/comments") || req.Method == http.MethodGet {
			return nil
		}
		select {
		case <-first:
			close(h)
		default:
		}
		select {
		case <-r:
		case <-req.Context().Done():
		}
		return nil
	})
	return h, func() {
		tap.Intercept(nil)
		close(r)
	}
}

// heard waits until signalbox was told of at least n events of a kind and has
// handled all that it was told.
func (b *bot) heard(t *testing.T, event string, n int) {
	t.Helper()
	eventually(t, patience, fmt.Sprintf("%d %s events are handled", n, event), func() error {
		told := b.metric(t, "signalbox_gitea_webhooks_total", `event="`+event+`"`, `result="published"`)
		open := b.metric(t, "signalbox_bus_consumer_pending", `consumer="events"`) + b.metric(t, "signalbox_bus_consumer_unacked", `consumer="events"`)
		if told < n || open > 0 {
			return fmt.Errorf("%d came, %d are not handled", told, open)
		}
		return nil
	})
}

// TestMeanwhile: what happens to a pull request while it is looked at for the
// first time is not missed.
func TestMeanwhile(t *testing.T) {
	withoutFlux(t)
	name := world.Name(t)
	st := plantStage(t, seed.Options{Policy: tierPolicy(name, name)})
	k := newTier(t, name, "tier")
	k.ready(st.tip(t))
	tap, err := realserver.NewTap(world.Gitea.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(tap.Close)
	st.bot = newBot(t, st.repo, settings{gitea: tap.URL()})
	st.bot.start()

	t.Run("the base moves", func(t *testing.T) {
		held, release := hold(t, tap)
		defer func() { tap.Intercept(nil) }()
		p := st.open(t, "moved", write("first/moved.yaml", "a: 1\n"))
		<-held
		pushes := st.bot.metric(t, "signalbox_gitea_webhooks_total", `event="push"`)
		mainMoves(t, st, "docs/moved.md", "Moved.\n")
		st.bot.heard(t, "push", pushes+1)
		release()
		p.shows(patience, "pending", "success", "does not contain the tip")
		k.ready(st.tip(t))
		p.shows(patience, "success", "success", "Clear to merge")
	})

	t.Run("a status is forged", func(t *testing.T) {
		k.failing(st.tip(t), "broken")
		p := st.open(t, "forged", write("first/forged.yaml", "a: 1\n"))
		p.shows(patience, "pending", "success", "broken")
		for _, what := range []string{"on a new pull request", "on a new head"} {
			tap.Reset()
			told := st.bot.metric(t, "signalbox_gitea_webhooks_total", `event="status"`, `result="published"`)
			held, release := hold(t, tap)
			var head string
			if what == "on a new head" {
				head = st.push(t, "forged", "", write("first/forged.yaml", "a: 2\n"))
			} else {
				head = st.push(t, "forged-new", "origin/main", write("first/new.yaml", "a: 1\n"))
				p = st.request(t, "forged-new", "main")
			}
			<-held
			posted := 0
			for _, r := range tap.Requests() {
				if r.Method == http.MethodPost && strings.Contains(r.Path, "/statuses/"+head) {
					posted++
				}
			}
			if _, _, err := client(t, st.repo, st.repo.Bob).CreateStatus(st.repo.Owner, st.repo.Name, head, sdk.CreateStatusOption{
				State: sdk.StatusSuccess, Context: "signalbox / preconditions (main)",
			}); err != nil {
				t.Fatal(err)
			}
			st.bot.heard(t, "status", told+posted+1)
			release()
			p.shows(patience, "pending", "success", "bob posted the status")
			p = newPage(t, st.repo, 2)
		}
	})
}
