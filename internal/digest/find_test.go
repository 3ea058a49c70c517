package digest_test

import (
	"testing"
	"time"

	"signalbox/internal/digest"
	"signalbox/internal/fact"
)

// A cluster from which nothing was heard while signalbox did not run is not silent for
// as long as that.
func TestSilenceCountsFromTheStart(t *testing.T) {
	for name, tt := range map[string]struct {
		began, heard, noticed time.Time
		severity              digest.Severity
		since                 time.Time
	}{
		"it fell silent":         {began: now.Add(-2 * time.Hour), heard: since, noticed: since.Add(time.Minute), severity: digest.Broken, since: since},
		"another listened":       {heard: since, noticed: since.Add(time.Minute), severity: digest.Broken, since: since},
		"just started":           {began: now.Add(-6 * time.Second), heard: since, noticed: now.Add(-6 * time.Second), severity: digest.Unclear, since: now.Add(-6 * time.Second)},
		"started, and not heard": {began: now.Add(-3 * time.Minute), heard: since, noticed: now.Add(-3 * time.Minute), severity: digest.Broken, since: now.Add(-3 * time.Minute)},
		"silent before":          {began: now.Add(-6 * time.Second), heard: since, noticed: since.Add(time.Minute), severity: digest.Broken, since: since},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld("prod")
			w.Began, w.Sections = tt.began, []digest.Section{digest.Gate}
			w.put(fact.Fact{Key: fact.HeartbeatKey("prod"), SeenAt: tt.noticed, Heartbeat: &fact.Heartbeat{Silent: true, LastHeard: tt.heard}})
			res := w.find()
			if len(res.Findings) != 1 || res.Findings[0].Severity != tt.severity || !res.Findings[0].Since.Equal(tt.since) {
				t.Fatalf("found %+v", res.Findings)
			}
			_, batch, _ := digest.State{}.Next(res, digest.Rule{After: 5 * time.Minute}, now)
			if late := tt.since.Equal(since); (batch != nil) != late {
				t.Errorf("announced %+v", batch)
			}
		})
	}
}
