package render_test

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"

	"signalbox/internal/chat"
	"signalbox/internal/render"
)

// hostileInChat holds what tries to be more than text in a chat, beside what
// tries it in Markdown.
var hostileInChat = append([]string{
	"<!channel> and <!here>", "<!everyone|x>", "<@U0123456>", "<#C0123456|general>", "<https://evil.example|see>", "<!date^0^{date}|x>", "&lt;!channel&gt;",
	"@room", "@here @channel @everyone", "hello @alice:example.org, see #ops:example.org and !abc:example.org", "@\u200broom", "\u2060@room\u2060", "＠room ﹫room",
	"*bold* and *bold*", "_lean_ snake_case _x_", "~gone~", "> quoted", "&gt; quoted", "```", "a`b`c", ":white_check_mark: :a:b:c: 12:30:45",
	"https://evil.example/x", "matrix:u/alice:example.org", "https://matrix.to/#/@alice:example.org", "<a href=\"https://evil.example\">x</a>",
	"<img src=x onerror=alert(1)>", "\" onmouseover=\"alert(1)", "</li></ul><h1>x</h1>", "1. one", "- one", "+ one", "= one", "a\n\n---\n\n# b",
	"\u202e\u2066\u200f\u200d\u00ad\ufeff", "\x00\x1b[31m", "\xff\xfe", strings.Repeat("<@U1>&*_~`", 80), strings.Repeat("\U0001F600", 700), "",
}, hostile...)

const harmless = "harmless"

// leftOut says that parts of a talk were left out, so that it has fewer tags.
const leftOut = "left out because it is too long"

func TestNothingBreaksOutOfChats(t *testing.T) {
	type shape struct{ slack, matrix, markdown []string }
	plain := map[string]shape{}
	for name, talk := range talks(harmless) {
		plain[name] = shape{slackShape(t, talk), matrixShape(t, talk), tags(t, toHTML(t, render.Markdown(talk)))}
	}
	for _, text := range hostileInChat {
		t.Run(strings.ToValidUTF8(text[:min(len(text), 40)], "?"), func(t *testing.T) {
			for name, talk := range talks(text) {
				if strings.HasPrefix(name, "alert-") {
					continue // It is made of the same parts as the alert with all of them.
				}
				checkSlack(t, name, render.Slack(talk), plain[name].slack)
				checkMatrix(t, name, render.Matrix(talk), plain[name].matrix)
				if got := render.Text(talk); strings.ContainsFunc(strings.ReplaceAll(got, "\n", ""), steers) {
					t.Errorf("%s: the terminal can be steered by %q", name, got)
				}
				page := toHTML(t, render.Markdown(talk))
				if m := mentions(page); len(m) > 0 {
					t.Errorf("%s: the comment mentions or refers to %q", name, m)
				}
				// An empty text and one of many lines change what there is.
				if got, want := tags(t, page), plain[name].markdown; text != "" && !sameTags(got, want) {
					t.Errorf("%s: the comment has other tags (-harmless +got):\n%s", name, cmp.Diff(want, got))
				}
			}
		})
	}
}

// steers reports whether a rune can steer a terminal or the direction of writing.
func steers(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cs) || unicode.Is(unicode.Cf, r)
}

// slackMessage is what is checked of Slack's blocks.
type slackMessage []struct {
	Type             string
	Text             *slackText
	Fields, Elements []slackText
}

type slackText struct {
	Type     string
	Verbatim bool
	Words    json.RawMessage `json:"text"`
}

// mrkdwnIn returns the texts in mrkdwn of blocks, all within the limits.
func mrkdwnIn(t *testing.T, blocks string) (texts []string) {
	t.Helper()
	var message slackMessage
	if err := json.Unmarshal([]byte(blocks), &message); err != nil {
		t.Fatalf("%v in %s", err, blocks)
	}
	if len(message) > 50 {
		t.Errorf("%d blocks", len(message))
	}
	add := func(s slackText, limit int) {
		if s.Type != "mrkdwn" {
			return
		}
		var words string
		if err := json.Unmarshal(s.Words, &words); err != nil {
			t.Fatal(err)
		}
		if len(words) > limit || words == "" || !s.Verbatim {
			t.Errorf("%d bytes of text, verbatim %t", len(words), s.Verbatim)
		}
		texts = append(texts, words)
	}
	for _, b := range message {
		if b.Text != nil {
			add(*b.Text, 3000)
		}
		for _, f := range b.Fields {
			add(f, 2000)
		}
		if len(b.Fields) > 10 {
			t.Errorf("%d fields in a section", len(b.Fields))
		}
		for _, e := range b.Elements {
			add(e, 3000)
		}
	}
	return texts
}

// slackMark is what has a meaning in mrkdwn: a link, a mark, or the beginning of
// a quote.
var slackMark = regexp.MustCompile("<[^|>]*[|>]|(?m:^&gt;)|[*~`]")

// slackSpan is code, in which nothing else has a meaning.
var slackSpan = regexp.MustCompile("(`+)[^`]*(`+)")

func slackMarks(texts []string) []string {
	return slackMark.FindAllString(slackSpan.ReplaceAllString(strings.Join(texts, "\n"), "$1$2"), -1)
}

func slackShape(t *testing.T, talk render.Talk) []string {
	t.Helper()
	texts := mrkdwnIn(t, render.Slack(talk).Blocks)
	return slackMarks(texts)
}

func checkSlack(t *testing.T, name string, body chat.Body, shape []string) {
	t.Helper()
	blocks, fallback := body.Blocks, body.Text
	for _, bad := range []string{"<!", "<@", "<#", "@room", "@here", "@channel", "@alice", "\u202e"} {
		if strings.Contains(blocks, bad) || strings.Contains(fallback, bad) {
			t.Errorf("%s: Slack is given %q:\n%s", name, bad, blocks)
		}
	}
	if len(fallback) > 4000 {
		t.Errorf("%s: a text of %d bytes", name, len(fallback))
	}
	texts := mrkdwnIn(t, blocks)
	got := slackMarks(texts)
	// What is folded away has fewer marks; what is shown has no others.
	if !strings.Contains(blocks, "…") && !slices.Equal(got, shape) && strings.Contains(blocks, "mrkdwn") && !emptied(got, shape) {
		t.Errorf("%s: other marks (-harmless +got):\n%s\n%s", name, cmp.Diff(shape, got), blocks)
	}
	for _, mark := range got {
		if strings.HasPrefix(mark, "<") && !slices.Contains(shape, mark) {
			t.Errorf("%s: the link %q is from outside", name, mark)
		}
	}
}

// emptied reports whether only marks are missing, as where a text is empty.
func emptied(got, shape []string) bool {
	i := 0
	for _, s := range shape {
		if i < len(got) && got[i] == s {
			i++
		}
	}
	return i == len(got)
}

// matrixTags are the tags that may be in the HTML of Matrix.
var matrixTags = []string{"p", "a", "strong", "code", "pre", "ul", "li", "br", "hr", "sub"}

// tags returns the tags of a page in order, "a" with its address.
func tags(t *testing.T, page string) []string {
	t.Helper()
	var out []string
	z := html.NewTokenizer(strings.NewReader(page))
	for {
		switch z.Next() {
		case html.ErrorToken:
			return out
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			tag := token.Data
			for _, a := range token.Attr {
				tag += " " + a.Key + "=" + a.Val
			}
			out = append(out, tag)
		case html.CommentToken, html.DoctypeToken:
			out = append(out, "comment")
		case html.EndTagToken:
			out = append(out, "/"+z.Token().Data)
		case html.TextToken:
		}
	}
}

// sameTags compares but for paragraphs and styles that an invisible text empties.
func sameTags(got, want []string) bool { return slices.Equal(got, want) || emptied(got, want) }

func matrixShape(t *testing.T, talk render.Talk) []string {
	t.Helper()
	return tags(t, render.Matrix(talk).HTML)
}

var matrixPing = regexp.MustCompile(`@[A-Za-z0-9]|[#!][A-Za-z0-9]+:[a-z]|[a-z]://`)

func checkMatrix(t *testing.T, name string, body chat.Body, shape []string) {
	t.Helper()
	page, fallback := body.HTML, body.Text
	got := tags(t, page)
	if !sameTags(got, shape) && !strings.Contains(page, leftOut) {
		t.Errorf("%s: other tags (-harmless +got):\n%s", name, cmp.Diff(shape, got))
	}
	for _, tag := range got {
		element, attributes, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " ")
		if !slices.Contains(matrixTags, element) || attributes != "" && !strings.HasPrefix(attributes, "href=https://gitea.example.org/") {
			t.Errorf("%s: the tag %q", name, tag)
		}
	}
	fallback = strings.ReplaceAll(fallback, "https://gitea.example.org/", "")
	if ping := matrixPing.FindString(fallback); ping != "" {
		t.Errorf("%s: the plain text has %q:\n%s", name, ping, fallback)
	}
	if ping := matrixPing.FindString(html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(page, ""))); ping != "" {
		t.Errorf("%s: the HTML shows %q:\n%s", name, ping, page)
	}
	if len(page)+len(fallback) > 40<<10 {
		t.Errorf("%s: %d bytes", name, len(page)+len(fallback))
	}
}

func FuzzFromMarkdown(f *testing.F) {
	for _, text := range hostileInChat {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		talk := render.FromMarkdown(text)
		if body := render.Slack(talk); body.Blocks != "" {
			checkSlack(t, "answer", body, slackShape(t, talk))
		}
		for _, tag := range tags(t, render.Matrix(talk).HTML) {
			if element, _, _ := strings.Cut(strings.TrimPrefix(tag, "/"), " "); !slices.Contains(matrixTags, element) {
				t.Errorf("the tag %q", tag)
			}
		}
	})
}
