package renovate

import (
	"cmp"
	"fmt"
	"strings"
)

// Mode is what a run of Renovate may do.
type Mode string

// The modes. Lookup reads the files and looks up versions, extract only reads
// the files, and full does all but write.
const (
	ModeUnknown Mode = "unknown"
	ModeLive    Mode = "live"
	// ModeDryRun is a dry run of which the kind is not known.
	ModeDryRun  Mode = "dry-run"
	ModeFull    Mode = "full"
	ModeLookup  Mode = "lookup"
	ModeExtract Mode = "extract"
)

// DryRun says whether the mode is a dry run of some kind. Unknown is none.
func (m Mode) DryRun() bool {
	switch m {
	case ModeDryRun, ModeFull, ModeLookup, ModeExtract:
		return true
	default:
		return false
	}
}

// rank orders the modes by how much must be feared of them.
func (m Mode) rank() int {
	switch m {
	case ModeExtract:
		return 0
	case ModeLookup:
		return 1
	case ModeFull:
		return 2
	case ModeDryRun:
		return 3
	case ModeLive:
		return 5
	default:
		return 4
	}
}

// Worst returns the mode of which most must be feared: live, then unknown, then
// the dry runs. Of none it is [ModeUnknown].
func Worst(modes ...Mode) Mode {
	if len(modes) == 0 {
		return ModeUnknown
	}
	worst := modes[0]
	for _, m := range modes[1:] {
		if cmp.Compare(m.rank(), worst.rank()) > 0 {
			worst = m
		}
	}
	return worst
}

// ParseDryRun says what Renovate makes of a value of RENOVATE_DRY_RUN, or of
// --dry-run= on its command line. The note is for a person: what is odd about
// the value, or empty.
//
// An empty value is a live run: Renovate takes it as not given.
func ParseDryRun(value string) (mode Mode, note string) {
	switch value {
	case "":
		return ModeLive, "an empty value is a live run"
	case "full", "lookup", "extract":
		return Mode(value), ""
	case "true":
		return ModeFull, "Renovate takes true as full, and warns"
	case "false", "null":
		return ModeLive, value + " is a live run"
	}
	note = fmt.Sprintf("%q is not a value that Renovate knows; use full, lookup or extract", clean(value))
	switch strings.ToLower(strings.TrimSpace(value)) {
	case "full", "lookup", "extract", "true":
		note += ", in lower case and without spaces"
	}
	return ModeUnknown, note
}
