package renovate

import (
	"fmt"
	"maps"
	"slices"
)

// judge sets the modes of a report from what was gathered.
func (a *analyzer) judge(report *Report) {
	for _, u := range a.runs {
		u.judge(report.Cut)
		report.Runs = append(report.Runs, u.Run)
	}
	report.Mode, report.Why = worst(report.Runs, func(r Run) (Mode, string) { return r.Mode, r.Why })
	switch {
	case len(a.runs) == 0 && report.Cut:
		report.Why = "the log has no line of Renovate as far as it was read"
	case len(a.runs) == 0:
		report.Why = "the log has no line of Renovate"
	case a.wroteDropped:
		report.Mode, report.Why = ModeLive, "the log has more runs or repositories than are kept, and one of those left out wrote"
	case a.dropped > 0 && report.Mode != ModeLive:
		report.Mode, report.Why = ModeUnknown, "the log has more runs or repositories than are kept"
	}
}

// worst returns the worst mode of a list with the reason that goes with it.
func worst[T any](list []T, of func(T) (Mode, string)) (Mode, string) {
	if len(list) == 0 {
		return ModeUnknown, ""
	}
	mode, why := of(list[0])
	for _, item := range list[1:] {
		if m, w := of(item); m.rank() > mode.rank() {
			mode, why = m, w
		}
	}
	return mode, why
}

func (u *run) judge(cut bool) {
	for _, p := range u.repositories {
		p.Mode, p.Why = p.judge(u.Config, cut)
		u.Repositories = append(u.Repositories, p.Repository)
	}
	u.Mode, u.Why = worst(u.Repositories, func(r Repository) (Mode, string) { return r.Mode, r.Name + ": " + r.Why })
	switch {
	case u.wrote != nil:
		u.Mode, u.Why = ModeLive, fmt.Sprintf("line %d: %s", u.wrote.Line, u.wrote.Text)
	case len(u.repositories) == 0 && len(u.Failures) > 0:
		f := u.Failures[0]
		u.Why = clean(fmt.Sprintf("the run failed before any repository: %s: %s", f.Message, f.Detail))
	case len(u.repositories) == 0:
		u.Why = "the log tells of no repository"
	case u.full && u.Mode != ModeLive:
		u.Mode, u.Why = ModeUnknown, "the run has more repositories than are kept"
	}
}

// judge says which mode is proven for a repository.
func (p *repository) judge(config *Config, cut bool) (Mode, string) {
	if p.format == formatText && !p.debug {
		// The text form does not tell processes apart. A run that logs its
		// configuration logs more at the level debug, in each repository.
		config = nil
	}
	switch {
	case p.wrote:
		return ModeLive, fmt.Sprintf("line %d: %s", p.Disproof[0].Line, p.Disproof[0].Text)
	case cut:
		return ModeUnknown, "the log was not read to its end"
	case !p.Begun:
		return ModeUnknown, "the log does not have the beginning of the run"
	}
	lines := p.byLines()
	byLine := func() string { return fmt.Sprintf("line %d: %s", p.Proof[0].Line, p.Proof[0].Text) }
	configured := ModeUnknown
	if config != nil {
		configured = config.Mode
	}
	switch {
	case lines == ModeUnknown && config == nil:
		return ModeUnknown, "no line proves a dry run, and none disproves it"
	case lines == ModeUnknown:
		why := fmt.Sprintf("line %d: %s", config.Line.Line, config.Line.Text)
		if config.Mode == ModeUnknown {
			why += "; " + config.Note
		}
		return config.Mode, why
	case configured == ModeUnknown || configured == lines:
		return lines, byLine()
	case configured == ModeLive:
		return ModeUnknown, fmt.Sprintf("line %d says dry run, but line %d has %s", p.Proof[0].Line, config.Line.Line, config.Line.Text)
	case lines == ModeDryRun:
		return configured, byLine()
	case configured == ModeDryRun:
		return lines, byLine()
	default:
		return ModeDryRun, byLine()
	}
}

// byLines returns the mode that the lines prove together.
func (p *repository) byLines() Mode {
	kinds := slices.DeleteFunc(slices.Sorted(maps.Keys(p.proven)), func(m Mode) bool { return m == ModeDryRun })
	switch {
	case len(p.proven) == 0:
		return ModeUnknown
	case len(kinds) == 1:
		return kinds[0]
	default:
		return ModeDryRun
	}
}
