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
