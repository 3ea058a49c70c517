//go:build e2e

package realserver_test

import (
	"io"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"signalbox/test/realserver"
)

func TestGiteaWithPages(t *testing.T) {
	if _, err := exec.LookPath("npx"); err != nil {
		t.Skip("there is no npx to build the pages with")
	}
	ctx := limit(t, 5*time.Minute)
	g, err := realserver.StartGitea(ctx, realserver.GiteaOptions{Options: realserver.Options{Dir: t.TempDir()}, Pages: true})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Stop()
	get := func(url string) (string, string) {
		t.Helper()
		resp, err := http.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = resp.Body.Close() }()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s answered %s", url, resp.Status)
		}
		return string(body), resp.Header.Get("Content-Type")
	}
	page, _ := get(g.URL())
	for pattern, kind := range map[string]string{
		`href="/(assets/css/index[^"]*\.css)"`: "text/css",
		`src="/(assets/js/index[^"]*\.js)"`:    "text/javascript",
		`"/(assets/img/logo\.svg)"`:            "image/svg+xml",
	} {
		found := regexp.MustCompile(pattern).FindStringSubmatch(page)
		if found == nil {
			t.Errorf("the page does not refer to %s", pattern)
			continue
		}
		if body, got := get(g.URL() + found[1]); !strings.HasPrefix(got, kind) || body == "" {
			t.Errorf("%s is %d bytes of %s, want %s", found[1], len(body), got, kind)
		}
	}
}
