package matrix

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"maunium.net/go/mautrix/event"
	"maunium.net/go/mautrix/id"

	"signalbox/internal/chat"
)

var me = self{user: "@signalbox:example.org", name: "Signal Box", prefix: DefaultPrefix}

func TestRead(t *testing.T) {
	const link = `<a href="https://matrix.to/#/@signalbox:example.org">Signal Box</a>`
	mentioned := &event.Mentions{UserIDs: []id.UserID{me.user}}
	reply := func(c event.MessageEventContent) event.MessageEventContent {
		c.RelatesTo = (&event.RelatesTo{}).SetReplyTo("$before")
		return c
	}
	for name, tc := range map[string]struct {
		content   event.MessageEventContent
		text      string
		addressed bool
	}{
		"prefix":                {event.MessageEventContent{Body: "!signalbox  approve\n12 "}, "approve 12", true},
		"prefix alone":          {event.MessageEventContent{Body: "!signalbox"}, "", true},
		"prefix in capitals":    {event.MessageEventContent{Body: "!SignalBox: status"}, "status", true},
		"longer word":           {event.MessageEventContent{Body: "!signalboxes approve"}, "!signalboxes approve", false},
		"prefix within":         {event.MessageEventContent{Body: "try !signalbox approve"}, "try !signalbox approve", false},
		"mention":               {event.MessageEventContent{Body: "Signal Box: approve 12", Mentions: mentioned}, "approve 12", true},
		"mention without colon": {event.MessageEventContent{Body: "Signal Box approve 12", Mentions: mentioned}, "approve 12", true},
		"mention by id":         {event.MessageEventContent{Body: "@signalbox:example.org approve 12"}, "approve 12", true},
		"mention within":        {event.MessageEventContent{Body: "ask Signal Box for it", Mentions: mentioned}, "ask Signal Box for it", true},
		"mention and prefix":    {event.MessageEventContent{Body: "Signal Box: !signalbox status", Mentions: mentioned}, "status", true},
		"pill":                  {event.MessageEventContent{Body: "Signal Box: status", FormattedBody: link + ": status"}, "status", true},
		"pill with its room name": {event.MessageEventContent{
			Body: "Gate keeper, status", FormattedBody: `<a class="x" href="https://matrix.to/#/%40signalbox%3Aexample.org">Gate &#107;eeper</a>, status`,
		}, "status", true},
		"pill of another":              {event.MessageEventContent{Body: "Bob status", FormattedBody: `<a href="https://matrix.to/#/@bob:example.org">Bob</a> status`}, "Bob status", false},
		"pill that is no mention":      {event.MessageEventContent{Body: "so said Signal Box", FormattedBody: "so said " + link, Mentions: &event.Mentions{}}, "so said Signal Box", false},
		"name with colon":              {event.MessageEventContent{Body: "signal box: status", Mentions: &event.Mentions{}}, "status", true},
		"name in a sentence":           {event.MessageEventContent{Body: "Signal Box is great"}, "Signal Box is great", false},
		"local part":                   {event.MessageEventContent{Body: "@signalbox status"}, "status", true},
		"another's name":               {event.MessageEventContent{Body: "signalboxer: status"}, "signalboxer: status", false},
		"quoted command":               {event.MessageEventContent{Body: "> !signalbox approve 12"}, "> !signalbox approve 12", false},
		"reply that repeats a command": {reply(event.MessageEventContent{Body: "> <@bob:example.org> !signalbox approve 12\n\nno!"}), "no!", false},
		"reply with a command":         {reply(event.MessageEventContent{Body: "> <@bob:example.org> shall we?\n> really?\n\n!signalbox approve 12"}), "approve 12", true},
		"reply to signalbox of old": {reply(event.MessageEventContent{
			Body: "> <@signalbox:example.org> ready\n\nthanks", FormattedBody: `<mx-reply><blockquote>` + link + `<br>ready</blockquote></mx-reply>thanks`,
		}), "thanks", false},
		"reply to signalbox": {reply(event.MessageEventContent{Body: "approve", Mentions: mentioned}), "approve", true},
		"invisible":          {event.MessageEventContent{Body: "!signalbox ap\u200bprove\u202e \x00 12\u2028now"}, "approve 12 now", true},
		"not UTF-8":          {event.MessageEventContent{Body: "!signalbox a\xffb"}, "a\uFFFDb", true},
		"nothing":            {event.MessageEventContent{}, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			text, addressed := me.read(&tc.content)
			if text != tc.text || addressed != tc.addressed {
				t.Errorf("got %q, addressed: %t; want %q, %t", text, addressed, tc.text, tc.addressed)
			}
		})
	}
}

func TestLongText(t *testing.T) {
	for _, long := range []string{strings.Repeat("é", chat.MaxText), "a" + strings.Repeat("🚂", chat.MaxText)} {
		text, _ := me.read(&event.MessageEventContent{Body: "!signalbox " + long})
		if len(text) != chat.MaxText || !utf8.ValidString(text) {
			t.Errorf("%.4s... is cut to %d bytes, valid: %t; want %d", long, len(text), utf8.ValidString(text), chat.MaxText)
		}
	}
}

func TestReaction(t *testing.T) {
	for key, want := range map[string]chat.Button{
		"👍": chat.ButtonApprove, "👍🏽": chat.ButtonApprove, "👍\uFE0F": chat.ButtonApprove, "✋": chat.ButtonHold, "✋🏿": chat.ButtonHold,
		"🔍": chat.ButtonDetails, "👎": "", "": "", "👍👍": "", "approve": "", "🏽": "",
	} {
		if got, ok := reaction(key); got != want || ok != (want != "") {
			t.Errorf("%q is %q, %t; want %q", key, got, ok, want)
		}
	}
}

// FuzzRead: whatever is written, what is read of it is one line that can be seen, and
// nobody is addressed whose name or prefix is not in it.
func FuzzRead(f *testing.F) {
	f.Add("!signalbox approve 12", "", false, false)
	f.Add("> <@a:b> !signalbox approve\n\nno", "<mx-reply>x</mx-reply>no", true, false)
	f.Add("Signal Box: hi", `<a href="https://matrix.to/#/@signalbox:example.org">Signal Box</a>: hi`, false, true)
	f.Add("@SIGNALBOX:EXAMPLE.ORG,,, \u202e", `<a href='https://matrix.to/#/%40signalbox:example.org?via=x'></a>`, true, true)
	f.Fuzz(func(t *testing.T, body, formatted string, reply, mention bool) {
		c := &event.MessageEventContent{Body: body, FormattedBody: formatted}
		if reply {
			c.RelatesTo = (&event.RelatesTo{}).SetReplyTo("$x")
		}
		if mention {
			c.Mentions = &event.Mentions{UserIDs: []id.UserID{me.user}}
		}
		text, addressed := me.read(c)
		if len(text) > chat.MaxText || !utf8.ValidString(text) || strings.Contains(strings.TrimRight(text, " "), "  ") || strings.HasPrefix(text, " ") {
			t.Errorf("read %q, %d bytes", text, len(text))
		}
		if i := strings.IndexFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }); i >= 0 {
			t.Errorf("read %q with what cannot be seen", text)
		}
		if mention && !addressed {
			t.Error("a mention is not addressed")
		}
		if again := oneLine(text); again != strings.TrimRight(text, " ") {
			t.Errorf("read again %q is %q", text, again)
		}
		all := strings.ToLower(oneLine(body + " " + formatted))
		if addressed && !mention && !strings.Contains(all, "signal") && !strings.Contains(all, "%") {
			t.Errorf("%q is taken as addressed", body)
		}
	})
}
