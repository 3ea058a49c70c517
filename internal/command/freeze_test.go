package command_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"signalbox/internal/command"
)

func TestFreeze(t *testing.T) {
	const (
		how     = "write /freeze 2h REASON, with a time such as 30m, 2h, 1h30m or 3d, or /freeze until 2026-12-01T08:00Z REASON"
		unclear = "freeze PROBLEM it does not say for how long: " + how
		noTime  = "freeze PROBLEM after until comes a time with its zone, such as 2026-12-01T08:00Z or 2026-12-01T09:00+01:00"
		tooLong = "freeze PROBLEM a freeze lasts 14 days at most"
	)
	tests := []struct{ name, in, want string }{
		{"minutes", "30m", "freeze lasts=30m0s"},
		{"hours and a reason", "2h etcd is being restored", "freeze lasts=2h0m0s text=etcd is being restored"},
		{"both", "1h30m", "freeze lasts=1h30m0s"},
		{"days", "3d", "freeze lasts=72h0m0s"},
		{"all three, upper case, after a tab", "1D2H3M\tnow", "freeze lasts=26h3m0s text=now"},
		{"the most", "14d", "freeze lasts=336h0m0s"},
		{"the most in minutes", "20160m", "freeze lasts=336h0m0s"},
		{"a minute too much", "14d1m", tooLong},
		{"far too much", "9999d99999h999999m", tooLong},
		{"too many digits", "99999999999999999999d", unclear},
		{"without an end", "", "freeze PROBLEM a freeze has an end: " + how},
		{"only a reason", "etcd is being restored", unclear},
		{"for nothing", "0h", unclear},
		{"less than nothing", "-2h", unclear},
		{"without a unit", "90 minutes", unclear},
		{"seconds", "30s", unclear},
		{"a part of an hour", "1.5h", unclear},
		{"in another order", "30m1h", unclear},
		{"other digits", "２h", unclear},
		{"until a time", "until 2026-12-01T08:00Z etcd", "freeze until=2026-12-01T08:00:00Z text=etcd"},
		{"until a time of another zone, with seconds", "UNTIL 2026-12-01t09:00:30+01:00", "freeze until=2026-12-01T08:00:30Z"},
		{"until nothing", "until", noTime},
		{"until a day", "until 2026-12-01", noTime},
		{"until a time without a zone", "until 2026-12-01T08:00", noTime},
		{"until Monday", "until Monday", noTime},
		{"with a long reason", "2h " + strings.Repeat("x", 1001), "freeze lasts=2h0m0s PROBLEM the reason is longer than 1000 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, said(command.Find("/freeze "+tt.in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
