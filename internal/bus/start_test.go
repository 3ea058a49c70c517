package bus

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

func TestServersThatJustStart(t *testing.T) {
	t.Parallel()
	offline := &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement, peer offline"}
	tries := 0
	err := whileStarting(deadline(t), func() error {
		if tries++; tries < 3 {
			return streamError("make", "EVENTS", offline)
		}
		return nil
	})
	if err != nil || tries != 3 {
		t.Errorf("%d tries, %v", tries, err)
	}
	few := &jetstream.APIError{Code: 400, ErrorCode: 10005, Description: "no suitable peers for placement"}
	if err := whileStarting(deadline(t), func() error { return few }); !errors.Is(err, few) {
		t.Errorf("a cluster that is too small gives %v", err)
	}
}
