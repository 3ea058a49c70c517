package pull_test

import (
	"testing"
	"unicode/utf8"

	"signalbox/internal/pull"
)

func TestPattern(t *testing.T) {
	for _, tt := range []struct {
		pattern, separators string
		match, other        []string
		bad                 bool
	}{
		{pattern: "main", match: []string{"main"}, other: []string{"Main", "main2", ""}},
		{pattern: "*", match: []string{"", "a", "a/b"}},
		{pattern: "*", separators: "/", match: []string{"", "a"}, other: []string{"a/b"}},
		{pattern: "**", separators: "/", match: []string{"a/b/c"}},
		{pattern: "a?", separators: "/", match: []string{"ab"}, other: []string{"a", "a/"}},
		{pattern: "release/*.x", separators: "/", match: []string{"release/1.x"}, other: []string{"release/1ax", "release/1/2.x"}},
		{pattern: "[ab]c", match: []string{"ac"}, other: []string{"cc", "[ab]c"}},
		{pattern: "[!a-c]", match: []string{"d"}, other: []string{"b"}},
		{pattern: `[\]x]`, match: []string{"]", "x"}, other: []string{`\`}},
		{pattern: "{ci,lint}/x", match: []string{"ci/x", "lint/x"}, other: []string{"ci"}},
		{pattern: "{a,{b,c}d}", match: []string{"a", "bd", "cd"}, other: []string{"d"}},
		{pattern: "a,b", match: []string{"a,b"}, other: []string{"a"}},
		{pattern: `a\*`, match: []string{"a*"}, other: []string{"ab"}},
		{pattern: "signalbox / approval (main)", match: []string{"signalbox / approval (main)"}, other: []string{"signalbox / approval main"}},
		{pattern: "a+b^c$|d", match: []string{"a+b^c$|d"}, other: []string{"aab^c$", "d"}},
		// The alternatives of a brace that is not closed reach to the ends.
		{pattern: "ab{c,d", match: []string{"abc", "abcx", "xd"}, other: []string{"abx"}},
		{pattern: "[", bad: true},
		{pattern: "[z-a]", bad: true},
		{pattern: `a\`, bad: true},
		{pattern: `[a\`, bad: true},
	} {
		p, ok := pull.CompilePattern(tt.pattern, tt.separators)
		if ok == tt.bad {
			t.Errorf("%q: compiled %v", tt.pattern, ok)
		}
		for _, text := range tt.match {
			if ok && !p.Match(text) {
				t.Errorf("%q does not match %q", tt.pattern, text)
			}
		}
		for _, text := range tt.other {
			if ok && p.Match(text) {
				t.Errorf("%q matches %q", tt.pattern, text)
			}
		}
	}
}

func FuzzQuotePattern(f *testing.F) {
	for _, text := range []string{"main", "signalbox / approval (a{b})", `*?\[]{}`, "a\nb", "ünï"} {
		f.Add(text, "x")
	}
	f.Fuzz(func(t *testing.T, text, other string) {
		if !utf8.ValidString(text) || !utf8.ValidString(other) {
			t.Skip()
		}
		quoted := pull.QuotePattern(text)
		p, ok := pull.CompilePattern(quoted, "/")
		if !ok || !p.Match(text) {
			t.Errorf("%q does not match %q", quoted, text)
		}
		if other != text && p.Match(other) {
			t.Errorf("%q matches %q too", quoted, other)
		}
	})
}

func TestProtectionContexts(t *testing.T) {
	const context = "signalbox / approval (a{b})"
	quoted := pull.QuotePattern(context)
	for name, tt := range map[string]struct {
		p               pull.Protection
		heeds, requires bool
	}{
		"no check":              {pull.Protection{Contexts: []string{quoted}}, false, false},
		"all statuses":          {pull.Protection{StatusCheck: true}, true, false},
		"another":               {pull.Protection{StatusCheck: true, Contexts: []string{"ci"}}, false, false},
		"the very one":          {pull.Protection{StatusCheck: true, Contexts: []string{"ci", quoted}}, true, true},
		"not escaped":           {pull.Protection{StatusCheck: true, Contexts: []string{context}}, false, false},
		"a pattern of many":     {pull.Protection{StatusCheck: true, Contexts: []string{"signalbox / *"}}, true, false},
		"a pattern that is bad": {pull.Protection{StatusCheck: true, Contexts: []string{"["}}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := tt.p.Heeds(context); got != tt.heeds {
				t.Errorf("heeds %v, want %v", got, tt.heeds)
			}
			if got := tt.p.Requires(context); got != tt.requires {
				t.Errorf("requires %v, want %v", got, tt.requires)
			}
		})
	}
	plain := pull.Protection{StatusCheck: true, Contexts: []string{"signalbox / approval (main)"}}
	if !plain.Requires("signalbox / approval (main)") {
		t.Error("a plain context is not required")
	}
}
