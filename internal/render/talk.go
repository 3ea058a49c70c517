package render

import (
	"strings"

	"signalbox/internal/chat"
)

// Talk is something to say in a conversation: one model from which [Slack],
// [Matrix], [Markdown] and [Text] make the form for each place. All text in it
// is taken as it is and escaped for the place, so it may come from outside.
type Talk []Part

// Part is a [Paragraph], [Small], [Items], [Fields], [Listing], [Divider] or
// [Buttons].
type Part interface{ part() }

type (
	// Paragraph is a line of text.
	Paragraph Line
	// Small is a line of what matters less.
	Small Line
	// Items are a list.
	Items []Item
	// Fields are short values with their labels.
	Fields []Field
	// Listing is text of many lines as a machine wrote it.
	Listing string
	// Divider parts what comes after from what was before.
	Divider struct{}
	// Buttons offer what can be done. A place without buttons tells what to do
	// instead.
	Buttons []Button
)

func (Paragraph) part() {}
func (Small) part()     {}
func (Items) part()     {}
func (Fields) part()    {}
func (Listing) part()   {}
func (Divider) part()   {}
func (Buttons) part()   {}

// Item is a line of a list, and what is under it.
type Item struct {
	// Sign stands for the state of it in place of a bullet. Either all items
	// of a list have one or none has, and without one nothing is under it.
	Sign  string
	Text  Line
	Under Items
	// Stands is how many others an item stands for that says only how many were left
	// out; zero for any other.
	Stands int
}

// Line is text within one line.
type Line []Run

// Run is a piece of a line.
type Run struct {
	Text string
	// Style is how it looks.
	Style Style
	// Address is where it leads, or empty. One that is not plainly of the web is
	// left out.
	Address string
}

// Style is how a run looks.
type Style int

// The styles.
const (
	StylePlain Style = iota
	StyleStrong
	StyleCode
)

// Plain is text.
func Plain(s string) Run { return Run{Text: s} }

// Strong is text that stands out.
func Strong(s string) Run { return Run{Text: s, Style: StyleStrong} }

// Code is text for machines, such as a commit or a command.
func Code(s string) Run { return Run{Text: s, Style: StyleCode} }

// Link is text that leads somewhere.
func Link(s, address string) Run { return Run{Text: s, Address: address} }

// Field is a short value with its label.
type Field struct {
	Label string
	Value Line
}

// Button is one thing that can be done.
type Button struct {
	Press chat.Button
	Label string
	// Value is what comes back when it is pressed.
	Value string
	// Command is what to write for the same on the pull request.
	Command string
	// Primary is set for what is mostly wanted.
	Primary bool
	// Confirm is asked before, where the platform can; nil for nothing.
	Confirm *Confirm
}

// Confirm asks whether something is really meant.
type Confirm struct {
	Title, Text, Yes, No string
}

// with makes a line of runs by a form for one run.
func (l Line) with(form func(Run) string) string {
	var b strings.Builder
	for _, r := range l {
		b.WriteString(form(r))
	}
	return strings.TrimSpace(b.String())
}

// shown is the text of a run in one line of at most some runes. White space at
// its ends stays, because it parts runs.
func (r Run) shown(runes int) string {
	// What is far beyond the end is not worth the work; half a rune is dropped.
	text := clip(oneLine(r.Text[:min(len(r.Text), 8*maxInline)]), runes)
	if r.Style != StylePlain || r.Address != "" || text == "" {
		if text == "" && strings.Contains(r.Text, " ") {
			return " "
		}
		return text
	}
	if strings.HasPrefix(r.Text, " ") {
		text = " " + text
	}
	if strings.HasSuffix(r.Text, " ") {
		text += " "
	}
	return text
}

// address is where a run leads if that is plainly of the web, or empty.
func (r Run) address() string {
	const longest = 1000
	if len(r.Address) > longest || !plainAddress.MatchString(r.Address) {
		return ""
	}
	return r.Address
}

// ChatBody is a talk for a platform.
func ChatBody(p chat.Platform, t Talk) chat.Body {
	if p == chat.Slack {
		return Slack(t)
	}
	return Matrix(t)
}
