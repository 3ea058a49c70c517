//go:build e2e && goolm

package matrix

import (
	"testing"

	"signalbox/internal/chat/conformance"
)

// TestDendriteEncrypted runs the suite in rooms that are encrypted, with people who
// have keys of their own.
func TestDendriteEncrypted(t *testing.T) {
	conformance.Run(t, func(t *testing.T) conformance.Backend { return newBackend(t, realSite(t), true) })
}
