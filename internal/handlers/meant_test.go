package handlers

import (
	"strings"
	"testing"

	"signalbox/internal/command"
	"signalbox/internal/pull"
)

// TestMeant: a command counts for the commit that its author looked at.
func TestMeant(t *testing.T) {
	first := "abcdef01" + strings.Repeat("1", 32)
	head := "abcdef01" + strings.Repeat("2", 32)
	push := func(commits ...string) pull.Moment { return pull.Moment{Kind: pull.MomentPush, Commits: commits} }
	said := pull.Moment{Kind: pull.MomentComment, CommentID: 7}
	comment := place{name: placeComment, comment: 7}
	for name, tt := range map[string]struct {
		timeline []pull.Moment
		place    place
		sha      string
		want     string // empty if it counts
	}{
		"the head was pushed before":                {[]pull.Moment{push(head), said}, comment, "", ""},
		"the head was pushed after":                 {[]pull.Moment{push(head), said, push(head)}, comment, "", "became another after it was written"},
		"named in full":                             {[]pull.Moment{push(first), said, push(head)}, comment, head, ""},
		"named in short":                            {[]pull.Moment{push(head), said}, comment, head[:7], ""},
		"another is named":                          {[]pull.Moment{push(head), said}, comment, "1234567", "it names 1234567"},
		"one that begins alike was pushed before":   {[]pull.Moment{push(first), push(head), said}, comment, head[:8], "more than one commit"},
		"one that begins alike was pushed after":    {[]pull.Moment{push(first), said, push(head)}, comment, head[:8], "more than one commit"},
		"in short, and the rest is not in sight":    {[]pull.Moment{said, push(head)}, comment, head[:8], "became another after it was written"},
		"in short, and nothing tells of a push":     {[]pull.Moment{said}, comment, head[:8], head},
		"a chat names it in full":                   {nil, place{request: &Request{}}, head, ""},
		"a chat names it in short":                  {nil, place{request: &Request{}}, head[:10], head},
		"a chat's card shows it":                    {nil, place{request: &Request{Head: head}}, "", ""},
		"a chat's card shows it and it is named so": {nil, place{request: &Request{Head: head}}, head[:10], ""},
		"a chat's card shows another":               {nil, place{request: &Request{Head: first}}, head[:8], "it was about abcdef0111"},
		"a review of it":                            {nil, place{review: &pull.Review{Commit: head}}, "", ""},
		"a review of another that begins alike":     {nil, place{review: &pull.Review{Commit: first}}, head[:8], "the review was of abcdef0111"},
	} {
		t.Run(name, func(t *testing.T) {
			r := &run{pull: pull.Pull{Head: pull.Branch{SHA: head}}}
			in := &Inputs{Snapshot: pull.Snapshot{Timeline: tt.timeline}}
			why, err := r.meant(in, request{Command: command.Command{Name: command.Approve, SHA: tt.sha}, place: tt.place})
			if err != nil {
				t.Fatal(err)
			}
			if (why == "") != (tt.want == "") || !strings.Contains(why, tt.want) {
				t.Errorf("got %q, want %q", why, tt.want)
			}
		})
	}
}
