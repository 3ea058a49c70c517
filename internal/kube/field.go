package kube

import (
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/fact"
)

// The readers in this file take objects as the API server sent them and never
// fail: what is missing or of another type is the zero value. A custom
// resource can hold anything that its schema of today does not forbid.

// field returns the value at the path, or nil.
func field(m map[string]any, path ...string) any {
	var v any = m
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

func text(m map[string]any, path ...string) string {
	s, _ := field(m, path...).(string)
	return clean(s, maxName)
}

func flag(m map[string]any, path ...string) bool {
	b, _ := field(m, path...).(bool)
	return b
}

func list(m map[string]any, path ...string) []any {
	l, _ := field(m, path...).([]any)
	return l
}

func number(m map[string]any, path ...string) int64 {
	switch n := field(m, path...).(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	default:
		return 0
	}
}

// duration reads a duration in the form of Kubernetes, such as "1m30s".
func duration(m map[string]any, path ...string) time.Duration {
	d, err := time.ParseDuration(text(m, path...))
	if err != nil || d < 0 {
		return 0
	}
	return d
}

func moment(m map[string]any, path ...string) time.Time {
	t, err := time.Parse(time.RFC3339, text(m, path...))
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// readCondition is a condition as the controller wrote it.
type readCondition struct {
	fact.Condition
	// observed is the generation that the condition is about; zero if it does
	// not say.
	observed int64
	// changed is its lastTransitionTime. Flux moves it with every change of
	// the condition, the message included.
	changed time.Time
}

// condition returns the condition of a type, or the zero value.
func condition(obj map[string]any, kind string) readCondition {
	for _, item := range list(obj, "status", "conditions") {
		m, ok := item.(map[string]any)
		if !ok || text(m, "type") != kind {
			continue
		}
		message, _ := m["message"].(string)
		return readCondition{
			Condition: fact.Condition{Status: text(m, "status"), Reason: text(m, "reason"), Message: steady(message)},
			observed:  number(m, "observedGeneration"),
			changed:   moment(m, "lastTransitionTime"),
		}
	}
	return readCondition{}
}

// Limits of what a fact takes over, in bytes.
const (
	maxMessage = 4 << 10
	maxName    = 1 << 10
)

// cut marks a text that is longer than its limit.
const cut = "…"

// clean returns s as valid UTF-8 of at most limit bytes, without control
// characters other than newline and tab, and without white space around it.
func clean(s string, limit int) string {
	s = strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD")))
	if len(s) <= limit {
		return s
	}
	end := limit - len(cut)
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + cut
}

// volatile are the parts of a controller's message that differ at each try
// although nothing changed: fractions of a measured duration, the random part
// of a temporary folder and the local port of a connection. Without them a
// failing object has one message, and one fact.
var volatile = []struct {
	pattern *regexp.Regexp
	with    string
}{
	{regexp.MustCompile(`\b((?:\d+h)?(?:\d+m)?\d+)\.\d+s\b`), "${1}s"},
	{regexp.MustCompile(`\b\d+(?:\.\d+)?(?:ms|µs|ns)\b`), "0s"},
	{regexp.MustCompile(`(/tmp/[A-Za-z][A-Za-z._-]*?)\d{4,}`), "${1}*"},
	{regexp.MustCompile(`:\d+->`), "->"},
}

// credentials are a user and password within a URL. Flux masks its own; a Git
// server's answer is not masked by anybody.
var credentials = regexp.MustCompile(`(://)[^/\s@'"]+@`)

// steady returns a message as a fact holds it.
func steady(s string) string {
	// Cut before matching, so that a huge message costs little; and after.
	s = clean(s, 2*maxMessage)
	for _, v := range volatile {
		s = v.pattern.ReplaceAllString(s, v.with)
	}
	return clean(credentials.ReplaceAllString(s, "$1"), maxMessage)
}

// oneLine returns s without line breaks.
func oneLine(s string) string {
	return strings.Join(strings.Fields(s), " ")
}
