package renovate

import "strings"

// imageAt finds Renovate's image behind docker run, and not the value of an
// option such as --name.
func imageAt(texts []string) int {
	for i := 2; i < len(texts); i++ {
		if !takesValue(texts[i-1]) && image.MatchString(texts[i]) {
			return i
		}
	}
	return -1
}

// takesValue reports whether the word behind an option may be its value.
func takesValue(option string) bool {
	return strings.HasPrefix(option, "-") && !strings.Contains(option, "=") && !switches.MatchString(option)
}

func valued(w word) bool {
	text, _ := w.plain()
	return takesValue(text)
}

// ownCommand reports whether the first argument of Renovate's image is a command
// that is run in place of Renovate: it is no option, and no repository.
func ownCommand(arg string) bool {
	switch {
	case arg == "renovate", strings.HasPrefix(arg, "-"):
		return false
	case strings.HasPrefix(arg, "/"), strings.HasPrefix(arg, "."):
		return true
	default:
		return !strings.Contains(arg, "/")
	}
}

// container reads what docker run hands to a container: a variable is there only
// if it is named.
func (s *script) container(i *invocation, options []word) {
	for n, o := range options {
		text, all := o.plain()
		var name string
		var rest word
		var assigns bool
		switch {
		case text == "-e" || text == "--env":
			if n+1 == len(options) {
				return
			}
			name, rest, assigns = assignmentOf(options[n+1])
			if !assigns {
				name, _ = options[n+1].plain()
			}
		case strings.HasPrefix(text, "--env-file"):
			i.doubt = "a file of variables may give it"
			continue
		case strings.HasPrefix(text, "--entrypoint"):
			i.force = "what its entry point does cannot be told"
			continue
		case !all && !strings.HasPrefix(text, "-") && (n == 0 || !valued(options[n-1])):
			i.force = "an option that a script makes may give it"
			continue
		case strings.HasPrefix(text, "--env="):
			name, rest, assigns = assignmentOf(word{parts: cutPrefix(o.parts, len("--env=")), opaque: o.opaque})
			if !assigns {
				name = strings.TrimPrefix(text, "--env=")
			}
		default:
			continue
		}
		switch name {
		case dryRunEnv:
			i.envAt = dryRunEnv
			v, ok := value{}, true
			if assigns {
				v = s.resolve(rest)
			} else {
				v, ok = s.exported(dryRunEnv)
				i.inherits = true
			}
			if ok {
				i.env = &v
			}
		case configEnv, configFile, envPrefix:
			i.doubt = name + " may give another dryRun"
		case forceEnv:
			i.force = name + " may override what is set"
		}
	}
}

// cutPrefix takes the first bytes off the literals.
func cutPrefix(parts []part, n int) []part {
	var left []part
	for _, p := range parts {
		cut := min(n, len(p.literal))
		n -= cut
		p.literal = p.literal[cut:]
		left = append(left, p)
	}
	return left
}
