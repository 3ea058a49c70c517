package matrix

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// owners is a store that sends for whom it was asked.
type owners chan [2]string

func (o owners) Load(_ context.Context, homeserver, account string) (string, error) {
	o <- [2]string{homeserver, account}
	return "", nil
}

func (o owners) Save(_ context.Context, homeserver, account, _ string) error {
	select {
	case o <- [2]string{homeserver, account}:
	default:
	}
	return nil
}

// TestWhosePosition: the account is the one that the homeserver names, also where none
// is configured.
func TestWhosePosition(t *testing.T) {
	_, b, _ := world(t)
	b.config.UserID = ""
	asked := make(owners, 2)
	a, err := New(b.config, asked, newInbox(), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	a.limits = quick
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- a.Run(ctx) }()
	want := [2]string{b.config.Homeserver, b.bot.user}
	for _, call := range []string{"loaded", "saved"} {
		if diff := cmp.Diff(want, <-asked); diff != "" {
			t.Errorf("%s for (-want +got):\n%s", call, diff)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
