package slack

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"signalbox/internal/chat"
)

func TestClean(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"empty", "", ""},
		{"the mention alone", "<@U0SELF>", ""},
		{"mention", "<@U0SELF> approve 12", "approve 12"},
		{"mention with a label", "<@U0SELF|signalbox> approve 12", "approve 12"},
		{"mention with a colon", " <@U0SELF>: approve 12", "approve 12"},
		{"mention with a comma", "<@U0SELF> , approve 12", "approve 12"},
		{"a second mention stays", "<@U0SELF> <@U0SELF> approve", "<@U0SELF> approve"},
		{"a mention later stays", "please <@U0SELF> approve", "please <@U0SELF> approve"},
		{"mention of somebody whose id begins alike", "<@U0SELFISH> approve", "<@U0SELFISH> approve"},
		{"a mention that was typed is text", "&lt;@U0SELF&gt; approve", "<@U0SELF> approve"},
		{"escapes", "a &lt; b &amp;&amp; c &gt; d", "a < b && c > d"},
		{"escapes are undone once", "&amp;lt;b&amp;gt; &amp;amp;", "&lt;b&gt; &amp;"},
		{"other entities are text", "&quot;x&quot; &#39; &nbsp;", "&quot;x&quot; &#39; &nbsp;"},
		{"link", "see <https://example.org/a?b=1&amp;c=2>", "see https://example.org/a?b=1&c=2"},
		{"link that shows another", "see <https://example.org/evil|https://example.org/good>", "see https://example.org/evil"},
		{"address", "<mailto:a@example.org|a@example.org> <tel:+4912|12>", "a@example.org +4912"},
		{"person", "thanks <@U0BOB> <@U0BOB|Bob the admin>", "thanks <@U0BOB> <@U0BOB>"},
		{"channel", "in <#C0DEPLOY|deploy> or <#C0DEPLOY>", "in <#C0DEPLOY|deploy> or <#C0DEPLOY>"},
		{"all", "<!here> <!channel|channel> <!subteam^S1|@admins>", "@here channel @admins"},
		{"date", "<!date^1392734382^{date}|February 18>", "February 18"},
		{"lines", "approve\r\n\n 12\t\u00a0now\u2028\x00\x1b[31m", "approve 12 now [31m"},
		{"brackets that are open", "a < b <", "a < b <"},
		{"brackets in brackets", "<a <https://example.org> b>", "<a https://example.org b>"},
		{"nothing in brackets", "<> <|> <|x>", "<> <|> <|x>"},
		{"no UTF-8", "a\xffb", "a\uFFFDb"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := clean(tc.in, "U0SELF"); got != tc.want {
				t.Errorf("clean(%q) = %q, want %q", tc.in, got, tc.want)
			}
		})
	}
}

func TestCleanCuts(t *testing.T) {
	for _, in := range []string{
		strings.Repeat("é", chat.MaxText), "a" + strings.Repeat("é", chat.MaxText), strings.Repeat("🚂", chat.MaxText),
		strings.Repeat("<", 1<<20), strings.Repeat("<a", 1<<20), strings.Repeat("&amp;", 1<<18),
	} {
		got := clean(in, "U0SELF")
		if len(got) != chat.MaxText || !utf8.ValidString(got) {
			t.Errorf("%q... is cut to %d bytes, valid: %t; want %d", in[:4], len(got), utf8.ValidString(got), chat.MaxText)
		}
	}
	if got := clean("<@U0SELF> x", ""); got != "<@U0SELF> x" {
		t.Errorf("without an account of its own, %q is left", got)
	}
}

func FuzzClean(f *testing.F) {
	for _, seed := range []string{"<@U0SELF>: a &lt;b&gt; <https://x|y>", "<!subteam^S|@a>", "<<<>>|<#C|d>", "a\xff\x00\u2028", "&amp;lt;"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got := clean(in, "U0SELF")
		if len(got) > chat.MaxText || !utf8.ValidString(got) {
			t.Fatalf("%d bytes, valid: %t", len(got), utf8.ValidString(got))
		}
		if strings.ContainsFunc(got, func(r rune) bool { return r != ' ' && (unicode.IsSpace(r) || unicode.IsControl(r)) }) || strings.Contains(strings.TrimRight(got, " "), "  ") {
			t.Fatalf("not one line: %q", got)
		}
		// What is plain text already stays as it is.
		if plain := strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(got); clean(plain, "U0SELF") != strings.TrimSpace(got) {
			t.Fatalf("%q becomes %q", got, clean(plain, "U0SELF"))
		}
	})
}
