package renovate

import (
	"cmp"
	"slices"
	"strings"
)

// Configuration is how Renovate is started, as far as a file or an object tells.
type Configuration struct {
	// Triggers are what starts it, in the order of the file.
	Triggers []Trigger
	// Inputs are those of a dispatch by hand.
	Inputs []Input
	// Places are where Renovate is started. Empty means that no place was found.
	Places []Place
	// Secrets and Variables are the names that are used, sorted.
	Secrets, Variables []string
}

// Trigger is one kind of event, and what Renovate does on it.
type Trigger struct {
	// Event is the name of the event: "schedule", "workflow_dispatch", "push".
	Event string
	// Crons are the times of a schedule.
	Crons []string
	Setting
}

// Setting is what Renovate does on an event.
type Setting struct {
	// Mode is the worst of all places that may run.
	Mode Mode
	// Why says where the mode comes from, or why it is unknown.
	Why string
	// Runs says whether Renovate is started at all: a condition may skip it.
	Runs Runs
}

// Runs says whether something runs.
type Runs string

// What is known of it. Maybe is what a condition decides that cannot be told
// from the file.
const (
	RunsYes   Runs = "yes"
	RunsMaybe Runs = "maybe"
	RunsNo    Runs = "no"
)

// Input is an input of a dispatch by hand.
type Input struct {
	Name, Type string
	// Default is the value if none is given. HasDefault says that there is one.
	Default    string
	HasDefault bool
	// DryRun says that it decides about the dry run, or may: the setting, an
	// argument of the command line, or a condition is made from it.
	DryRun bool
}

// Place is a step, or a container, that starts Renovate.
type Place struct {
	// Job is the id of the job, and Step the id, the name or the number of the
	// step, counted from 1.
	Job, Step string
	Line      int
	// How is what starts it, such as "renovatebot/github-action@v41".
	How string
	// Conditions are those that can skip it, as they are written.
	Conditions []string
}

// OnSchedule returns what Renovate does by the clock, and false where nothing
// starts it by the clock.
func (c Configuration) OnSchedule() (Setting, bool) { return c.On("schedule") }

// OnDispatch returns what Renovate does when it is started by hand and nothing
// is filled in, and false where it cannot be started by hand.
func (c Configuration) OnDispatch() (Setting, bool) { return c.On("workflow_dispatch") }

// On returns what Renovate does on an event, and false if the event starts
// nothing.
func (c Configuration) On(event string) (Setting, bool) {
	for _, t := range c.Triggers {
		if t.Event == event {
			return t.Setting, true
		}
	}
	return Setting{}, false
}

// given is what is known of the setting in one place, on one event.
type given struct {
	mode Mode
	why  string
	runs Runs
}

// together makes the setting of an event from those of its places.
func together(list []given) Setting {
	running := slices.DeleteFunc(slices.Clone(list), func(g given) bool { return g.runs == RunsNo })
	if len(list) == 0 {
		return Setting{Mode: ModeUnknown, Why: "no step that starts Renovate was found", Runs: RunsMaybe}
	}
	if len(running) == 0 {
		return Setting{Mode: ModeUnknown, Why: "Renovate is not started: " + list[0].why, Runs: RunsNo}
	}
	mode, why := worst(running, func(g given) (Mode, string) { return g.mode, g.why })
	s := Setting{Mode: mode, Why: why, Runs: RunsMaybe}
	if slices.ContainsFunc(running, func(g given) bool { return g.runs == RunsYes }) {
		s.Runs = RunsYes
	}
	return s
}

// sources are where Renovate takes the setting from, and what they give; nil is
// not given.
type sources struct {
	// flag is of the command line, and goes before the environment.
	flag, env *value
	flagAt    string
	envAt     string
	// doubt says why more than these may count, such as a file, or is empty.
	doubt string
	// force says what may override all of these, or is empty.
	force string
}

// mode says what Renovate makes of its sources.
func (s sources) mode() (Mode, string) {
	if s.force != "" {
		return ModeUnknown, s.force
	}
	for _, one := range []struct {
		v  *value
		at string
	}{{s.flag, s.flagAt}, {s.env, s.envAt}} {
		switch {
		case one.v == nil:
		case one.v.isUnknown():
			return ModeUnknown, one.at + ": " + one.v.unknown
		default:
			text := one.v.text()
			mode, note := ParseDryRun(text)
			if one.v == s.env && text == "" && s.doubt != "" {
				return ModeUnknown, one.at + " is empty, and " + s.doubt
			}
			why := one.at + " is " + cmp.Or(clean(text), "empty")
			if note != "" {
				why += "; " + note
			}
			return mode, why
		}
	}
	if s.doubt != "" {
		return ModeUnknown, dryRunEnv + " is not given, and " + s.doubt
	}
	return ModeLive, dryRunEnv + " is not given, which is a live run"
}

// Names in the environment. A configuration of Renovate's own may have dryRun
// too.
const (
	dryRunEnv  = "RENOVATE_DRY_RUN"
	configEnv  = "RENOVATE_CONFIG"
	configFile = "RENOVATE_CONFIG_FILE"
	envPrefix  = "ENV_PREFIX"
	forceEnv   = "RENOVATE_FORCE"
)

// doubtOf says which variable may bring a setting from elsewhere.
func doubtOf(has func(name string) bool) string {
	var found []string
	for _, name := range []string{configEnv, configFile, envPrefix} {
		if has(name) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, " and ") + " may give another dryRun"
}
