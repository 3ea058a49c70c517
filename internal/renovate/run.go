package renovate

import (
	"encoding/json"
	"slices"
	"strings"
)

// run gathers one run.
type run struct {
	Run
	process, context string
	repositories     []*repository
	// open is the repository that began last.
	open *repository
	// full says that a repository was dropped.
	full bool
	// wrote says that a live message named no repository.
	wrote *Evidence
	// cli and env are the setting in the parts of the configuration.
	cli, env *setting
	combined bool
}

// setting is dryRun in a part of the configuration.
type setting struct {
	given bool
	value string
	line  Evidence
}

// same says whether a message is of the same process.
func (u *run) same(r *record) bool {
	return u.Format == r.format && u.process == r.process
}

// takes says whether a message belongs to this run: it is of the same process,
// and does not begin another run. A process may be an old one's number again,
// and the text form does not tell processes apart.
func (u *run) takes(r *record) bool {
	if !u.same(r) {
		return false
	}
	empty := len(u.repositories) == 0 && u.Config == nil && u.cli == nil && u.env == nil && len(u.Failures) == 0 && !u.Ended
	switch {
	case empty:
		// Renovate may take its context from its configuration, after the first lines.
		u.context = r.context
		return true
	case u.context != r.context, beginsRun(r.message):
		return false
	case u.Ended:
		return strings.HasPrefix(r.message, exitingNonZero)
	}
	return true
}

// note takes what every message of a run has.
func (u *run) note(r *record) {
	if !r.time.IsZero() {
		if u.Started.IsZero() {
			u.Started = r.time
		}
		u.Finished = r.time
	}
	if v := r.text("renovateVersion"); v != "" && u.Version == "" && r.message == repositoryStarted {
		u.Version = clean(v)
	}
	if r.level == levelWarn {
		u.Warnings++
		if len(u.FirstWarnings) < maxEvidence {
			u.FirstWarnings = append(u.FirstWarnings, evidence(r))
		}
	}
}

// global takes a message that names no repository.
func (u *run) global(r *record) {
	switch {
	case r.level >= levelError:
		u.Failures = addFailure(u.Failures, r)
	case strings.HasPrefix(r.message, ranAtLevel):
		u.Ended = true
	case strings.HasPrefix(r.message, exitingNonZero):
		u.Ended, u.Failed = true, true
	case isWrite(r.message, r.text("branch"), ""):
		if u.wrote == nil {
			e := evidence(r)
			u.wrote = &e
		}
	case r.level == levelDebug:
		u.config(r)
	}
}

// repositoryOf returns the repository of a message, or nil where there are too
// many. In the text form the name stands behind what the message quotes, so a
// name other than that of the repository in hand is not believed.
func (u *run) repositoryOf(name string, r *record) *repository {
	begins := r.message == repositoryStarted
	if !begins {
		if r.format == formatText && u.open != nil {
			return u.open
		}
		for _, repository := range slices.Backward(u.repositories) {
			if repository.is(name) {
				return repository
			}
		}
	}
	if len(u.repositories) == maxRepositories {
		u.full = true
		return nil
	}
	one := &repository{format: r.format, name: name[:min(len(name), maxText)]}
	one.Name = clean(name)
	u.repositories = append(u.repositories, one)
	if begins {
		u.open = one
	}
	return one
}

// config takes the configuration that Renovate logs at the level debug. The
// combined one is what counts; without it, the command line goes before the
// environment.
func (u *run) config(r *record) {
	switch r.message {
	case combinedConfig, cliConfig, envConfig:
	default:
		return
	}
	var config struct {
		DryRun       json.RawMessage
		Platform     string
		Repositories []json.RawMessage
	}
	var exact map[string]json.RawMessage
	if !r.decode("config", &exact) {
		return
	}
	config.DryRun = exact["dryRun"]
	_ = json.Unmarshal(exact["platform"], &config.Platform)
	_ = json.Unmarshal(exact["repositories"], &config.Repositories)
	s := &setting{line: Evidence{Line: r.line, Text: clean(r.message + ": dryRun " + orNot(config.DryRun))}}
	var value *string
	if config.DryRun != nil {
		if json.Unmarshal(config.DryRun, &value) != nil {
			return
		}
		s.given = true
		if value != nil {
			s.value = *value
		}
	}
	switch r.message {
	case cliConfig:
		u.cli = s
	case envConfig:
		u.env = s
	default:
		u.combined = true
		u.setConfig(s, config.Platform, config.Repositories)
		return
	}
	switch {
	case u.combined:
	case u.cli != nil && u.cli.given:
		u.setConfig(u.cli, "", nil)
	case u.cli != nil && u.env != nil && u.env.given:
		u.setConfig(u.env, "", nil)
	}
}

func orNot(raw json.RawMessage) string {
	if raw == nil {
		return "is not given"
	}
	return string(raw)
}

func (u *run) setConfig(s *setting, platform string, repositories []json.RawMessage) {
	c := &Config{Line: s.line}
	c.Mode, c.Note = ParseDryRun(s.value)
	if !s.given {
		c.Note = "dryRun is not given, which is a live run"
	}
	for _, raw := range repositories {
		var own map[string]json.RawMessage
		if json.Unmarshal(raw, &own) == nil && own["dryRun"] != nil {
			c.Mode, c.Note = ModeUnknown, "a repository of the configuration has a dryRun of its own"
		}
	}
	if platform == "local" && c.Mode != ModeUnknown && c.Mode != ModeLookup {
		// On a local folder Renovate 39 always looks up, and 44 extracts if told so.
		c.Mode, c.Note = ModeDryRun, "the platform local is always a dry run"
	}
	u.Config = c
}

func evidence(r *record) Evidence {
	text := r.message
	if detail := detailOf(r); detail != "" {
		text += ": " + detail
	}
	return Evidence{Line: r.line, Text: clean(text)}
}

// detailOf returns what an error or warning gives as its reason.
func detailOf(r *record) string {
	if s := r.text("errorMessage"); s != "" {
		return s
	}
	var err struct{ Message string }
	if r.decode("err", &err) {
		first, _, _ := strings.Cut(err.Message, "\n")
		return first
	}
	return ""
}

func addFailure(failures []Failure, r *record) []Failure {
	if len(failures) == maxFailures {
		return failures
	}
	return append(failures, Failure{Fatal: r.level >= levelFatal, Message: clean(r.message), Detail: clean(detailOf(r)), Line: r.line})
}
