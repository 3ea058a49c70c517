package demo

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestScreen(t *testing.T) {
	st := status{Context: "signalbox / approval (main)", State: "success", Creator: account{Login: bot}}
	forged := st
	forged.Creator.Login = "mallory"
	forged.State = "odd"
	draw := func(color bool) string {
		var b strings.Builder
		s := &screen{out: &b, width: 60, color: color}
		s.stamped(statusLine(st), 412*time.Millisecond)
		s.stamped(statusLine(forged), 12*time.Second)
		s.description(status{Description: "needs 1 approval by alice or by carol, who are awake"})
		s.table(margin, []string{"A", "B"}, [][]string{{"x", "a long text that is wrapped because it does not fit"}})
		return b.String()
	}
	want := `    ✔ success signalbox / approval (main)       after 412 ms
    ? odd     signalbox / approval (main)  posted by mallory after 12000 ms
              needs 1 approval by alice or by carol, who are
              awake
  A │ B
  x │ a long text that is wrapped because it does not fit
`
	if d := cmp.Diff(want, draw(false)); d != "" {
		t.Errorf("without colors (-want +got):\n%s", d)
	}
	colored := draw(true)
	for _, text := range []string{"\x1b[32m✔ \x1b[0m", "\x1b[32;1msuccess \x1b[0m", "\x1b[31m  posted by mallory\x1b[0m", "\x1b[2mafter 412 ms\x1b[0m"} {
		if !strings.Contains(colored, text) {
			t.Errorf("with colors, %q is missing in %q", text, colored)
		}
	}
}

func TestTextWidth(t *testing.T) {
	for text, want := range map[string]int{
		"": 0, "abc": 3, "🟡": 2, "✅ a": 4, "é": 1, "e\u0301": 1, "日本": 4, "a\u2060b": 2, "⚠\ufe0f": 1,
	} {
		if got := textWidth(text); got != want {
			t.Errorf("textWidth(%q) = %d, want %d", text, got, want)
		}
	}
}

func TestWants(t *testing.T) {
	v := &view{
		statuses: []status{{ID: 1, Context: preconditions, State: "pending", Description: "d", Creator: account{Login: bot}}},
		comments: []comment{{ID: 1, Body: "**no** matches \\<for\\> it"}},
	}
	two := &view{comments: []comment{{ID: 1}, {ID: 2}}}
	for _, tc := range []struct {
		name string
		view *view
		want func(*view) error
		err  string
	}{
		{"all is there", v, all(state(preconditions, "pending"), says("no matches <for>")), ""},
		{"another state", v, all(state(preconditions, "success")), `the status "` + preconditions + `" is pending (d), not success`},
		{"no status, no text", v, all(state(approval, "success"), says("x")), `there is no status "` + approval + `"; the comment does not say "x"`},
		{"two comments", two, all(), "there are 2 comments of signalbox, not one"},
		{"nothing new", v, v.posted, "nothing was posted"},
		{"new comments", v, two.posted, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := ""
			if err := tc.want(tc.view); err != nil {
				got = err.Error()
			}
			if got != tc.err {
				t.Errorf("got %q, want %q", got, tc.err)
			}
		})
	}
}

// TestScreenFails keeps the first error, and writes nothing after it.
func TestScreenFails(t *testing.T) {
	broken := errors.New("broken")
	w := &failing{err: broken}
	s := &screen{out: w, width: 60}
	s.tell("one")
	s.tell("two")
	if err := s.failed(); !errors.Is(err, broken) || !errors.Is(err, ErrOutput) || w.calls != 1 {
		t.Errorf("error %v after %d calls, want %v after one", err, w.calls, broken)
	}
}

type failing struct {
	err   error
	calls int
}

func (w *failing) Write([]byte) (int, error) {
	w.calls++
	return 0, w.err
}
