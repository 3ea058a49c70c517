package render

import (
	"cmp"
	"encoding/json"
	"strings"

	"signalbox/internal/chat"
)

// Limits of Slack, in characters. They are kept in bytes, which are more.
const (
	slackBlocks   = 50
	slackSection  = 3000
	slackField    = 2000
	slackFields   = 10
	slackLabel    = 75
	slackValue    = 2000
	slackConfirm  = 300
	slackFallback = 4000
	// slackAll bounds the blocks of one message together: the limit is not
	// written down, and nobody reads as much.
	slackAll = 12_000
)

// Slack is a talk as blocks for Slack, with a text in mrkdwn for notifications.
// What does not fit is left out, and it says so.
func Slack(t Talk) chat.Body {
	t = fit(t, func(t Talk) bool {
		blocks := slackBlocksOf(t)
		return len(blocks) <= slackBlocks && len(encode(blocks)) <= slackAll
	})
	body := chat.Body{Text: slackText(t)}
	if blocks := slackBlocksOf(t); len(blocks) > 0 {
		body.Blocks = encode(blocks)
	}
	return body
}

// block, slackWords and slackButton are what Slack's blocks are made of:
// https://docs.slack.dev/reference/block-kit/blocks.
type slackBlock struct {
	Type     string       `json:"type"`
	Text     *slackWords  `json:"text,omitempty"`
	Fields   []slackWords `json:"fields,omitempty"`
	Elements []any        `json:"elements,omitempty"`
}

type slackWords struct {
	Type string `json:"type"`
	Text string `json:"text"`
	// Verbatim keeps Slack from looking for channels, people and addresses in it.
	Verbatim bool `json:"verbatim,omitempty"`
}

type slackButton struct {
	Type     string       `json:"type"`
	ActionID string       `json:"action_id"`
	Text     slackWords   `json:"text"`
	Value    string       `json:"value"`
	Style    string       `json:"style,omitempty"`
	Confirm  *slackAsking `json:"confirm,omitempty"`
}

type slackAsking struct {
	Title   slackWords `json:"title"`
	Text    slackWords `json:"text"`
	Confirm slackWords `json:"confirm"`
	Deny    slackWords `json:"deny"`
}

func slackBlocksOf(t Talk) []slackBlock {
	var blocks []slackBlock
	section := func(text string) {
		if text != "" {
			blocks = append(blocks, slackBlock{Type: "section", Text: &slackWords{"mrkdwn", text, true}})
		}
	}
	for _, p := range t {
		switch p := p.(type) {
		case Paragraph:
			section(slackLine(Line(p), slackSection))
		case Small:
			if text := slackLine(Line(p), slackField); text != "" {
				blocks = append(blocks, slackBlock{Type: "context", Elements: []any{slackWords{"mrkdwn", text, true}}})
			}
		case Items:
			for _, text := range pack(slackItems("", p), slackSection) {
				section(text)
			}
		case Fields:
			blocks = append(blocks, slackFieldBlocks(p)...)
		case Listing:
			section(slackListing(string(p)))
		case Divider:
			blocks = append(blocks, slackBlock{Type: "divider"})
		case Buttons:
			if len(p) > 0 {
				blocks = append(blocks, slackActions(p))
			}
		}
	}
	return blocks
}

func slackItems(indent string, items Items) []string {
	var lines []string
	for _, item := range items {
		lines = append(lines, indent+cmp.Or(item.Sign, "•")+" "+slackLine(item.Text, slackField))
		lines = append(lines, slackItems(indent+"      ", item.Under)...)
	}
	return lines
}

// pack joins lines to texts of at most a number of bytes.
func pack(lines []string, limit int) []string {
	var out []string
	for _, l := range lines {
		if n := len(out) - 1; n >= 0 && len(out[n])+1+len(l) <= limit {
			out[n] += "\n" + l
			continue
		}
		out = append(out, l)
	}
	return out
}

func slackFieldBlocks(fields Fields) []slackBlock {
	var blocks []slackBlock
	for i, f := range fields {
		if i%slackFields == 0 {
			blocks = append(blocks, slackBlock{Type: "section"})
		}
		text := slackLine(Line{Strong(f.Label)}, slackField/4) + "\n" + slackLine(f.Value, slackField/2)
		last := &blocks[len(blocks)-1]
		last.Fields = append(last.Fields, slackWords{"mrkdwn", text, true})
	}
	return blocks
}

func slackListing(s string) string {
	for size := slackSection; ; size /= 2 {
		text := "```\n" + slackCode(strings.TrimRight(listing(cutLines(s, size)), "\n")) + "\n```"
		if len(text) <= slackSection {
			return text
		}
	}
}

func slackActions(buttons Buttons) slackBlock {
	b := slackBlock{Type: "actions"}
	for _, button := range buttons {
		s := slackButton{
			Type: "button", ActionID: string(button.Press),
			Text: plainWords(button.Label, slackLabel), Value: button.Value[:min(len(button.Value), slackValue)],
		}
		if button.Primary {
			s.Style = "primary"
		}
		if c := button.Confirm; c != nil {
			s.Confirm = &slackAsking{
				plainWords(c.Title, slackLabel), plainWords(c.Text, slackConfirm), plainWords(c.Yes, slackLabel/3), plainWords(c.No, slackLabel/3),
			}
		}
		b.Elements = append(b.Elements, s)
	}
	return b
}

// plainWords is text in which Slack looks for nothing. The brackets and the
// ampersand are others that look alike, because it is not written down whether
// they are to be escaped in it.
func plainWords(s string, limit int) slackWords {
	s = strings.NewReplacer("<", "‹", ">", "›", "&", "＆", "@", "@"+joiner).Replace(oneLine(s))
	for n := limit; ; n-- {
		if text := clip(s, n); len(text) <= limit || n == 1 {
			return slackWords{Type: "plain_text", Text: text}
		}
	}
}

// slackText is what a notification shows: the lines of a talk as far as they
// fit.
func slackText(t Talk) string {
	var lines []string
	for _, p := range t {
		switch p := p.(type) {
		case Paragraph:
			lines = append(lines, slackLine(Line(p), slackField))
		case Small:
			lines = append(lines, slackLine(Line(p), slackField))
		case Items:
			lines = append(lines, slackItems("", p)...)
		case Fields:
			for _, f := range p {
				lines = append(lines, slackLine(append(Line{Strong(f.Label), Plain(": ")}, f.Value...), slackField))
			}
		case Listing:
			lines = append(lines, slackListing(string(p)))
		case Divider, Buttons:
		}
	}
	const end = "…"
	texts := pack(lines, slackFallback-len("\n"+end))
	switch len(texts) {
	case 0:
		return ""
	case 1:
		return texts[0]
	}
	return texts[0] + "\n" + end
}

// encode is JSON as Slack shows it in its own tools, without needless escapes.
func encode(blocks []slackBlock) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	// What is made of texts alone can always be encoded.
	_ = e.Encode(blocks)
	return strings.TrimSuffix(b.String(), "\n")
}
