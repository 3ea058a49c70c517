package pull

// Hook is a webhook of a repository. Whether its deliveries arrive is not known
// to the API of the forge.
type Hook struct {
	ID int64 `json:"id"`
	// URL is where deliveries go, as it is registered.
	URL string `json:"url"`
	// Active is false for a webhook that is switched off.
	Active bool `json:"active"`
	// Faults says what an intake of signalbox would miss with these settings, in
	// words; empty where it misses nothing.
	Faults []string `json:"faults,omitempty"`
}
