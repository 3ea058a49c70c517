// Package browser opens pages in a real Chromium for end-to-end tests, as people see
// them.
//
// A [Browser] has a temporary profile and ends with its test, whatever becomes of that.
// Each [Person] of it has cookies of their own. What a person does is given as actions
// of github.com/chromedp/chromedp; it fails the test when it cannot be done in time,
// with the address and a picture of the page that stood in the way.
//
// Chromium is found on the PATH: chromium, chromium-browser or google-chrome, or by the
// environment variable SIGNALBOX_CHROMIUM. On Debian "tools/setup browser" installs it,
// with fonts for signs.
package browser

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
)

const (
	// programVariable names the environment variable with the path of Chromium.
	programVariable = "SIGNALBOX_CHROMIUM"
	// patience bounds what a person does in one call, and how long Chromium may take to
	// start or to end on a busy machine.
	patience = 2 * time.Minute
)

// Browser is a Chromium for one test. Make it with [Open].
type Browser struct {
	t   testing.TB
	ctx context.Context //nolint:containedctx // With chromedp, it is the browser.
}

// Open starts a Chromium that ends with the test. Without one the test fails.
func Open(t testing.TB) *Browser {
	t.Helper()
	path, ok := program()
	if !ok {
		t.Fatalf("there is no Chromium: \"tools/setup browser\" installs it on Debian; elsewhere install it, or name it in %s", programVariable)
	}
	said := &lastWords{}
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		// Without one of its own, chromedp makes a profile and removes it at the end.
		chromedp.ExecPath(path), chromedp.CombinedOutput(said), chromedp.WSURLReadTimeout(patience),
		// Pages in tests are in English, whatever the machine speaks.
		chromedp.Flag("lang", "en-US"),
	)
	if os.Getuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Which does not work for root.
	}
	// The test's own context ends before the browser can be closed.
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	b := &Browser{t: t, ctx: ctx}
	t.Cleanup(func() {
		defer stop()
		defer cancel()
		within, done := context.WithTimeout(ctx, patience)
		defer done()
		if err := chromedp.Cancel(within); err != nil {
			t.Logf("Chromium did not end well: %v", err)
		}
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("start %s: %v\n%s", path, err, said)
	}
	return b
}

// program finds Chromium.
func program() (string, bool) {
	if path := os.Getenv(programVariable); path != "" {
		return path, true
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, true
		}
	}
	return "", false
}

// lastWords keeps the end of what a program says.
type lastWords struct {
	mu   sync.Mutex
	text []byte
}

// Write implements [io.Writer].
func (l *lastWords) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	const enough = 4 << 10
	l.text = append(l.text, p...)
	l.text = bytes.Clone(l.text[max(0, len(l.text)-enough):])
	return len(p), nil
}

func (l *lastWords) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text)
}
