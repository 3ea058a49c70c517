package command_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/command"
)

// said renders what was found, a line each.
func said(f command.Found) string {
	var lines []string
	for _, c := range f.Commands {
		l := string(c.Name)
		if c.Cancel {
			l += " cancel"
		}
		if c.SHA != "" {
			l += " sha=" + c.SHA
		}
		if c.Lasts != 0 {
			l += " lasts=" + c.Lasts.String()
		}
		if !c.Until.IsZero() {
			l += " until=" + c.Until.Format(time.RFC3339)
		}
		if c.Text != "" {
			l += " text=" + c.Text
		}
		if c.Problem != "" {
			l += " PROBLEM " + c.Problem
		}
		lines = append(lines, l)
	}
	for _, u := range f.Unknown {
		lines = append(lines, u.Word+"? "+string(u.Suggest))
	}
	return strings.Join(lines, "\n")
}

func TestFind(t *testing.T) {
	tests := []struct{ name, in, want string }{
		{"alone", "/approve", "approve"},
		{"with CRLF and spaces", "  Fine.\r\n\r\n/approve  \r\n", "approve"},
		{"after a line of text", "Looks good to me\n/approve", "approve"},
		{"upper case", "/APPROVE", "approve"},
		{"with a SHA", "/approve F21E89D9D2", "approve sha=f21e89d9d2"},
		{"with too short a SHA", "/approve f21e89", `approve PROBLEM after /approve comes nothing, "cancel", or the SHA of the head with at least 7 digits`},
		{"with thanks", "/approve thanks!", `approve PROBLEM after /approve comes nothing, "cancel", or the SHA of the head with at least 7 digits`},
		{"taken back", "/approve cancel", "approve cancel"},
		{"override", "/approve-override the disk is full, see #12", "approve-override text=the disk is full, see #12"},
		{"override without a reason", "/approve-override", "approve-override PROBLEM an override needs a reason: /approve-override REASON"},
		{"hold with a reason", "/hold until Monday", "hold text=until Monday"},
		{"hold with a reason and merge: the reason is not repeated", "/hold for @all\n/merge", "hold text=for @all\nmerge PROBLEM the same comment says /hold, which holds"},
		{"freeze and unfreeze: freeze", "/unfreeze\n/freeze 2h", "unfreeze PROBLEM the same comment says /freeze, which holds\nfreeze lasts=2h0m0s"},
		{"freeze and merge: freeze", "/merge\n/freeze 2h for @all", "merge PROBLEM the same comment says /freeze, which holds\nfreeze lasts=2h0m0s text=for @all"},
		{"freeze and take the merge back go together", "/merge cancel\n/freeze 2h", "merge cancel\nfreeze lasts=2h0m0s"},
		{"two freezes", "/freeze 2h\n/freeze 3h", "freeze lasts=2h0m0s\nfreeze lasts=3h0m0s"},
		{"unfreeze", "/unfreeze", "unfreeze"},
		{"unfreeze with more", "/unfreeze now", "unfreeze PROBLEM nothing comes after /unfreeze"},
		{"twice is once", "/approve\n\n/approve", "approve"},
		{"hold and unhold: hold", "/unhold\n/hold", "unhold PROBLEM the same comment says /hold, which holds\nhold"},
		{"approve and take back: taken back", "/approve\n/approve cancel", "approve PROBLEM the same comment says /approve cancel, which holds\napprove cancel"},
		{"merge and hold: hold", "/merge\n/hold", "merge PROBLEM the same comment says /hold, which holds\nhold"},
		{"merge and take back", "/merge cancel\n/merge", "merge cancel\nmerge PROBLEM the same comment says /merge cancel, which holds"},
		{"approve and merge go together", "/approve\n/merge", "approve\nmerge"},
		{"unknown, near", "/approved", "/approved? approve"},
		{"unknown, near with arguments", "/aprove abc", "/aprove? approve"},
		{"unknown, far", "/deploy now\n/etc/passwd\n/lgtm", ""},
		{"a path", "/approve/this", ""},
		{"in a sentence", "please /approve this", ""},
		{"in a fenced block", "```\n/approve\n```", ""},
		{"in a tilde block", "~~~yaml\n/approve\n~~~", ""},
		{"in a block that is not closed", "```\n/approve", ""},
		{"in indented code", "text\n\n    /approve", ""},
		{"in inline code over lines", "see `\n/approve\n` there", ""},
		{"in inline code", "`/approve`", ""},
		{"in a quote", "> /approve", ""},
		{"lazily in a quote", "> he said\n/approve", ""},
		{"after a quote", "> he said\n\n/approve", "approve"},
		{"in a list", "- /approve", ""},
		{"in a list item's paragraph", "1. first\n\n   /approve", ""},
		{"in an HTML comment", "<!--\n/approve\n-->", ""},
		{"in an HTML comment within a paragraph", "text <!--\n/approve\n--> text", ""},
		{"in an HTML block", "<details>\n/approve\n</details>", ""},
		{"in a paragraph of an HTML block", "<details>\n\n/approve\n\n</details>", "approve"},
		{"a heading", "# /approve", ""},
		{"a heading by underline", "/approve\n====", ""},
		{"in a link's title", "[x](http://example.org '\n/approve\n')", ""},
		{"help", "/help", "help"},
		{"help with more", "/help me", "help PROBLEM nothing comes after /help"},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, said(command.Find(tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestFindIsBounded(t *testing.T) {
	many := strings.Builder{}
	for range 100 {
		many.WriteString("/hold " + strings.Repeat("x", many.Len()%50) + "\n")
	}
	if n := len(command.Find(many.String()).Commands); n > 20 {
		t.Errorf("%d commands", n)
	}
	f := command.Find(strings.Repeat("x", 300<<10) + "\n/approve")
	if len(f.Commands) != 1 || f.Commands[0].Name != command.Approve || f.Commands[0].Problem == "" {
		t.Errorf("in a huge text there is %+v, want one command that is refused", f.Commands)
	}
	for name, text := range map[string]string{"quotes": strings.Repeat("> ", 1<<20), "links": strings.Repeat("[a](", 1<<18), "paths": strings.Repeat("/usr/bin\n", 1<<17)} {
		if f := command.Find(text); len(f.Commands)+len(f.Unknown) > 0 {
			t.Errorf("%s: there is %+v", name, f)
		}
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"/approve", "> /hold\n\n/unhold", "```\n/approve\n```\n/merge cancel", "<!-- /approve -->", "`\n/approve\n`"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		for _, c := range command.Find(in).Commands {
			if !strings.HasPrefix(c.Line, "/") || !strings.Contains(strings.ToLower(in), "/"+string(c.Name)) {
				t.Errorf("command %+v is not in the text", c)
			}
		}
	})
}
