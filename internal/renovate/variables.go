package renovate

import (
	"maps"
	"regexp"
	"strings"
)

// variables are what a script has done to the variables of its environment.
type variables struct {
	// set are those that it sets; an unset one is not ok.
	set map[string]assigned
	// lost says what may have set any other anew, or is empty.
	lost string
	// allexport says that it exports what it assigns.
	allexport bool
	// changes counts what it has done to the settings.
	changes int
}

type assigned struct {
	v  value
	ok bool
	// exported says that a command gets it.
	exported bool
}

func newScript(env environment) *script {
	return &script{env: env, variables: variables{set: map[string]assigned{}}}
}

// all returns what was found. What stands in a loop or a function may be carried
// out after what stands behind it.
func (s *script) all() []invocation {
	for i := range s.found {
		f := &s.found[i]
		if f.nested && f.inherits && f.changes < s.changes {
			unknown := notKnown("a script sets it anew behind the command, which may run again or later")
			f.env, f.envAt = &unknown, dryRunEnv
		}
	}
	return s.found
}

// lookup answers a variable of the shell.
func (s *script) lookup(name string) (value, bool) {
	if strings.HasPrefix(name, marker) {
		return s.env(name)
	}
	if a, ok := s.set[name]; ok {
		return a.v, a.ok
	}
	if s.lost != "" {
		return value{unknown: s.lost, lost: true}, true
	}
	return s.env(name)
}

// exported answers a variable of the environment that a command gets.
func (s *script) exported(name string) (value, bool) {
	if a, ok := s.set[name]; ok && !a.exported {
		return value{}, false
	}
	return s.lookup(name)
}

// put sets a variable.
func (s *script) put(name string, a assigned) {
	s.set[name] = a
	switch name {
	case dryRunEnv, forceEnv, configEnv, configFile, envPrefix:
		s.changes++
	}
}

// lose notes that any variable may be set anew.
func (s *script) lose(why string) {
	s.set, s.lost = map[string]assigned{}, why
	s.changes++
}

// loseNamed notes that the variables that are named in words may be set anew.
func (s *script) loseNamed(words []word, why string) {
	for _, w := range words {
		text, all := w.plain()
		if !all {
			s.lose(why)
			return
		}
		for _, name := range identifier.FindAllString(text, -1) {
			s.put(name, assigned{v: value{unknown: why, lost: true}, ok: true, exported: true})
		}
	}
}

var identifier = regexp.MustCompile(`[A-Za-z_]\w*`)

// assign sets a variable of the shell. A command gets it only if it is exported,
// as one of the environment is.
func (s *script) assign(name string, v value, perhaps bool) {
	a := assigned{v: v, ok: true}
	before, had := s.set[name]
	switch {
	case had:
		a.exported = before.exported || s.allexport
	case s.lost != "":
		a = assigned{v: value{unknown: s.lost, lost: true}, ok: true, exported: true}
	default:
		_, a.exported = s.env(name)
		a.exported = a.exported || s.allexport
	}
	if perhaps {
		a.v = notKnown("a script sets it on a condition")
	}
	s.put(name, a)
}

// inherit leaves what a shell within the script gets.
func (s *script) inherit() {
	s.set = maps.Clone(s.set)
	maps.DeleteFunc(s.set, func(_ string, a assigned) bool { return a.ok && !a.exported })
	s.allexport = false
}

// assigning finds an assignment in an expansion, such as "${NAME:=full}", of
// which the dollar is not kept.
var assigning = regexp.MustCompile(`\{([A-Za-z_]\w*):?=`)

// defaults notes the variables that the expansions in a word may set.
func (s *script) defaults(w word) {
	if text, _ := w.plain(); w.opaque {
		for _, m := range assigning.FindAllStringSubmatch(text, -1) {
			s.loseNamed([]word{{parts: []part{{literal: m[1]}}}}, "an expansion may set it anew")
		}
	}
}

// builtin carries out a command of the shell that sets variables, and reports
// whether it is one. perhaps says that it may not be carried out.
func (s *script) builtin(name string, args []word, perhaps bool) bool {
	why := name + " may set it anew"
	switch name {
	case "export", "declare", "typeset", "local", "readonly", "unset":
		s.declare(name, args, perhaps)
	case ".", "source":
		s.lose(why)
	case "eval":
		s.lose(why)
		return false // What it is given may also start Renovate.
	case "read", "mapfile", "readarray", "getopts", "let", "for", "select":
		if name == "for" || name == "select" {
			args = args[:min(1, len(args))]
		}
		s.loseNamed(args, why)
	case "printf":
		text := ""
		if len(args) > 0 {
			text, _ = args[0].plain()
		}
		if name, is := strings.CutPrefix(text, "-v"); is {
			s.loseNamed(append([]word{{parts: []part{{literal: name}}}}, args[1:min(2, len(args))]...), why)
		}
	case "set":
		s.options(args, perhaps)
	default:
		return false
	}
	return true
}

// options carries out set, of which -a and -o allexport matter.
func (s *script) options(args []word, perhaps bool) {
	for i, w := range args {
		text, all := w.plain()
		switch {
		case text == "--":
			return
		case !all, perhaps && (strings.Contains(text, "a") || text == "-o" || text == "+o"):
			s.lose("set may export it")
			return
		case text == "allexport":
			before, _ := args[max(0, i-1)].plain()
			s.allexport = before == "-o"
		case strings.HasPrefix(text, "-") && strings.Contains(text, "a"):
			s.allexport = true
		case strings.HasPrefix(text, "+") && strings.Contains(text, "a"):
			s.allexport = false
		}
	}
}

// plainOptions change no value, and not whether it is exported.
var plainOptions = regexp.MustCompile(`^-[gprvx]+$`)

// declare carries out export and its like.
func (s *script) declare(name string, args []word, perhaps bool) {
	exports := name == "export"
	why := name + " may set it anew"
	for i, w := range args {
		text, all := w.plain()
		to, rest, assigns := assignmentOf(w)
		switch {
		case assigns:
			s.assign(to, s.resolve(rest), perhaps)
		case !all, strings.HasPrefix(text, "+"), strings.HasPrefix(text, "-") && !plainOptions.MatchString(text):
			s.loseNamed(args[i:], why)
			return
		case strings.HasPrefix(text, "-"):
			exports = exports || strings.Contains(text, "x")
			continue
		case name == "unset":
			to = text
			if perhaps {
				s.assign(to, value{}, true)
			} else {
				s.put(to, assigned{})
			}
			continue
		default:
			to = text
		}
		if exports {
			s.export(to, perhaps)
		}
	}
}

// export hands a variable to commands.
func (s *script) export(name string, perhaps bool) {
	a, had := s.set[name]
	if !had {
		a.v, a.ok = s.lookup(name)
		a.exported = a.ok
	}
	if perhaps && !a.exported {
		a.v, a.ok = notKnown("a script exports it on a condition"), true
	}
	a.exported = true
	s.put(name, a)
}
