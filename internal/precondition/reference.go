package precondition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/fact"
)

// dependency names a pull request.
type dependency struct {
	owner, repo string
	number      int64
}

func (d dependency) key() fact.Key { return fact.PullKey(d.owner, d.repo, d.number) }

// name names it for people who look at another.
func (d dependency) name(from dependency) string {
	if strings.EqualFold(d.owner, from.owner) && strings.EqualFold(d.repo, from.repo) {
		return fmt.Sprintf("#%d", d.number)
	}
	return fmt.Sprintf("%s/%s#%d", d.owner, d.repo, d.number)
}

// maxDependencies bounds the dependencies that one description may name.
const maxDependencies = 20

// dependencies returns what a description depends on, without repetition, and
// what it names that is no pull request of this Gitea. Page is the address of
// the pull request itself. More is set if it names more than are looked at.
func dependencies(description string, self dependency, page string) (named []dependency, strange []string, more bool) {
	for _, text := range dependsTexts(description) {
		words := strings.FieldsFunc(text, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' })
		if len(words) == 0 {
			words = []string{"Depends-On:"}
		}
		for _, word := range words {
			d, ok := reference(word, self, page)
			known := slices.ContainsFunc(named, func(o dependency) bool { return ok && o.key() == d.key() })
			switch {
			case known:
			case len(named)+len(strange) >= maxDependencies:
				return named, strange, true
			case !ok:
				strange = append(strange, oneLine(word))
			default:
				named = append(named, d)
			}
		}
	}
	return named, strange, false
}

// dependsLine is a line that names dependencies.
var dependsLine = regexp.MustCompile(`(?i)^depends[- ]on[ \t]*:(.*)$`)

// dependsTexts returns what follows "Depends-On:" in the lines of a description.
// It is not as exact as Markdown: only what is plainly an example is left out,
// within a fence, a quote or a comment of HTML. Marks of lists, headings and
// emphasis do not matter. Where somebody meant no dependency the pull request
// waits for nothing worse than another word.
func dependsTexts(description string) []string {
	var texts []string
	fence, comment := "", false
	for line := range strings.Lines(description) {
		line = strings.TrimSpace(line)
		if fence != "" {
			if strings.HasPrefix(line, fence) && strings.Trim(line, fence[:1]) == "" {
				fence = ""
			}
			continue
		}
		line, comment = withoutComments(line, comment)
		if mark := fenceMark(line); mark != "" {
			fence = mark
			continue
		}
		if m := dependsLine.FindStringSubmatch(strings.TrimLeft(line, "-*+_#`~ \t0123456789.)[]x")); m != nil {
			texts = append(texts, strings.Trim(m[1], "*_` \t"))
		}
	}
	return texts
}

// withoutComments takes comments of HTML out of a line. Within says whether the
// line begins within a comment, and the answer whether the next one does.
func withoutComments(line string, within bool) (rest string, _ bool) {
	const begin, end = "<!--", "-->"
	for {
		if within {
			_, after, ok := strings.Cut(line, end)
			if !ok {
				return rest, true
			}
			line = after
		}
		before, after, ok := strings.Cut(line, begin)
		rest += before
		if !ok {
			return strings.TrimSpace(rest), false
		}
		line, within = after, true
	}
}

// fenceMark returns what a fence begins with, and what ends it, or nothing.
func fenceMark(line string) string {
	for _, mark := range []string{"```", "~~~"} {
		if strings.HasPrefix(line, mark) {
			return line[:len(line)-len(strings.TrimLeft(line, mark[:1]))]
		}
	}
	return ""
}

var (
	shortReference = regexp.MustCompile(`^(?:([\w.-]+)/([\w.-]+))?[#!](\d{1,18})$`)
	pageReference  = regexp.MustCompile(`^/([\w.-]+)/([\w.-]+)/pulls/(\d{1,18})$`)
)

// reference reads the name of a pull request, or its address in this Gitea.
func reference(word string, self dependency, page string) (dependency, bool) {
	word = strings.Trim(word, "<>.;")
	m := shortReference.FindStringSubmatch(word)
	if m == nil {
		path, ok := strings.CutPrefix(word, root(page, self))
		if !ok {
			return dependency{}, false
		}
		if m = pageReference.FindStringSubmatch(strings.TrimSuffix(path, "/")); m == nil {
			return dependency{}, false
		}
	}
	number, err := strconv.ParseInt(m[3], 10, 64)
	if err != nil || number <= 0 {
		return dependency{}, false
	}
	if m[1] == "" {
		return dependency{self.owner, self.repo, number}, true
	}
	return dependency{m[1], m[2], number}, true
}

// root is the address of the Gitea of a page. The names of a repository are in
// any letter case there.
func root(page string, self dependency) string {
	path := fmt.Sprintf("/%s/%s/pulls/%d", self.owner, self.repo, self.number)
	if n := len(page) - len(path); n > 0 && strings.EqualFold(page[n:], path) {
		return page[:n]
	}
	return page
}
