package fact

import (
	"regexp"
	"strings"
)

// Revision is a Flux revision taken apart.
type Revision struct {
	// Branch is the branch, tag or semver part in front, or empty.
	Branch string
	// Commit is the lower-case commit id, or empty when the revision carries
	// none (an OCI digest, a chart version).
	Commit string
}

var commitID = regexp.MustCompile(`^(?:[0-9a-f]{40}|[0-9a-f]{64})$`)

// ParseRevision takes a revision of Flux apart in any of its spellings:
// "main@sha1:<commit>", "sha1:<commit>", "refs/heads/main@sha1:<commit>", the
// old "main/<commit>" and a bare commit. An OCI revision
// ("latest@sha256:<digest>") names no commit.
//
// The rules are those of the Flux RFC-0005 "Artifact revision format".
func ParseRevision(s string) Revision {
	s = strings.TrimSpace(s)
	if i := strings.LastIndex(s, "@"); i >= 0 {
		return Revision{Branch: branchName(s[:i]), Commit: digestCommit(s[i+1:])}
	}
	if strings.Contains(s, ":") {
		return Revision{Commit: digestCommit(s)}
	}
	if i := strings.LastIndex(s, "/"); i >= 0 {
		if c := strings.ToLower(s[i+1:]); commitID.MatchString(c) {
			return Revision{Branch: branchName(s[:i]), Commit: c}
		}
		return Revision{Branch: branchName(s)}
	}
	if c := strings.ToLower(s); commitID.MatchString(c) {
		return Revision{Commit: c}
	}
	return Revision{Branch: s}
}

// digestCommit returns the commit of "sha1:<commit>". "sha256:" is the digest
// of an OCI artifact, except that a Git repository with SHA-256 object names
// uses it too; only the caller's context could tell, so it names no commit.
func digestCommit(s string) string {
	algorithm, id, ok := strings.Cut(s, ":")
	if !ok || algorithm != "sha1" {
		return ""
	}
	if id = strings.ToLower(id); !commitID.MatchString(id) {
		return ""
	}
	return id
}

func branchName(s string) string {
	s = strings.TrimPrefix(s, "refs/heads/")
	if s == "HEAD" {
		return ""
	}
	return s
}
