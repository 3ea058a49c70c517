package browser

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shotsVariable names the environment variable with the folder for screenshots.
const shotsVariable = "SIGNALBOX_SCREENSHOTS"

const (
	// pngQuality makes a screenshot a PNG.
	pngQuality = 100
	// height is that of a window, in pixels. A page that is longer is shown whole.
	height = 900
	// phone is the widest window that is one of a phone, in pixels.
	phone = 600
)

// Scheme is a color scheme that somebody prefers.
type Scheme string

// The color schemes.
const (
	Light Scheme = "light"
	Dark  Scheme = "dark"
)

// Look makes the window so many pixels wide, and says to pages which colors are
// preferred. It stays so.
func (p *Person) Look(width int, scheme Scheme) {
	p.t.Helper()
	var options []chromedp.EmulateViewportOption
	if width <= phone {
		options = append(options, chromedp.EmulateMobile, chromedp.EmulateTouch, chromedp.EmulatePortrait)
	}
	p.Do(chromedp.EmulateViewport(int64(width), height, options...), chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: string(scheme)}},
		})
		return err
	}))
}

// Shot looks at the page at a width and in a color scheme, see [Person.Look], and
// writes all of it as a PNG into the folder that SIGNALBOX_SCREENSHOTS names or, without
// it, into that of the test's artifacts. It returns the path, which is made of the name
// of the test, the name of the shot, the width and the scheme.
func (p *Person) Shot(name string, width int, scheme Scheme) string {
	p.t.Helper()
	p.Look(width, scheme)
	path, err := save(p.t, fmt.Sprintf("%s-%d-%s", name, width, scheme), ask(p, chromedp.FullScreenshot(pngQuality)))
	if err != nil {
		p.t.Fatalf("keep the screenshot %s: %v", name, err)
	}
	return path
}

var notInFiles = regexp.MustCompile(`[^A-Za-z0-9]+`)

func save(t testing.TB, name string, content []byte) (string, error) {
	dir := os.Getenv(shotsVariable)
	if dir == "" {
		dir = t.ArtifactDir()
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name = strings.Trim(notInFiles.ReplaceAllString(strings.TrimPrefix(t.Name(), "Test")+"-"+name, "-"), "-")
	path := filepath.Join(dir, name+".png")
	return path, os.WriteFile(path, content, 0o644)
}
