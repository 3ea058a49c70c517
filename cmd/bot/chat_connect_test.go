package main

import (
	"context"
	"log/slog"
	"testing"

	"signalbox/internal/bus"
)

// TestSyncStore: a position is that of one account on one homeserver.
func TestSyncStore(t *testing.T) {
	b, err := bus.Open(t.Context(), bus.Config{Embedded: bus.Embedded{Dir: t.TempDir()}}, slog.New(slog.DiscardHandler), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close(context.Background()) })
	bucket, err := bus.OpenBucket[string](t.Context(), b, bucketMatrix)
	if err != nil {
		t.Fatal(err)
	}
	const here, account = "https://matrix.example.org", "@signalbox:example.org"
	s := syncStore{bucket}
	if err := s.Save(t.Context(), here, account, "s72594_4483_1934"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ homeserver, account, want string }{
		{here, account, "s72594_4483_1934"},
		{here, "@other:example.org", ""},
		{"https://matrix.example.com", account, ""},
	} {
		if got, err := s.Load(t.Context(), tc.homeserver, tc.account); got != tc.want || err != nil {
			t.Errorf("for %s on %s: %q, %v; want %q", tc.account, tc.homeserver, got, err, tc.want)
		}
	}
}
