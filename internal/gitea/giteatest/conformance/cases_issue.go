package conformance

import (
	"fmt"
	"strings"
	"testing"

	"signalbox/internal/gitea"
)

// keptIssue holds one issue to its text, among many others.
func keptIssue(t *testing.T, e env) {
	r := e.repo(t, "issue")
	self, err := e.client.Self(e.ctx)
	if err != nil {
		t.Fatal(err)
	}
	const marker = "<!-- signalbox digest morning -->"
	keep := func(title, body string) string {
		t.Helper()
		address, err := e.client.KeepIssue(e.ctx, r, self.Login, marker, title, marker+"\n"+body)
		if err != nil {
			t.Fatal(err)
		}
		return address
	}
	// Somebody else may write what they like.
	if _, err := e.OpenIssue(e.ctx, r, e.bob.Login, "morning", marker+"\nall is well"); err != nil {
		t.Fatal(err)
	}
	first := keep("morning", "one")
	if !strings.HasSuffix(first, "/issues/2") {
		t.Errorf("the issue is at %s, want a second one", first)
	}
	// With more than a page of others before it.
	for i := range 52 {
		if _, err := e.OpenIssue(e.ctx, r, self.Login, fmt.Sprint("other ", i), "text"); err != nil {
			t.Fatal(err)
		}
	}
	same(t, "the issue with another text", first, keep("morning: 1 new", "two"))
	same(t, "the issue with the same text", first, keep("morning: 1 new", "two"))
	if err := e.EditIssue(e.ctx, r, 2, marker+"\ntwo", false); err != nil {
		t.Fatal(err)
	}
	if next := keep("morning", "three"); !strings.HasSuffix(next, "/issues/55") {
		t.Errorf("after the issue was closed there is %s, want a new one", next)
	}
	_, err = e.client.KeepIssue(e.ctx, r, self.Login, marker, "morning", "no marker")
	if err == nil {
		t.Error("a text without its marker was written, and would never be found again")
	}
	gone := r
	gone.Name = "no-such"
	_, err = e.client.KeepIssue(e.ctx, gone, self.Login, marker, "morning", marker)
	wantError(t, "an issue of a missing repository", err, gitea.ErrNotFound)
}
