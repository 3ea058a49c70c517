package main

import (
	"net/http"
	"strings"
	"sync"
	"testing"

	"signalbox/internal/gitea/giteatest"
	"signalbox/internal/pull"
	"signalbox/internal/render"
)

// holdComment keeps the comment of the next verdict back until it is released.
// The statuses are posted then, and the verdict is not recorded.
func (w *world) holdComment() (held <-chan struct{}, release func()) {
	w.t.Helper()
	h, r := make(chan struct{}), make(chan struct{})
	var once sync.Once
	w.forge.Fail(func(req *http.Request) *giteatest.Response {
		if req.Method != http.MethodGet && strings.Contains(req.URL.Path, "/comments") {
			once.Do(func() { close(h) })
			<-r
		}
		return nil
	})
	return h, sync.OnceFunc(func() {
		w.forge.Fail(nil)
		close(r)
	})
}

// TestMeanwhile: what happens to a pull request while it is looked at for the
// first time is not missed.
func TestMeanwhile(t *testing.T) {
	const toMain = "main"
	for name, test := range map[string]struct {
		meanwhile      func(w *world, head string)
		approval, text string
	}{
		"the base moves": {
			func(w *world, _ string) {
				_, err := w.forge.Push(t.Context(), w.repo, giteatest.Push{
					Branch: toMain, As: "alice", Message: "nobody but alice",
					Files: map[string]string{".gitea/signalbox.yaml": strings.Replace(testPolicy, "teams: [maintainers], ", "", 1)},
				})
				w.must(err)
			},
			"pending", "Needs 1 approval by alice",
		},
		"a status is forged": {
			func(w *world, head string) {
				w.must(w.forge.SetStatus(t.Context(), w.repo, head, "bob", pull.Status{Context: render.ApprovalContext(toMain), State: "success"}))
			},
			"pending", "bob posted the status",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, worldOptions{})
			w.ready()
			w.start(worldOptions{})
			held, release := w.holdComment()
			defer release()
			number := w.open("held", clusterChange)
			<-held
			p, err := w.eyes.Pull(t.Context(), w.repo, number)
			w.must(err)
			test.meanwhile(w, p.Head.SHA)
			// The webhooks are handled, and ask for nothing or for another look.
			w.quiet()
			release()
			w.shows(number, "success", test.approval, test.text)
		})
	}
}
