package demo

import (
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

// shown is what a comment looks like without colors.
func shown(body string, width int) string {
	var b strings.Builder
	(&screen{out: &b, width: width + textWidth(quote)}).blocks(markdown(body, width))
	return strings.ReplaceAll(strings.ReplaceAll(b.String(), quote, ""), strings.TrimRight(quote, " "), "")
}

func TestMarkdown(t *testing.T) {
	for _, tc := range []struct {
		name, body string
		width      int
		want       string
	}{
		{"heading and paragraph", "### 🟡 Waiting\n\n`abc` into `main`\nand more\n", 40, "🟡 Waiting\n\nabc into main and more\n"},
		{"comment is hidden", "<!-- signalbox verdict 1.2 -->\n### Clear\n", 40, "Clear\n"},
		{"escapes", "a \\*b\\* \\#\u206012 &lt;c&gt; &amp;lt; it\\_s", 40, "a *b* #12 <c> &lt; it_s\n"},
		{"small print and a break", "<sub>one<br>two `x`.</sub>\n", 40, "one\ntwo x.\n"},
		{"details are folded", "<details><summary>✅ Evidence: a &amp; b</summary>\n\n```text\nx\ny\n```\n\n</details>\n\nafter\n", 60, "▸ ✅ Evidence: a & b (folded, 2 lines)\n\nafter\n"},
		{"details that never end", "<details><summary>s</summary>\n\ntext\n", 40, "▸ s (folded, 1 line)\n"},
		{"code block", "```text\na\n  b\n```\n", 40, "  a\n    b\n"},
		{"words are wrapped", "one two three four\n", 9, "one two\nthree\nfour\n"},
		{"a long word is broken", "abcdefghij kl\n", 4, "abcd\nefgh\nij\nkl\n"},
		{"list shows its text", "- one\n- two\n", 40, "one\n\ntwo\n"},
		{
			"table", "| | Rule | What |\n|---|---|---|\n| ✅ | **a** | short |\n| ❌ | **b \\| c** | one two three<br>*four* |\n\nend\n", 24,
			"   │ Rule  │ What\n───┼───────┼────────────\n✅ │ a     │ short\n❌ │ b | c │ one two\n   │       │ three\n   │       │ four\n\nend\n",
		},
		{"escape sequences are dropped", "a\x1b[31mred\x07\u202eb\n", 40, "a[31mredb\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if d := cmp.Diff(tc.want, shown(tc.body, tc.width)); d != "" {
				t.Errorf("shown (-want +got):\n%s", d)
			}
		})
	}
}

func TestNewBlocks(t *testing.T) {
	before := markdown("### Waiting\n\n|a|b|\n|---|---|\n|x|1|\n|y|2|\n", 40)
	after := markdown("### Clear\n\n|a|b|\n|---|---|\n|x|1|\n|y|33333|\n", 40)
	var got []string
	for _, b := range newBlocks(before, after) {
		got = append(got, b.source)
	}
	if d := cmp.Diff([]string{"Clear", "y|33333|"}, got); d != "" {
		t.Errorf("new blocks (-want +got):\n%s", d)
	}
}

func FuzzMarkdown(f *testing.F) {
	f.Add("### 🟡 a\n\n| | b |\n|---|---|\n| ✅ | **c** `d` |\n\n<details><summary>e</summary>\n\n```\nf\n```\n\n</details>\n", 30)
	f.Add("</details><details><summary>", 1)
	f.Add("a\x1b]0;b\x07<br><sub>c</sub></sub> &#27;[31m &#x9b;", 80)
	f.Fuzz(func(t *testing.T, body string, width int) {
		width = max(width%200, 1)
		for _, b := range markdown(body, width) {
			for _, l := range b.lines {
				for _, r := range l.text() {
					if unicode.IsControl(r) {
						t.Fatalf("control character %U in %q", r, l.text())
					}
				}
				// A table cannot be squeezed below its columns, and one wide
				// character takes two cells.
				if b.table == 0 && l.width() > max(width, 2) {
					t.Fatalf("a line of %d cells, want at most %d: %q", l.width(), width, l.text())
				}
			}
		}
	})
}
