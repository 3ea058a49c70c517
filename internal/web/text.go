package web

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/policy"
	"signalbox/internal/pull"
)

// functions are those of the templates. What they return as text is escaped by
// the template.
func (s *Server) functions() template.FuncMap {
	return template.FuncMap{
		// path is a path below the address of signalbox, as a browser needs it.
		"path": s.path,
		// asset is the address of an asset.
		"asset": func(name string) string { return s.path("/static/" + s.assets.hash + "/" + name) },
		// clean is text from outside on one line, without what cannot be seen.
		"clean": clean,
		// lines is text from outside with its lines, without what cannot be seen.
		"lines": cleanLines,
		"short": short,
		// time shows a time in UTC, and in the zone of the viewer where scripts run.
		// ago is the same, as how long ago it was.
		"time": func(t time.Time) template.HTML { return timeElement(t, "") },
		"ago":  func(t time.Time) template.HTML { return timeElement(t, ` data-ago`) },
		// sign shows a state of a gate or a rule: its sign and its word.
		"sign":   signOf,
		"plural": plural,
		"pull":   func(p pull.Pull) string { return s.path(pullPath(p.Repo, p.Number)) },
		"gitea":  func(r pull.Repo) string { return s.Gitea.JoinPath(r.Owner, r.Name).String() },
		"commit": func(repo, sha string) string { return s.commitURL(repo, sha) },
		// cluster is the page of a cluster, for who sees the whole installation.
		"cluster": func(name string, whole bool) string {
			if !whole || !slices.Contains(s.Clusters, name) {
				return ""
			}
			return s.path("/clusters/" + url.PathEscape(name))
		},
		// anchor is an id for what is named by some texts.
		"anchor": anchor,
		// list puts the arguments of a template together.
		"list":   func(of ...any) []any { return of },
		"open":   policy.ResultState.Open,
		"reason": reasonOf,
		// names are the first of a list of names, and how many more there are.
		"names": func(all []string) []string { return some(all, maxListed) },
		// value is the value of a piece of evidence, which may be long.
		"value":     func(text string) string { return clip(cleanLines(text), maxValue) },
		"multiline": func(text string) bool { return strings.Contains(strings.TrimSpace(text), "\n") },
		// web is an address of the web that came from outside, or nothing.
		"web": webAddress,
	}
}

// maxListed bounds a list of names, and maxValue a piece of evidence, in runes.
const (
	maxListed = 100
	maxValue  = 4000
)

// anchor is an id for what is named by some texts; the same texts give the same.
func anchor(texts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(texts, "\x00")))
	return "a" + hex.EncodeToString(sum[:6])
}

// clean is text on one line, without what cannot be seen, such as the characters
// that turn the direction of writing.
func clean(text string) string {
	return strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case invisible(r):
			return -1
		}
		return r
	}, text)), " ")
}

// cleanLines is clean for text of several lines.
func cleanLines(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && invisible(r) {
			return -1
		}
		return r
	}, text))
}

func invisible(r rune) bool {
	return r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Cs)
}

// clip bounds a text, in runes.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return text
}

func short(sha string) string { return sha[:min(len(sha), 10)] }

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// stamp writes a time for people.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") }

// timeElement is a time; the zero time is one that is not known.
func timeElement(t time.Time, attributes string) template.HTML {
	if t.IsZero() {
		return `<span class="muted nowrap">not known</span>`
	}
	t = t.UTC()
	//nolint:gosec // There is nothing from outside in it.
	return template.HTML(`<time datetime="` + t.Format(time.RFC3339) + `"` + attributes + `>` + stamp(t) + `</time>`)
}

// PullURL is the address of the page of a pull request; base is that of signalbox,
// with a slash at its end.
func PullURL(base *url.URL, repo pull.Repo, number int64) string {
	return base.JoinPath(pullPath(repo, number)).String()
}

// pullPath is the path of the page of a pull request.
func pullPath(repo pull.Repo, number int64) string {
	return fmt.Sprintf("/pulls/%s/%s/%d", url.PathEscape(repo.Owner), url.PathEscape(repo.Name), number)
}

// commitURL leads to a commit in Gitea; repo is "owner/name".
func (s *Server) commitURL(repo, sha string) string {
	owner, name, ok := strings.Cut(repo, "/")
	if !ok || sha == "" {
		return ""
	}
	return s.Gitea.JoinPath(url.PathEscape(owner), url.PathEscape(name), "commit", url.PathEscape(sha)).String()
}

// webAddress is an address, if it is one of the web.
func webAddress(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ""
	}
	return u.String()
}

// sign is a state as it is shown: never by its color alone.
type sign struct {
	// Class is that of the style, Mark a sign and Word the name of the state.
	Class, Mark, Word string
}

var (
	signClear     = sign{"clear", "✓", "clear"}
	signWaiting   = sign{"waiting", "◷", "waiting"}
	signBlocked   = sign{"blocked", "✕", "blocked"}
	signUndecided = sign{"undecided", "?", "undecided"}
)

// signOf is the sign of a [policy.GateState] or a [policy.ResultState]; one that
// is not known is undecided.
func signOf(state any) sign {
	switch s := state.(type) {
	case policy.GateState:
		switch s {
		case policy.Clear:
			return signClear
		case policy.Waiting:
			return signWaiting
		case policy.Blocked:
			return signBlocked
		case "":
			return sign{"undecided", "…", "not looked at"}
		}
	case policy.ResultState:
		switch s {
		case policy.Met:
			return sign{"clear", "✓", "met"}
		case policy.NotApplicable:
			return sign{"none", "–", "not applicable"}
		case policy.Overridden:
			return sign{"overridden", "»", "overridden"}
		case policy.Unmet:
			return sign{"waiting", "◷", "unmet"}
		case policy.Unknown:
			return sign{"undecided", "?", "unknown"}
		}
	}
	return signUndecided
}

// signInPath is the path of a sign-in that leads back to a path.
func signInPath(back string) string { return "/sign-in?return=" + url.QueryEscape(back) }
