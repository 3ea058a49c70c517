package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSplit(t *testing.T) {
	list := func() ([]string, error) {
		return []string{"m/cmd/bot", "m/internal/render", "m/internal/web"}, nil
	}
	tests := map[string]struct {
		args []string
		want [][]string
		fail bool
	}{
		"one run": {[]string{"-race", "./..."}, [][]string{{"-race", "./..."}}, false},
		"two runs": {
			[]string{"-alone", "internal/render", "-tags", "x", "-race", "./..."},
			[][]string{{"-tags", "x", "m/internal/render"}, {"-tags", "x", "-race", "m/cmd/bot", "m/internal/web"}},
			false,
		},
		"no such package": {[]string{"-alone", "internal/rendr", "-race", "./..."}, nil, true},
		"not all":         {[]string{"-alone", "internal/render", "-race", "./internal/render"}, nil, true},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := split(tt.args, list)
			if diff := cmp.Diff(tt.want, got); diff != "" || (err != nil) != tt.fail {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
}
