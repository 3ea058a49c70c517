package api

import (
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"signalbox/internal/pull"
)

// Bounds of what comes from outside.
const (
	// maxText bounds one text, in bytes.
	maxText = 8 << 10
	// maxFiles bounds a list of files; how many there are is told beside it.
	maxFiles = 1000
)

// cut ends a text that is longer than maxText.
const cut = "… (cut)"

// clip bounds a text. What is not UTF-8 in it is replaced.
func clip(s string) string {
	if len(s) > maxText {
		end := maxText
		for end > 0 && !utf8.RuneStart(s[end]) {
			end--
		}
		s = s[:end] + cut
	}
	return strings.ToValidUTF8(s, "\ufffd")
}

// list converts each item. A list is never null.
func list[S, T any](items []S, convert func(S) T) []T {
	out := make([]T, 0, len(items))
	for _, item := range items {
		out = append(out, convert(item))
	}
	return out
}

func clipped(items []string) []string { return list(items, clip) }

// oneOf returns a word if it is one of those that are told, and other if not: what
// nobody knows never looks good.
func oneOf[S ~string](word, other S, told ...S) string {
	if slices.Contains(told, word) {
		return string(word)
	}
	return string(other)
}

// utc returns a time in UTC, or zero for one that RFC 3339 cannot write, of which one
// would spoil the whole answer.
func utc(t time.Time) time.Time {
	t = t.UTC()
	if y := t.Year(); y < 1 || y > 9999 {
		return time.Time{}
	}
	return t
}

// Repository is a repository of Gitea.
type Repository struct {
	ID    int64  `json:"id" example:"7" doc:"Stays when the repository is renamed or moved."`
	Owner string `json:"owner" example:"ops"`
	Name  string `json:"name" example:"home-gitops"`
}

func newRepository(r pull.Repo) Repository {
	return Repository{ID: r.ID, Owner: clip(r.Owner), Name: clip(r.Name)}
}

// Person is an account of Gitea.
type Person struct {
	ID    int64  `json:"id,omitempty" example:"1" doc:"Stays when the account is renamed. It is missing for an account that is gone."`
	Login string `json:"login" example:"alice"`
}

func newPerson(p pull.Person) Person { return Person{ID: p.ID, Login: clip(p.Login)} }
