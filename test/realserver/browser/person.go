package browser

import (
	"context"
	"iter"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// Person is somebody in front of a window of their own: with other cookies than
// everybody else's, and signed in nowhere at first. A person does one thing at a time,
// and accepts what a page puts in front of itself, such as the alert of a Gitea whose
// scripts were not built; that stands in the log of the test.
type Person struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // With chromedp, it is the window.
}

// Person opens a window for somebody. It is closed at the end of the test.
func (b *Browser) Person() *Person {
	b.t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithNewBrowserContext())
	closed := make(chan struct{})
	b.t.Cleanup(func() {
		cancel()
		<-closed
	})
	// The window lives as long as the context that it is opened with.
	if err := chromedp.Do(ctx); err != nil {
		close(closed)
		b.t.Fatalf("open a window: %v", err)
	}
	p := &Person{t: b.t, ctx: ctx}
	dialogs := chromedp.Events(ctx, page.JavascriptDialogOpening)
	go func() {
		defer close(closed)
		p.dismiss(dialogs)
	}()
	return p
}

// dismiss closes what a page puts in front of itself: it would stand still until then.
func (p *Person) dismiss(dialogs iter.Seq2[page.EventJavascriptDialogOpening, error]) {
	for d, err := range dialogs {
		if err != nil {
			return // The window is closed.
		}
		at, _, _ := strings.Cut(d.URL, "?") // What follows may be a secret.
		p.t.Logf("%s says in front of the page: %s", at, d.Message)
		if _, err := chromedp.Call(p.ctx, page.HandleJavaScriptDialog, page.HandleJavaScriptDialogParams{Accept: true}); err != nil {
			p.t.Logf("it could not be dismissed: %v", err)
		}
	}
}

// Do does something, within two minutes. If that fails, so does the test.
func (p *Person) Do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ask(p, chromedp.Steps(steps...))
}

// Go opens an address and waits until the page is loaded. It returns the HTTP status.
func (p *Person) Go(url string) int {
	p.t.Helper()
	return p.status(chromedp.Navigate(url))
}

// Click clicks what a CSS selector finds first, and waits until the page is loaded that
// this leads to. It returns the HTTP status. For a click that leads nowhere, use
// [Person.Do].
func (p *Person) Click(selector string) int {
	p.t.Helper()
	return p.status(chromedp.Click(chromedp.CSS(selector), chromedp.NodeVisible))
}

// status does what leads to another page.
func (p *Person) status(steps ...chromedp.Action[chromedp.Void]) int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	resp, err := chromedp.RunResponse(ctx, steps...)
	for nodeGone(err) {
		resp, err = chromedp.RunResponse(ctx, steps...)
	}
	if err != nil {
		p.fail(err)
	}
	if resp == nil {
		return 0 // A page that no server has answered, such as about:blank.
	}
	return int(resp.Status)
}

// At returns the address of the page.
func (p *Person) At() string {
	p.t.Helper()
	return ask(p, chromedp.Location())
}

// Read returns the text of what a CSS selector finds first, once it is there, as it is
// shown: without what is hidden.
func (p *Person) Read(selector string) string {
	p.t.Helper()
	return ask(p, chromedp.Text(chromedp.CSS(selector)))
}

// Context is that of the window, for [chromedp.Run] and what has no method here.
func (p *Person) Context() context.Context { return p.ctx }

// nodeGone reports whether something was found on a page and was gone before anything
// was done with it, as the page has changed: then it is to be looked for again.
func nodeGone(err error) bool {
	return err != nil && (strings.Contains(err.Error(), "No node with given id") || strings.Contains(err.Error(), "Could not find node with given id"))
}

// ask does something that has a result.
func ask[T any](p *Person, a chromedp.Action[T]) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	v, err := chromedp.Run(ctx, a)
	for nodeGone(err) {
		v, err = chromedp.Run(ctx, a)
	}
	if err != nil {
		p.fail(err)
	}
	return v
}

// fail ends the test and says what stood in the way.
func (p *Person) fail(err error) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.ctx, patience)
	defer cancel()
	at, _ := chromedp.Run(ctx, chromedp.Location())
	at, _, _ = strings.Cut(at, "?")
	shot := "no picture of it could be made"
	if file, errShot := chromedp.Run(ctx, chromedp.FullScreenshot(pngQuality)); errShot == nil {
		if path, errSave := save(p.t, "failed", file); errSave == nil {
			shot = path
		}
	}
	p.t.Fatalf("on the page %s: %v\n%s", at, err, shot)
}
