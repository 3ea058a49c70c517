package renovate

import (
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// environment answers what a variable is; false means that it is not set.
type environment func(name string) (value, bool)

// script reads which commands of a shell script start Renovate, and with what
// setting.
type script struct {
	env environment
	variables
	found []invocation
	depth int
}

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(words) {
		set[word] = true
	}
	return set
}

func readScript(text string, env environment) []invocation {
	s := newScript(env)
	s.read(text)
	return s.all()
}

// maxScripts bounds scripts within scripts, such as those of sh -c.
const maxScripts = 3

func (s *script) read(text string) {
	if s.depth == maxScripts {
		return
	}
	s.depth++
	defer func() { s.depth-- }()
	for _, c := range split(text) {
		s.command(c)
	}
}

// resolve puts the variables into a word.
func (s *script) resolve(w word) value {
	if w.opaque {
		return notKnown("a script makes it")
	}
	var b strings.Builder
	for _, p := range w.parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		v, ok := s.lookup(p.name)
		switch {
		case ok && v.isUnknown():
			if !strings.HasPrefix(p.name, marker) {
				v.unknown = "$" + p.name + ": " + v.unknown
			}
			return v
		case ok && v.text() != "":
			b.WriteString(v.text())
		default:
			b.WriteString(p.fallback)
		}
	}
	return known(b.String())
}

var assignment = regexp.MustCompile(`^([A-Za-z_]\w*)=`)

// assignmentOf returns the name that a word assigns to, and the rest of it.
func assignmentOf(w word) (string, word, bool) {
	text, _ := w.plain()
	m := assignment.FindStringSubmatch(text)
	if m == nil {
		return "", w, false
	}
	rest := word{opaque: w.opaque}
	cut := len(m[0])
	for _, p := range w.parts {
		if p.name != "" && cut > 0 {
			return "", w, false
		}
		n := min(cut, len(p.literal))
		cut -= n
		p.literal = p.literal[n:]
		rest.parts = append(rest.parts, p)
	}
	return m[1], rest, true
}

// substituted finds a command in a word, such as "$(renovate)", of which the
// dollar is not kept.
var substituted = regexp.MustCompile("(?i)[(`].*renovate")

func (s *script) command(c command) {
	for _, w := range c.words {
		if text, _ := w.plain(); w.opaque && substituted.MatchString(text) {
			s.doubtful([]string{text}, c.nested)
		}
		s.defaults(w)
	}
	words := c.words
	local := map[string]assigned{}
	for len(words) > 0 {
		name, rest, ok := assignmentOf(words[0])
		if !ok {
			break
		}
		local[name] = assigned{v: s.resolve(rest), ok: true, exported: true}
		words = words[1:]
	}
	perhaps := c.nested || c.apart
	if len(words) == 0 {
		for name, a := range local {
			s.assign(name, a.v, perhaps)
		}
		return
	}
	first, _ := words[0].plain()
	if c.fed && !harmless[first] {
		s.doubtful([]string{first, "<<", "renovate"}, c.nested)
	}
	switch first {
	case "exec", "command", "builtin", "nohup", "env":
		c.words = append(slices.Clone(c.words[:len(c.words)-len(words)]), words[1:]...)
		s.command(c)
		return
	case "sudo":
		// What sudo hands on is in its settings, whatever its options say.
		outer := s.variables
		s.lose("sudo may not hand it on")
		c.words = words[1:]
		for len(c.words) > 0 && c.words[0].isOption() {
			c.words = c.words[1:]
		}
		s.command(c)
		s.variables = outer
		return
	}
	if s.builtin(first, words[1:], perhaps) {
		return
	}
	outer := s.variables
	s.set = maps.Clone(outer.set)
	maps.Copy(s.set, local)
	s.start(words, c.nested)
	s.variables = outer
}

var (
	image  = regexp.MustCompile(`(?i)(?:^|/)renovate(?::[^/]*|@sha256:.*)?$`)
	binary = regexp.MustCompile(`^renovate(?:@[\w.^~-]+)?$`)
	// inline is -c, perhaps with other letters; switches are options of docker run
	// without a value.
	inline   = regexp.MustCompile(`^-[a-z]*c$`)
	switches = regexp.MustCompile(`^(?:-[ditPq]+|--(?:rm|init|detach|interactive|tty|privileged|read-only|quiet|publish-all))$`)
	// shells run what follows -c, or a file.
	shells = map[string]bool{"sh": true, "bash": true, "ash": true, "dash": true, "zsh": true}
	// runners start a package by its name.
	runners = map[string]bool{"npx": true, "bunx": true, "pnpx": true}
	// packagers do so with one of these words behind them.
	packagers = map[string][]string{"npm": {"exec", "x"}, "pnpm": {"dlx", "exec"}, "yarn": {"dlx", "exec", "run"}, "bun": {"x"}}
	engines   = map[string]bool{"docker": true, "podman": true, "nerdctl": true}
	// harmless commands, and installers with these words, start nothing that they
	// name. Any other command that names Renovate may start it.
	harmless = setOf(`echo printf : true false exit set cd pwd mkdir rm cp mv ln ls cat head tail tee grep sed awk jq yq
		test [ [[ chmod chown touch which type git curl wget apt apt-get apk pip read sleep date return shift`)
	installers = map[string][]string{
		"npm": {"install", "i", "ci", "view", "pack", "config", "cache"}, "pnpm": {"add", "install", "i"}, "yarn": {"add", "install"},
		"docker": {"pull", "login", "logs", "rm", "stop", "tag", "inspect", "image"}, "podman": {"pull", "login", "rm", "stop"},
	}
)

// start looks whether a command starts Renovate.
func (s *script) start(words []word, nested bool) {
	if _, all := words[0].plain(); !all && !words[0].opaque {
		first := s.resolve(words[0])
		if first.isUnknown() {
			s.found = append(s.found, invocation{how: "a command", nested: nested, sources: sources{doubt: first.unknown}})
			return
		}
		var named []word
		for text := range strings.FieldsSeq(first.text()) {
			named = append(named, word{parts: []part{{literal: text}}})
		}
		if words = append(named, words[1:]...); len(words) == 0 {
			return
		}
	}
	texts := make([]string, len(words))
	for i, w := range words {
		texts[i], _ = w.plain()
	}
	name := path.Base(texts[0])
	switch {
	case name == "renovate":
		s.add("renovate", words[1:], nil, nested)
	case runners[name]:
		s.packaged(name, words[1:], nested)
	case len(words) > 1 && slices.Contains(packagers[name], texts[1]):
		s.packaged(name+" "+texts[1], words[2:], nested)
	case engines[name] && len(words) > 1 && texts[1] == "run":
		i := imageAt(texts)
		switch {
		case i < 0:
		case i+1 < len(texts) && texts[i+1] != "" && ownCommand(texts[i+1]):
			s.doubtful(texts, nested)
		default:
			s.add(name+" run "+texts[i], words[i+1:], append([]word{}, words[2:i]...), nested)
		}
	case shells[name] && slices.ContainsFunc(texts[:len(texts)-1], inline.MatchString):
		inner := s.resolve(words[slices.IndexFunc(texts, inline.MatchString)+1])
		if inner.isUnknown() {
			s.doubtful(texts, nested)
			return
		}
		before := len(s.found)
		s.inherit()
		s.read(inner.text())
		for i := before; nested && i < len(s.found); i++ {
			s.found[i].nested = true
		}
	case harmless[name], len(words) > 1 && slices.Contains(installers[name], texts[1]):
	default:
		s.doubtful(texts, nested)
	}
}

// doubtful notes a command if it names Renovate.
func (s *script) doubtful(texts []string, nested bool) {
	line := strings.Join(texts, " ")
	if !strings.Contains(strings.ToLower(line), "renovate") {
		return
	}
	s.found = append(s.found, invocation{
		how: clean(line), nested: nested,
		sources: sources{doubt: "what " + clean(texts[0]) + " does cannot be told from the file"},
	})
}

// packaged looks for the name of the package among the arguments of a runner.
func (s *script) packaged(how string, words []word, nested bool) {
	for i := 0; i < len(words); i++ {
		text, _ := words[i].plain()
		switch {
		case text == "-p" || text == "--package":
			i++
		case strings.HasPrefix(text, "-"):
		case binary.MatchString(text):
			s.add(how+" "+text, words[i+1:], nil, nested)
			return
		case text == "renovate-config-validator":
			return
		default:
			s.doubtful([]string{how, text}, nested)
			return
		}
	}
}
