package window_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/window"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"03:00-06:00", "03:00-06:00"},
		{"  03:00 - 06:00\t", "03:00-06:00"},
		{"00:00-24:00", "00:00-24:00"},
		{"22:00-06:00", "22:00-06:00"},
		{"22:00-00:00", "22:00-24:00"},
		{"22:00-24:00", "22:00-24:00"},
		{"Mon 09:00-17:00", "Mon 09:00-17:00"},
		{"Mon-Fri 09:00-17:00", "Mon-Fri 09:00-17:00"},
		{"monday - FRIDAY 09:00-17:00", "Mon-Fri 09:00-17:00"},
		{"Fri-Mon 09:00-17:00", "Fri-Mon 09:00-17:00"},
		{"Sat,Sun 09:00-17:00", "Sat,Sun 09:00-17:00"},
		{"Sat-Sun 09:00-17:00", "Sat,Sun 09:00-17:00"},
		{"Fri, Mon ,wed 09:00-17:00", "Mon,Wed,Fri 09:00-17:00"},
		{"Mon-Wed,Fri 09:00-17:00", "Mon,Tue,Wed,Fri 09:00-17:00"},
		{"Mon-Sun 09:00-17:00", "09:00-17:00"},
		{"Sun-Sat 09:00-17:00", "09:00-17:00"},
		{"Wed,Tue,Mon 09:00-17:00", "Mon-Wed 09:00-17:00"},
		{"Mon,Mon 09:00-17:00", "Mon 09:00-17:00"},
		{"Sun,Mon,Sat 22:00-02:00", "Sat-Mon 22:00-02:00"},
		{"Fri 16:00-Mon 07:00", "Fri 16:00-Mon 07:00"},
		{"Friday 16:00 - monday 07:00", "Fri 16:00-Mon 07:00"},
		{"Fri 16:00-Sun 24:00", "Fri 16:00-Sun 24:00"},
		{"Fri 16:00-Mon 00:00", "Fri 16:00-Sun 24:00"},
		{"Mon 09:00-Mon 17:00", "Mon 09:00-17:00"},
		{"Mon 22:00-Tue 06:00", "Mon 22:00-06:00"},
		{"Mon 09:00-Tue 09:00", "Mon 09:00-Tue 09:00"},
		{"Mon 09:00-Tue 10:00", "Mon 09:00-Tue 10:00"},
		{"Mon 09:00-Mon 08:00", "Mon 09:00-Mon 08:00"},
		{"Mon 00:00-Sun 24:00", "Mon 00:00-Sun 24:00"},
		{"Tue 00:00-Mon 24:00", "Tue 00:00-Mon 24:00"},
		{"2026-12-24 18:00-2026-12-27 08:00", "2026-12-24 18:00-2026-12-27 08:00"},
		{"2026-12-24 18:00 - 2026-12-24 24:00", "2026-12-24 18:00-2026-12-24 24:00"},
		{"2024-02-29 00:00-2024-02-29 00:01", "2024-02-29 00:00-2024-02-29 00:01"},
		{"1970-01-01 00:00-2999-12-31 24:00", "1970-01-01 00:00-2999-12-31 24:00"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			s, err := window.Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, s.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if again, err := window.Parse(s.String()); err != nil || again != s {
				t.Errorf("parsed again it is %v, %v", again, err)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", `the span is empty; write it like "Mon-Fri 09:00-17:00"`},
		{" \n", `the span is empty; write it like "Mon-Fri 09:00-17:00"`},
		{"09:00-\xff", `this is no span: it has more than 200 bytes or is not valid UTF-8; write it like "Mon-Fri 09:00-17:00"`},
		{strings.Repeat("Mon,", 100), `this is no span: it has more than 200 bytes or is not valid UTF-8; write it like "Mon-Fri 09:00-17:00"`},
		{"09:00", `"09:00", character 6: the end of the span is missing; write it like -17:00`},
		{"09:00 17:00", `"09:00 17:00", character 7: "17:00" stands where the end of the span is expected; write it like -17:00`},
		{"09:00–17:00", `"09:00–17:00", character 6: "–17:00" stands where the end of the span is expected; write it like -17:00`},
		{"09:00-", `"09:00-", character 7: a time is missing; write it like 09:00`},
		{"9:00-17:00", `"9:00-17:00", character 1: "9:00" is not a time; write it like 09:00 or 17:30, with two digits each`},
		{"09:00-5pm", `"09:00-5pm", character 7: "5pm" is not a time; write it like 09:00 or 17:30, with two digits each`},
		{"09:00-17:60", `"09:00-17:60", character 7: "17:60" is not a time; the day goes from 00:00 to 24:00`},
		{"09:00-25:00", `"09:00-25:00", character 7: "25:00" is not a time; the day goes from 00:00 to 24:00`},
		{"09:00-24:01", `"09:00-24:01", character 7: "24:01" is not a time; the day goes from 00:00 to 24:00`},
		{"24:00-06:00", `"24:00-06:00", character 1: 24:00 can only end a span; a day starts at 00:00`},
		{"Mon 24:00-Tue 06:00", `"Mon 24:00-Tue 06:00", character 1: 24:00 can only end a span; a day starts at 00:00`},
		{"2026-12-24 24:00-2026-12-26 08:00", `"2026-12-24 24:00-2026-12-26 08:00", character 11: 24:00 can only end a span; a day starts at 00:00`},
		{"09:00-09:00", `"09:00-09:00", character 7: it ends when it starts; the whole day is 00:00-24:00`},
		{"00:00-00:00", `"00:00-00:00", character 7: it ends when it starts; the whole day is 00:00-24:00`},
		{"Mon 09:00-Mon 09:00", `"Mon 09:00-Mon 09:00", character 11: it ends when it starts; the whole week is 00:00-24:00`},
		{"Mon 00:00-Mon 00:00", `"Mon 00:00-Mon 00:00", character 11: it ends when it starts; the whole week is 00:00-24:00`},
		{"Mon-Mon 09:00-17:00", `"Mon-Mon 09:00-17:00", character 1: Mon-Mon is one day; write Mon, or no weekday for every day`},
		{"Mon-Fri 16:00-Mon 07:00", `"Mon-Fri 16:00-Mon 07:00", character 1: a span to another weekday starts on one weekday; write it like Fri 16:00-Mon 07:00`},
		{"16:00-Mon 07:00", `"16:00-Mon 07:00", character 1: a span to another weekday starts on one weekday; write it like Fri 16:00-Mon 07:00`},
		{"Mo 09:00-17:00", `"Mo 09:00-17:00", character 1: "Mo" is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or none for every day`},
		{"Mon-Freitag 09:00-17:00", `"Mon-Freitag 09:00-17:00", character 5: "Freitag" is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or none for every day`},
		{"größe 09:00-17:00", `"größe 09:00-17:00", character 1: "größe" is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or none for every day`},
		{"Mon, 09:00-17:00", `"Mon, 09:00-17:00", character 6: a weekday is missing; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		{"-17:00", `"-17:00", character 1: a weekday is missing; write Mon, Tue, Wed, Thu, Fri, Sat or Sun`},
		{"Mon", `"Mon", character 4: a time is missing; write it like 09:00`},
		{"Fri 16:00-Mon", `"Fri 16:00-Mon", character 14: a time is missing; write it like 09:00`},
		{"09:00-17:00, 18:00-19:00", `"09:00-17:00, 18:00-19:00", character 12: ", 18:00-19:00" comes after the end of the span; give several spans as a list`},
		{"09:00-17:00 UTC", `"09:00-17:00 UTC", character 13: "UTC" comes after the end of the span; give several spans as a list`},
		{"2026-02-30 09:00-2026-03-01 09:00", `"2026-02-30 09:00-2026-03-01 09:00", character 1: "2026-02-30" is not a date; write it like 2026-12-24`},
		{"1969-12-31 00:00-1970-01-01 12:00", `"1969-12-31 00:00-1970-01-01 12:00", character 1: "1969-12-31" is not a date; write it like 2026-12-24`},
		{"2026-1-1 09:00-2026-03-01 09:00", `"2026-1-1 09:00-2026-03-01 09:00", character 1: "2026-1-1 0" is not a date; write it like 2026-12-24`},
		{"2026-12-24 09:00", `"2026-12-24 09:00", character 17: the end of the span is missing; write it like -2026-12-27 08:00`},
		{"2026-12-24 09:00-17:00", `"2026-12-24 09:00-17:00", character 18: "17:00" is not a date; write it like 2026-12-24`},
		{"2026-12-24 09:00-2026-12-24 09:00", `"2026-12-24 09:00-2026-12-24 09:00", character 18: it ends before it starts, or at once; write it like 2026-12-24 18:00-2026-12-27 08:00`},
		{"2026-12-24 09:00-2026-12-23 10:00", `"2026-12-24 09:00-2026-12-23 10:00", character 18: it ends before it starts, or at once; write it like 2026-12-24 18:00-2026-12-27 08:00`},
	} {
		t.Run(tt.text, func(t *testing.T) {
			s, err := window.Parse(tt.text)
			if err == nil {
				t.Fatalf("parsed as %v", s)
			}
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s != (window.Span{}) {
				t.Errorf("the error comes with the span %v", s)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{
		"03:00-06:00", "Mon-Fri 09:00-17:00", "Mon,Wed,Fri 22:00-02:00", "Fri 16:00-Mon 07:00", "fri-MONDAY 00:00-24:00",
		"2026-12-24 18:00-2026-12-27 08:00", "1970-01-01 00:00-2999-12-31 24:00", "Mon 00:00-Sun 24:00", "Mo–Fr 9-5", "Tue 10:00-Tue 09:59",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := window.Parse(text)
		if err != nil {
			if s != (window.Span{}) {
				t.Errorf("%q: the error comes with %v", text, s)
			}
			return
		}
		again, err := window.Parse(s.String())
		if err != nil || again != s {
			t.Errorf("%q: %q parsed again is %q, %v", text, s, again, err)
		}
	})
}
