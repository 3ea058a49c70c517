package web

import (
	"net/url"
	"strings"
	"testing"

	"signalbox/internal/command"
)

// FuzzReturnPath: whatever is asked for, a sign-in leads back to this host.
func FuzzReturnPath(f *testing.F) {
	for _, p := range []string{"/", "/pulls/ops/apps/1?said=web%2Fx#y", "//example.net", "/\\example.net", "/%2f/example.net", "https://example.net", "/sign-out", "/\x00"} {
		f.Add(p)
	}
	base := &url.URL{Scheme: "https", Host: "signalbox.example.org", Path: "/"}
	f.Fuzz(func(t *testing.T, p string) {
		got := returnPath(p)
		if !strings.HasPrefix(got, "/") || strings.HasPrefix(got, "//") || strings.ContainsAny(got, "\\\r\n\t") || got != "/" && got != p {
			t.Fatalf("%q leads to %q", p, got)
		}
		if u, err := base.Parse(got); err == nil && (u.Host != base.Host || u.Scheme != base.Scheme) {
			t.Fatalf("%q leads to %s", p, u)
		}
	})
}

// FuzzLineOf: whatever the reason, a form gives the one command that it is for.
func FuzzLineOf(f *testing.F) {
	for _, reason := range []string{"", "cancel", "wait\n/merge", "\u202e", "`x`", "<b>", "#13 wait", "https://example.org/x", "a  \\"} {
		for _, do := range []string{"approve", "approve-cancel", "hold", "unhold", "merge", "merge-cancel", "recheck", "override"} {
			f.Add(do, reason)
		}
	}
	names := map[string]command.Name{
		"approve": command.Approve, "approve-cancel": command.Approve, "hold": command.Hold, "unhold": command.Unhold,
		"merge": command.Merge, "merge-cancel": command.Merge, "recheck": command.Recheck, "override": command.Override,
	}
	f.Fuzz(func(t *testing.T, do, reason string) {
		line, err := lineOf(do, reason)
		if err != nil {
			return
		}
		found := command.Find("/" + line).Commands
		if len(found) != 1 || found[0].Name != names[do] || found[0].Problem != "" || found[0].Cancel != strings.HasSuffix(do, "-cancel") {
			t.Fatalf("%q with %q gives %q, which is read as %+v", do, reason, line, found)
		}
	})
}
