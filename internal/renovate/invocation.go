package renovate

import "strings"

// invocation is a command of a script that starts Renovate.
type invocation struct {
	how string
	sources
	nested bool
	// inherits says that the setting is that of the script's environment, as it
	// was after so many changes.
	inherits bool
	changes  int
}

// add notes an invocation. engine are the options of docker run, and nil means
// that the environment is that of the script.
func (s *script) add(how string, args, engine []word, nested bool) {
	i := invocation{how: clean(how), nested: nested}
	if engine == nil {
		i.inherit(s.exported)
	} else {
		s.container(&i, engine)
	}
	texts, unknown := s.arguments(args)
	for n, text := range texts {
		switch {
		case text == "--version", text == "-v", text == "--help", text == "-h":
			return
		case text == "--dry-run":
			// Renovate takes it for --dry-run=true, and a word behind it for a repository.
			v := known("true")
			i.flag, i.flagAt = &v, "--dry-run"
			if n+1 < len(texts) && !strings.HasPrefix(texts[n+1], "-") {
				i.flagAt = "--dry-run (" + clean(texts[n+1]) + " behind it counts as a repository)"
			}
		case strings.HasPrefix(text, "--dry-run="):
			v := known(strings.TrimPrefix(text, "--dry-run="))
			i.flag, i.flagAt = &v, "--dry-run"
		case strings.HasPrefix(text, "--force="), text == "--force", strings.HasPrefix(text, "--no-dry-run"):
			i.force = clean(text) + " may override what is set"
		}
	}
	if unknown.isUnknown() {
		i.flag, i.flagAt = &unknown, "--dry-run"
	}
	i.changes = s.changes
	s.found = append(s.found, i)
}

// inherit takes the setting from an environment.
func (i *invocation) inherit(env environment) {
	i.inherits = true
	if v, ok := env(dryRunEnv); ok {
		i.env, i.envAt = &v, dryRunEnv
	}
	i.doubt = doubtOf(func(name string) bool { _, ok := env(name); return ok })
	if v, ok := env(forceEnv); ok && !v.lost && (v.isUnknown() || v.text() != "") {
		i.force = forceEnv + " may override what is set"
	}
}

// arguments returns the words as Renovate gets them. unknown is set if one that
// cannot be told is the setting, or may hold it.
func (s *script) arguments(args []word) (texts []string, unknown value) {
	for _, a := range args {
		text, all := a.plain()
		v := s.resolve(a)
		switch {
		case !v.isUnknown() && all:
			texts = append(texts, v.text())
		case !v.isUnknown():
			texts = append(texts, strings.Fields(v.text())...)
		case strings.HasPrefix(text, "--dry-run"):
			unknown = v
		case v.inert || strings.HasPrefix(text, "-"):
		default:
			unknown = notKnown("an argument may hold it: " + v.unknown)
		}
	}
	return texts, unknown
}
