package kube

import (
	"cmp"
	"strconv"
	"strings"

	"signalbox/internal/fact"
)

// kuredSetting is one setting of kured, by its arguments or its environment.
type kuredSetting struct {
	given bool
	value string
	// hidden says that it cannot be told.
	hidden bool
}

// kuredSettings are the settings that say where its lock and its marks are. Kured
// takes each from an argument, or else from a variable with KURED_ before its
// name.
type kuredSettings struct {
	known          bool
	lock, annotate kuredSetting
}

func readKuredSettings(o map[string]any) (out kuredSettings) {
	for _, item := range list(o, "spec", "template", "spec", "containers") {
		m, _ := item.(map[string]any)
		c := readContainer(m)
		out.known = true
		out.lock = out.lock.or(c.kuredSetting("lock-annotation"))
		out.annotate = out.annotate.or(c.kuredSetting("annotate-nodes"))
	}
	return out
}

func (s kuredSetting) or(o kuredSetting) kuredSetting {
	switch {
	case s.given && o.given && s != o:
		return kuredSetting{given: true, hidden: true}
	case s.given:
		return s
	case o.given:
		return o
	default:
		return kuredSetting{hidden: s.hidden || o.hidden}
	}
}

// kuredSetting reads one setting of a container.
func (c container) kuredSetting(name string) (s kuredSetting) {
	s.hidden = len(c.from) > 0 // They may give it.
	variable := "KURED_" + strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	for _, v := range c.env {
		if v.name == variable {
			s = kuredSetting{given: true, value: v.value, hidden: v.configMap != "" || v.other != "" || strings.Contains(v.value, "$(")}
		}
	}
	flag := "--" + name
	args := append(append([]string{}, c.command...), c.args...)
	for i, a := range args {
		value, is := strings.CutPrefix(a, flag+"=")
		switch {
		case is:
		case a == flag && name == "annotate-nodes":
			value = "true"
		case a == flag && i+1 < len(args):
			value = args[i+1]
		case strings.Contains(a, flag):
			s = kuredSetting{given: true, hidden: true} // Within a script, say.
			continue
		default:
			continue
		}
		s = kuredSetting{given: true, value: value, hidden: strings.Contains(value, "$(")}
	}
	return s
}

// elsewhere says what to write if the lock is not in the annotation, or is empty
// if it is, or if a person has to know.
// implied says that nobody wrote which annotation it is.
func (s kuredSettings) elsewhere(annotation string, implied bool) string {
	at := s.lock.value
	switch {
	case s.lock.given && s.lock.hidden && implied:
		return "kured was told where to keep it, and where cannot be told from its DaemonSet; write lockAnnotation"
	case !s.known || s.lock.hidden:
		return ""
	case !s.lock.given && annotation == fact.DefaultKuredLock:
		return ""
	case !s.lock.given:
		for _, domain := range kuredDomains {
			if annotation == domain+"/kured-node-lock" {
				return ""
			}
		}
		return "kured was told no --lock-annotation, so its lock is not in " + annotation + "; leave lockAnnotation out"
	case at == annotation:
		return ""
	case at == fact.DefaultKuredLock:
		return "kured keeps it in " + at + "; leave lockAnnotation out"
	default:
		return "kured keeps it in another annotation; write lockAnnotation: " + cmp.Or(clean(oneLine(at), maxName), `""`)
	}
}

// unmarked reports whether kured surely marks no node.
func (s kuredSettings) unmarked() bool {
	on, err := strconv.ParseBool(s.annotate.value)
	return s.known && !s.annotate.hidden && (!s.annotate.given || err == nil && !on)
}
