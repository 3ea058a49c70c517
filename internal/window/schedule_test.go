package window_test

import (
	"testing"
	"time"
	_ "time/tzdata"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/window"
)

func spans(t testing.TB, texts ...string) []window.Span {
	t.Helper()
	var out []window.Span
	for _, text := range texts {
		s, err := window.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := window.Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// moment reads a time with its offset.
func moment(t testing.TB, text string) time.Time {
	t.Helper()
	m, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

type list = []string

func TestAt(t *testing.T) {
	const never = "0001-01-01T00:00:00Z"
	for _, tt := range []struct {
		name        string
		zone        string
		deny, allow list
		at          string
		open        bool
		since       string
		until       string
		reason      string
	}{
		{"before", "America/Chicago", list{"03:00-06:00"}, nil, "2026-11-30T02:59:59-06:00", true, "2026-11-29T06:00:00-06:00", "2026-11-30T03:00:00-06:00", "outside of the denied 03:00-06:00 (America/Chicago)"},
		{"first instant", "America/Chicago", list{"03:00-06:00"}, nil, "2026-11-30T03:00:00-06:00", false, "2026-11-30T03:00:00-06:00", "2026-11-30T06:00:00-06:00", "within the denied 03:00-06:00 (America/Chicago)"},
		{"first instant, in UTC", "America/Chicago", list{"03:00-06:00"}, nil, "2026-11-30T09:00:00Z", false, "2026-11-30T03:00:00-06:00", "2026-11-30T06:00:00-06:00", "within the denied 03:00-06:00 (America/Chicago)"},
		{"last instant", "America/Chicago", list{"03:00-06:00"}, nil, "2026-11-30T05:59:59.999999999-06:00", false, "2026-11-30T03:00:00-06:00", "2026-11-30T06:00:00-06:00", "within the denied 03:00-06:00 (America/Chicago)"},
		{"after", "America/Chicago", list{"03:00-06:00"}, nil, "2026-11-30T06:00:00-06:00", true, "2026-11-30T06:00:00-06:00", "2026-12-01T03:00:00-06:00", "outside of the denied 03:00-06:00 (America/Chicago)"},

		{"allowed", "Europe/Berlin", nil, list{"Mon-Fri 09:00-17:00", "Sat 10:00-12:00"}, "2026-11-30T10:00:00+01:00", true, "2026-11-30T09:00:00+01:00", "2026-11-30T17:00:00+01:00", "within the allowed Mon-Fri 09:00-17:00 (Europe/Berlin)"},
		{"allowed on Saturday", "Europe/Berlin", nil, list{"Mon-Fri 09:00-17:00", "Sat 10:00-12:00"}, "2026-11-28T11:00:00+01:00", true, "2026-11-28T10:00:00+01:00", "2026-11-28T12:00:00+01:00", "within the allowed Sat 10:00-12:00 (Europe/Berlin)"},
		{"not allowed", "Europe/Berlin", nil, list{"Mon-Fri 09:00-17:00", "Sat 10:00-12:00"}, "2026-11-28T12:00:00+01:00", false, "2026-11-28T12:00:00+01:00", "2026-11-30T09:00:00+01:00", "outside of the allowed Mon-Fri 09:00-17:00 and Sat 10:00-12:00 (Europe/Berlin)"},
		{"denied where it is allowed", "Europe/Berlin", list{"Fri 15:00-16:00"}, list{"Mon-Fri 09:00-17:00"}, "2026-11-27T15:30:00+01:00", false, "2026-11-27T15:00:00+01:00", "2026-11-27T16:00:00+01:00", "within the denied Fri 15:00-16:00 (Europe/Berlin)"},
		{"denied until it is allowed", "Europe/Berlin", list{"Fri 15:00-18:00"}, list{"Mon-Fri 09:00-17:00"}, "2026-11-27T15:30:00+01:00", false, "2026-11-27T15:00:00+01:00", "2026-11-30T09:00:00+01:00", "within the denied Fri 15:00-18:00 (Europe/Berlin)"},

		{"across days", "Europe/Berlin", list{"Fri 16:00-Mon 07:00"}, nil, "2026-11-29T12:00:00+01:00", false, "2026-11-27T16:00:00+01:00", "2026-11-30T07:00:00+01:00", "within the denied Fri 16:00-Mon 07:00 (Europe/Berlin)"},
		{"across midnight, of the day before", "Europe/Berlin", list{"Fri 22:00-02:00"}, nil, "2026-11-28T01:00:00+01:00", false, "2026-11-27T22:00:00+01:00", "2026-11-28T02:00:00+01:00", "within the denied Fri 22:00-02:00 (Europe/Berlin)"},
		{"across midnight, not of this day", "Europe/Berlin", list{"Fri 22:00-02:00"}, nil, "2026-11-27T01:00:00+01:00", true, "2026-11-21T02:00:00+01:00", "2026-11-27T22:00:00+01:00", "outside of the denied Fri 22:00-02:00 (Europe/Berlin)"},
		{"across the year", "Europe/Berlin", list{"22:00-06:00"}, nil, "2026-12-31T23:30:00+01:00", false, "2026-12-31T22:00:00+01:00", "2027-01-01T06:00:00+01:00", "within the denied 22:00-06:00 (Europe/Berlin)"},
		{"across the year, later", "Europe/Berlin", list{"22:00-06:00"}, nil, "2027-01-01T00:00:00+01:00", false, "2026-12-31T22:00:00+01:00", "2027-01-01T06:00:00+01:00", "within the denied 22:00-06:00 (Europe/Berlin)"},
		{"almost a week", "UTC", list{"Mon 09:00-Mon 08:00"}, nil, "2026-12-06T00:00:00Z", false, "2026-11-30T09:00:00Z", "2026-12-07T08:00:00Z", "within the denied Mon 09:00-Mon 08:00 (UTC)"},
		{"neighbours are one", "UTC", list{"03:00-04:00", "04:00-05:00"}, nil, "2026-11-30T03:30:00Z", false, "2026-11-30T03:00:00Z", "2026-11-30T05:00:00Z", "within the denied 03:00-04:00 (UTC)"},
		{"the longest is named", "UTC", list{"03:00-04:00", "03:00-05:00", "03:00-04:30"}, nil, "2026-11-30T03:30:00Z", false, "2026-11-30T03:00:00Z", "2026-11-30T05:00:00Z", "within the denied 03:00-05:00 (UTC)"},
		{"whole days of weekdays", "UTC", nil, list{"Mon-Wed 00:00-24:00"}, "2026-12-01T12:00:00Z", true, "2026-11-30T00:00:00Z", "2026-12-03T00:00:00Z", "within the allowed Mon-Wed 00:00-24:00 (UTC)"},

		{"once, before", "Europe/Berlin", list{"2026-12-24 18:00-2026-12-27 08:00"}, nil, "2026-11-30T12:00:00+01:00", true, never, "2026-12-24T18:00:00+01:00", "outside of the denied 2026-12-24 18:00-2026-12-27 08:00 (Europe/Berlin)"},
		{"once, within", "Europe/Berlin", list{"2026-12-24 18:00-2026-12-27 08:00"}, nil, "2026-12-25T12:00:00+01:00", false, "2026-12-24T18:00:00+01:00", "2026-12-27T08:00:00+01:00", "within the denied 2026-12-24 18:00-2026-12-27 08:00 (Europe/Berlin)"},
		{"once, after", "Europe/Berlin", list{"2026-12-24 18:00-2026-12-27 08:00"}, nil, "2027-12-25T12:00:00+01:00", true, "2026-12-27T08:00:00+01:00", never, "outside of the denied 2026-12-24 18:00-2026-12-27 08:00 (Europe/Berlin)"},
		{"once, too far", "Europe/Berlin", list{"2036-12-24 18:00-2036-12-27 08:00"}, nil, "2026-12-25T12:00:00+01:00", true, never, never, "outside of the denied 2036-12-24 18:00-2036-12-27 08:00 (Europe/Berlin)"},

		{"nothing", "UTC", nil, nil, "2026-11-30T12:00:00Z", true, never, never, ""},
		{"never", "UTC", list{"00:00-24:00"}, nil, "2026-11-30T12:00:00Z", false, never, never, "within the denied 00:00-24:00 (UTC)"},
		{"never, over changes of the clock", "Europe/Berlin", list{"00:00-24:00"}, nil, "2026-11-30T12:00:00+01:00", false, never, never, "within the denied 00:00-24:00 (Europe/Berlin)"},
		{"always", "Europe/Berlin", nil, list{"Mon 00:00-Sun 24:00"}, "2026-11-30T12:00:00+01:00", true, never, never, "within the allowed Mon 00:00-Sun 24:00 (Europe/Berlin)"},

		// 2026-03-08, Chicago: 02:00 to 03:00 is skipped.
		{"Chicago, spring: starts in the gap", "America/Chicago", list{"02:30-04:00"}, nil, "2026-03-08T01:59:59-06:00", true, "2026-03-07T04:00:00-06:00", "2026-03-08T03:00:00-05:00", "outside of the denied 02:30-04:00 (America/Chicago)"},
		{"Chicago, spring: ends in the gap", "America/Chicago", list{"01:00-02:30"}, nil, "2026-03-08T01:30:00-06:00", false, "2026-03-08T01:00:00-06:00", "2026-03-08T03:00:00-05:00", "within the denied 01:00-02:30 (America/Chicago)"},
		{"Chicago, spring: within the gap", "America/Chicago", list{"02:15-02:45"}, nil, "2026-03-08T03:00:00-05:00", true, "2026-03-07T02:45:00-06:00", "2026-03-09T02:15:00-05:00", "outside of the denied 02:15-02:45 (America/Chicago)"},
		{"Chicago, spring: reboots", "America/Chicago", list{"03:00-06:00"}, nil, "2026-03-08T03:00:00-05:00", false, "2026-03-08T03:00:00-05:00", "2026-03-08T06:00:00-05:00", "within the denied 03:00-06:00 (America/Chicago)"},
		// 2026-11-01, Chicago: 01:00 to 02:00 comes twice.
		{"Chicago, autumn: denied from the first", "America/Chicago", list{"01:30-03:00"}, nil, "2026-11-01T01:29:59-05:00", true, "2026-10-31T03:00:00-05:00", "2026-11-01T01:30:00-05:00", "outside of the denied 01:30-03:00 (America/Chicago)"},
		{"Chicago, autumn: denied to the second", "America/Chicago", list{"00:00-01:30"}, nil, "2026-11-01T01:45:00-05:00", false, "2026-11-01T00:00:00-05:00", "2026-11-01T01:30:00-06:00", "within the denied 00:00-01:30 (America/Chicago)"},
		{"Chicago, autumn: allowed from the second", "America/Chicago", nil, list{"01:30-03:00"}, "2026-11-01T01:45:00-05:00", false, "2026-10-31T03:00:00-05:00", "2026-11-01T01:30:00-06:00", "outside of the allowed 01:30-03:00 (America/Chicago)"},
		{"Chicago, autumn: allowed to the first", "America/Chicago", nil, list{"00:00-01:30"}, "2026-11-01T01:00:00-05:00", true, "2026-11-01T00:00:00-05:00", "2026-11-01T01:30:00-05:00", "within the allowed 00:00-01:30 (America/Chicago)"},
		{"Chicago, autumn: denied within", "America/Chicago", list{"01:15-01:45"}, nil, "2026-11-01T01:00:00-06:00", false, "2026-11-01T01:15:00-05:00", "2026-11-01T01:45:00-06:00", "within the denied 01:15-01:45 (America/Chicago)"},
		{"Chicago, autumn: not allowed within", "America/Chicago", nil, list{"01:15-01:45"}, "2026-11-01T01:30:00-05:00", false, "2026-10-31T01:45:00-05:00", "2026-11-02T01:15:00-06:00", "outside of the allowed 01:15-01:45 (America/Chicago)"},
		// Berlin: 2026-03-29 02:00 to 03:00 is skipped, 2026-10-25 02:00 to 03:00 comes twice.
		{"Berlin, spring", "Europe/Berlin", list{"02:00-06:00"}, nil, "2026-03-29T03:00:00+02:00", false, "2026-03-29T03:00:00+02:00", "2026-03-29T06:00:00+02:00", "within the denied 02:00-06:00 (Europe/Berlin)"},
		{"Berlin, spring: as long as the clock says", "Europe/Berlin", list{"Sat 12:00-Sun 12:00"}, nil, "2026-03-29T11:00:00+02:00", false, "2026-03-28T12:00:00+01:00", "2026-03-29T12:00:00+02:00", "within the denied Sat 12:00-Sun 12:00 (Europe/Berlin)"},
		{"Berlin, autumn", "Europe/Berlin", list{"02:00-06:00"}, nil, "2026-10-25T02:00:00+02:00", false, "2026-10-25T02:00:00+02:00", "2026-10-25T06:00:00+01:00", "within the denied 02:00-06:00 (Europe/Berlin)"},
		{"Berlin, autumn: ends where the hour ends", "Europe/Berlin", list{"01:00-03:00"}, nil, "2026-10-25T02:30:00+01:00", false, "2026-10-25T01:00:00+02:00", "2026-10-25T03:00:00+01:00", "within the denied 01:00-03:00 (Europe/Berlin)"},

		{"Kolkata", "Asia/Kolkata", list{"03:00-06:00"}, nil, "2026-11-30T04:00:00+05:30", false, "2026-11-30T03:00:00+05:30", "2026-11-30T06:00:00+05:30", "within the denied 03:00-06:00 (Asia/Kolkata)"},
		// Lord Howe: half an hour. 2026-04-05 01:30 to 02:00 comes twice, 2026-10-04 02:00 to 02:30 is skipped.
		{"Lord Howe, autumn: denied", "Australia/Lord_Howe", list{"00:00-01:45"}, nil, "2026-04-05T01:50:00+11:00", false, "2026-04-05T00:00:00+11:00", "2026-04-05T01:45:00+10:30", "within the denied 00:00-01:45 (Australia/Lord_Howe)"},
		{"Lord Howe, autumn: not in the half", "Australia/Lord_Howe", list{"00:00-01:15"}, nil, "2026-04-05T01:00:00+11:00", false, "2026-04-05T00:00:00+11:00", "2026-04-05T01:15:00+11:00", "within the denied 00:00-01:15 (Australia/Lord_Howe)"},
		{"Lord Howe, spring", "Australia/Lord_Howe", list{"02:15-04:00"}, nil, "2026-10-04T02:30:00+11:00", false, "2026-10-04T02:30:00+11:00", "2026-10-04T04:00:00+11:00", "within the denied 02:15-04:00 (Australia/Lord_Howe)"},
		// Havana changes at midnight: 2026-03-08 00:00 to 01:00 is skipped, 2026-11-01 00:00 to 01:00 comes twice.
		{"Havana, spring", "America/Havana", nil, list{"Sun 00:00-12:00"}, "2026-03-08T01:00:00-04:00", true, "2026-03-08T01:00:00-04:00", "2026-03-08T12:00:00-04:00", "within the allowed Sun 00:00-12:00 (America/Havana)"},
		{"Havana, autumn", "America/Havana", list{"Sat 00:00-24:00"}, nil, "2026-11-01T00:30:00-04:00", false, "2026-10-31T00:00:00-04:00", "2026-11-01T00:00:00-05:00", "within the denied Sat 00:00-24:00 (America/Havana)"},
		// Samoa had no 2011-12-30, a Friday.
		{"Samoa", "Pacific/Apia", list{"Fri 09:00-17:00"}, nil, "2011-12-30T12:00:00Z", true, "2011-12-23T17:00:00-10:00", "2012-01-06T09:00:00+14:00", "outside of the denied Fri 09:00-17:00 (Pacific/Apia)"},
		{"Samoa, over it", "Pacific/Apia", list{"Thu 12:00-Sat 12:00"}, nil, "2011-12-30T10:00:00Z", false, "2011-12-29T12:00:00-10:00", "2011-12-31T12:00:00+14:00", "within the denied Thu 12:00-Sat 12:00 (Pacific/Apia)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := window.Schedule{Deny: spans(t, tt.deny...), Allow: spans(t, tt.allow...), Location: zone(t, tt.zone)}
			got := s.At(moment(t, tt.at))
			if got.Open != tt.open {
				t.Errorf("open is %v", got.Open)
			}
			if diff := cmp.Diff(tt.reason, got.Reason); diff != "" {
				t.Errorf("reason (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.since, got.Since.Format(time.RFC3339Nano)); diff != "" {
				t.Errorf("since (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.until, got.Until.Format(time.RFC3339Nano)); diff != "" {
				t.Errorf("until (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAtWithoutZone(t *testing.T) {
	s := window.Schedule{Deny: spans(t, "03:00-06:00")}
	got := s.At(moment(t, "2026-11-30T05:00:00+01:00"))
	if got.Open || !got.Until.Equal(moment(t, "2026-11-30T06:00:00Z")) || got.Span != s.Deny[0] {
		t.Errorf("%+v", got)
	}
	if got := (window.Schedule{Deny: []window.Span{{}}}).At(got.Until); !got.Open || !got.Until.IsZero() {
		t.Errorf("no span holds: %+v", got)
	}
}

func TestZone(t *testing.T) {
	for _, tt := range []struct{ name, want string }{
		{"America/Chicago", ""},
		{"UTC", ""},
		{"", "a time zone is missing; write a name of the IANA database, such as Europe/Berlin or UTC"},
		{"Local", `the time zone "Local" is another one on every machine; write a name of the IANA database, such as Europe/Berlin or UTC`},
		{"Chicago", `unknown time zone "Chicago"; write a name of the IANA database, such as Europe/Berlin or UTC`},
		{"../../etc/passwd", `unknown time zone "../../etc/passwd"; write a name of the IANA database, such as Europe/Berlin or UTC`},
		{"UTC+1", `unknown time zone "UTC+1"; write a name of the IANA database, such as Europe/Berlin or UTC`},
	} {
		z, err := window.Zone(tt.name)
		switch {
		case err == nil && tt.want == "" && z.String() == tt.name:
		case err == nil || err.Error() != tt.want:
			t.Errorf("%q: %v, %v", tt.name, z, err)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	s := window.Schedule{Allow: spans(b, "Mon-Fri 09:00-17:00", "Sat 10:00-12:00"), Location: zone(b, "Europe/Berlin")}
	at := moment(b, "2026-11-30T12:00:00Z")
	for b.Loop() {
		if !s.At(at).Open {
			b.Fatal("closed")
		}
	}
}

// BenchmarkAtNever looks as far as there is to look.
func BenchmarkAtNever(b *testing.B) {
	s := window.Schedule{Deny: spans(b, "00:00-24:00"), Location: zone(b, "Europe/Berlin")}
	at := moment(b, "2026-11-30T12:00:00Z")
	for b.Loop() {
		if s.At(at).Open {
			b.Fatal("open")
		}
	}
}
