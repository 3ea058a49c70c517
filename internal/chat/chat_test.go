package chat_test

import (
	"testing"

	"signalbox/internal/chat"
	"signalbox/internal/pull"
)

func TestButtonValue(t *testing.T) {
	ref := pull.Ref{RepoID: 7, Number: 12}
	if got, head, ok := chat.ParseButtonValue(chat.ButtonValue(ref, "abc")); got != ref || head != "abc" || !ok {
		t.Errorf("read back is %v, %q, %t", got, head, ok)
	}
	for _, bad := range []string{"", "@", "7.12", "7.12@", "7@abc", "x.12@abc", "0.12@abc", "7.-1@abc", "7.12.1@abc"} {
		if _, _, ok := chat.ParseButtonValue(bad); ok {
			t.Errorf("%q is taken for the value of a button", bad)
		}
	}
}

func FuzzParseButtonValue(f *testing.F) {
	for _, s := range []string{"7.12@abc", "7.12@a@b", "07.12@abc", "7.12@", "@"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		ref, head, ok := chat.ParseButtonValue(s)
		if !ok {
			if ref != (pull.Ref{}) || head != "" {
				t.Errorf("%q is refused with %v at %q", s, ref, head)
			}
			return
		}
		if head == "" || chat.ButtonValue(ref, head) != s {
			t.Errorf("%q is read as %v at %q, which is written %q", s, ref, head, chat.ButtonValue(ref, head))
		}
	})
}
