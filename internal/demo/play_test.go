package demo

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"
)

// TestWithoutSignalbox plays where nobody posts anything: what is missing is an
// error that names it.
func TestWithoutSignalbox(t *testing.T) {
	w, err := NewWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	var out bytes.Buffer
	o := Options{Out: &out, Deadline: 50 * time.Millisecond, Ready: func(context.Context) error { return nil }}

	err = Play(t.Context(), w, o)
	if err == nil || err.Error() != "signalbox has not registered its webhook within 50ms" {
		t.Errorf("error = %v", err)
	}

	o.Width = 100
	p := &player{Options: o, world: w, eye: newEye(w), screen: &screen{out: &out, width: o.Width}}
	defer p.eye.http.CloseIdleConnections()
	err = p.play(t.Context(), p.steps()[0])
	if !late(err) {
		t.Fatalf("error = %v, want one of what is late", err)
	}
	for _, text := range []string{
		"not so within 50ms", `there is no status "signalbox / preconditions (main)"`,
		`the comment does not say "no matches for kind`, "there are 0 comments of signalbox, not one",
	} {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error lacks %q: %v", text, err)
		}
	}
	if shown := out.String(); !strings.Contains(shown, "renamed   platform-config/storage-profiles.yaml → platform-config-cdi/storage-profiles.yaml") {
		t.Errorf("the change is not shown:\n%s", shown)
	}
}
