package fact_test

import (
	"regexp"
	"strings"
	"testing"

	"signalbox/internal/fact"
)

// FuzzParseRevision: whatever a controller writes, what is taken for a commit is one,
// and stands in the text.
func FuzzParseRevision(f *testing.F) {
	const sha = "f21e89d9d20c4f2b9a6d1e7e5a5f4c3b2a190817"
	for _, s := range []string{
		"main@sha1:" + sha, "sha1:" + sha, "refs/heads/a/b@sha1:" + sha, "main/" + sha, sha, "latest@sha256:" + sha + sha[:24],
		"HEAD/" + sha, "a@b@sha1:" + strings.ToUpper(sha), "@", "/", "main@sha1:" + sha[:39], "1.2.3",
	} {
		f.Add(s)
	}
	commit := regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)
	f.Fuzz(func(t *testing.T, s string) {
		r := fact.ParseRevision(s)
		if r.Commit != "" && (!commit.MatchString(r.Commit) || !strings.Contains(strings.ToLower(s), r.Commit)) {
			t.Errorf("%q names the commit %q", s, r.Commit)
		}
		if !strings.Contains(s, r.Branch) {
			t.Errorf("%q names the branch %q", s, r.Branch)
		}
		if r.Commit != "" && strings.Contains(strings.ToLower(s), "sha256:"+r.Commit) && !strings.Contains(strings.ToLower(s), "sha1:"+r.Commit) {
			t.Errorf("%q: the digest of an artifact is taken for a commit", s)
		}
		if r.Commit == "" {
			return
		}
		if again := fact.ParseRevision(r.Branch + "@sha1:" + r.Commit); again.Commit != r.Commit {
			t.Errorf("%q is %+v, and written again %+v", s, r, again)
		}
	})
}
