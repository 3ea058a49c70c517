package precondition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"signalbox/internal/command"
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

// dependsLine is a line that names dependencies. Without a colon it is one only
// if pull requests follow.
var dependsLine = regexp.MustCompile(`(?i)^depends[- ]on(:?)[ \t]+(.+)$|^depends[- ]on:(.+)$`)

// dependencies returns what a description depends on, without repetition, and
// what it names that is no pull request of this Gitea. Page is the address of
// the pull request itself.
func dependencies(description string, self dependency, page string) (named []dependency, strange []string) {
	for _, line := range command.Lines(description) {
		m := dependsLine.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		sure := m[1] != "" || m[3] != ""
		for _, word := range strings.FieldsFunc(m[2]+m[3], func(r rune) bool { return r == ',' || r == ' ' || r == '\t' }) {
			d, ok := reference(word, self, page)
			switch {
			case !ok && !sure, len(named)+len(strange) >= maxDependencies:
			case !ok:
				strange = append(strange, oneLine(word))
			case !slices.ContainsFunc(named, func(o dependency) bool { return o.key() == d.key() }):
				named = append(named, d)
			}
		}
	}
	return named, strange
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
		root, ok := strings.CutSuffix(page, fmt.Sprintf("/%s/%s/pulls/%d", self.owner, self.repo, self.number))
		path, here := strings.CutPrefix(word, root)
		if !ok || !here {
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
