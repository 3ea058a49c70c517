package command

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"unicode"
)

// Target is what a command of chat is about, as it was written. It may name
// nothing that there is, and without an owner or a name it has to be completed:
// by the only repository of that name, or by what the conversation is about.
type Target struct {
	Owner string
	Repo  string
	// Number is that of a pull request, or 0.
	Number int64
	// URL is the address that was given, up to the number or the name of the
	// repository, or empty. It may be one of another Gitea.
	URL string
}

// Zero reports whether nothing was named: the command is about what the
// conversation is about.
func (t Target) Zero() bool { return t == Target{} }

// String is the form that [ParseChat] reads: "owner/name#12", "name#12", "#12",
// "owner/name", "name", or nothing.
func (t Target) String() string {
	s := t.Repo
	if t.Owner != "" {
		s = t.Owner + "/" + s
	}
	if t.Number != 0 {
		s += "#" + strconv.FormatInt(t.Number, 10)
	}
	return s
}

// Names of owners and repositories have these characters in Gitea.
const nameForm = `[A-Za-z0-9_.-]{1,100}`

var (
	nameOnly      = regexp.MustCompile(`^` + nameForm + `$`)
	pullReference = regexp.MustCompile(`^(?:(?:(` + nameForm + `)/)?(` + nameForm + `))?[#!]([1-9][0-9]{0,17})$`)
	repoReference = regexp.MustCompile(`^(?:(` + nameForm + `)/)?(` + nameForm + `)$`)
	// almostReference is what somebody wrote who meant one.
	almostReference = regexp.MustCompile(`#[0-9]`)
	numberOnly      = regexp.MustCompile(`^[1-9][0-9]{0,17}$`)
)

const (
	howToName     = "write it like home-gitops#12, ops/home-gitops#12, or as its address"
	howToNameRepo = "write it like home-gitops, ops/home-gitops, or as its address"
)

// target reads the first word after a command as what the command is about.
// False means that it is the first argument instead.
func (a about) target(n Name, word string) (t Target, ok bool, problem string) {
	if word == "" || a == aboutNothing {
		return Target{}, false, ""
	}
	if address, isOne := readAddress(word); isOne {
		return a.fits(address, word)
	}
	if m := pullReference.FindStringSubmatch(word); m != nil {
		// The pattern leaves no number that does not fit.
		number, _ := strconv.ParseInt(m[3], 10, 64)
		return a.fits(Target{Owner: m[1], Repo: m[2], Number: number}, word)
	}
	if almostReference.MatchString(word) || isAddress(word) {
		return Target{}, false, quote(word) + " names no pull request: " + howToName
	}
	if a == aboutPull || n == Freeze && isFreezeTime(word) {
		return Target{}, false, ""
	}
	if m := repoReference.FindStringSubmatch(word); m != nil {
		return a.fits(Target{Owner: m[1], Repo: m[2]}, word)
	}
	return Target{}, false, quote(word) + " names no repository: " + howToNameRepo
}

// fits refuses a target of another sort than the command is about.
func (a about) fits(t Target, word string) (Target, bool, string) {
	switch {
	case a == aboutPull && t.Number == 0:
		return Target{}, false, quote(word) + " names no pull request: " + howToName
	case (a == aboutRepo || a == aboutAnyRepo) && t.Number != 0:
		return Target{}, false, quote(word) + " names a pull request, and this is about a repository: " + howToNameRepo
	case t.Repo == "." || t.Repo == ".." || t.Owner == "." || t.Owner == "..":
		return Target{}, false, quote(word) + " names no repository: " + howToNameRepo
	}
	return t, true, ""
}

func isAddress(word string) bool {
	lower := strings.ToLower(word)
	return strings.HasPrefix(lower, "https://") || strings.HasPrefix(lower, "http://")
}

// readAddress reads the address of a pull request, or of one of its pages, or of
// a repository. Gitea may be anywhere below its host.
func readAddress(word string) (Target, bool) {
	if !isAddress(word) {
		return Target{}, false
	}
	u, err := url.Parse(word)
	if err != nil || u.Host == "" || u.User != nil {
		return Target{}, false
	}
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	end, number := len(parts), int64(0)
	for i := 2; i+1 < len(parts); i++ {
		if parts[i] == "pulls" && numberOnly.MatchString(parts[i+1]) {
			number, _ = strconv.ParseInt(parts[i+1], 10, 64)
			end = i
			break
		}
	}
	if end < 2 || !nameOnly.MatchString(parts[end-2]) || !nameOnly.MatchString(parts[end-1]) {
		return Target{}, false
	}
	t := Target{Owner: parts[end-2], Repo: parts[end-1], Number: number}
	path := parts[:end]
	if number != 0 {
		path = parts[:end+2]
	}
	t.URL = strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host) + "/" + strings.Join(path, "/")
	return t, true
}

// visible drops what cannot be seen, which comes along when a reference is
// copied from where it was kept from being a mention.
func visible(word string) string {
	return strings.Map(func(r rune) rune {
		if unicode.In(r, unicode.Cf, unicode.Cc) {
			return -1
		}
		return r
	}, word)
}
