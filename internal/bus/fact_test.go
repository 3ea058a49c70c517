package bus

import (
	"time"

	"signalbox/internal/fact"
)

// someFact is a Kustomization at a version that applied something.
func someFact(name, version, applied string) fact.Fact {
	return fact.Fact{
		Key: fact.Kube("prod", "Kustomization", "flux-system", name), UID: "u", Version: version,
		SeenAt: time.Now(), Flux: &fact.Flux{Applied: applied},
	}
}
