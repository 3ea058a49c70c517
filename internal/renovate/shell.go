package renovate

import (
	"regexp"
	"strings"
)

// word is a word of a shell command: literals, and names of variables to put in.
// A part that is neither, such as $(command), makes the word opaque.
type word struct {
	parts  []part
	opaque bool
}

// part is a literal, or the variable name with what stands for it if it is empty.
type part struct {
	literal, name, fallback string
}

// marker stands on both sides of the number of an expression of a workflow.
const marker = "\x01"

// plain returns the text of a word, with variables left out, and whether it has
// none.
func (w word) plain() (string, bool) {
	var b strings.Builder
	all := !w.opaque
	for _, p := range w.parts {
		b.WriteString(p.literal)
		all = all && p.name == ""
	}
	return b.String(), all
}

func (w word) isOption() bool {
	text, _ := w.plain()
	return strings.HasPrefix(text, "-")
}

// command is a simple command of a script.
type command struct {
	words []word
	// nested says that it stands in a condition, a loop or a group, or behind
	// && or ||, so that it may not be carried out.
	nested bool
	// apart says that it runs beside the shell, as in a pipe, and changes no
	// variable of it.
	apart bool
	// fed says that it is given a text that names Renovate.
	fed bool
}

// split cuts a script into simple commands. It knows what scripts of workflows
// are made of; what it does not understand makes words opaque, never plain.
func split(script string) []command {
	s := splitter{rest: strings.ReplaceAll(script, "\\\n", " ")}
	for s.rest != "" {
		s.step()
	}
	s.endCommand()
	return s.commands
}

type splitter struct {
	rest     string
	commands []command
	words    []word
	word     *word
	depth    int
	chained  bool
	piped    bool
	// redirect says that the next word is a file.
	redirect bool
	// heredocs are the delimiters whose text begins on the next line, and line is
	// the first command of this one.
	heredocs []string
	line     int
}

func (s *splitter) literal(text string) {
	if s.word == nil {
		s.word = &word{}
	}
	if n := len(s.word.parts); n > 0 && s.word.parts[n-1].name == "" {
		s.word.parts[n-1].literal += text
		return
	}
	s.word.parts = append(s.word.parts, part{literal: text})
}

func (s *splitter) endWord() {
	if s.word == nil {
		return
	}
	if !s.redirect || s.word.opaque {
		s.words = append(s.words, *s.word)
	}
	s.word, s.redirect = nil, false
}

var (
	opens  = map[string]bool{"if": true, "case": true, "for": true, "select": true, "while": true, "until": true, "{": true, "(": true}
	closes = map[string]bool{"fi": true, "esac": true, "done": true, "}": true, ")": true}
	skips  = map[string]bool{"then": true, "else": true, "elif": true, "do": true, "!": true, "time": true, "if": true, "while": true, "until": true, "{": true}
)

func (s *splitter) endCommand() {
	s.endWord()
	words := s.words
	s.words, s.redirect = nil, false
	nested := s.depth > 0 || s.chained
	for len(words) > 0 {
		first, all := words[0].plain()
		switch {
		case all && closes[first]:
			s.depth = max(0, s.depth-1)
			return
		case all && opens[first]:
			s.depth++
			nested = true
			if first == "case" {
				return
			}
			if !skips[first] {
				s.commands = append(s.commands, command{words: words, nested: true})
				return
			}
		case all && skips[first]:
		default:
			s.commands = append(s.commands, command{words: words, nested: nested, apart: s.piped})
			return
		}
		words = words[1:]
	}
}

var (
	heredoc  = regexp.MustCompile(`^<<-?\s*(['"]?)([A-Za-z_]\w*)['"]?`)
	variable = regexp.MustCompile(`^\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?-([^{}$]*))?\})`)
)

func (s *splitter) step() {
	c := s.rest[0]
	switch {
	case c == '\n':
		s.rest = s.rest[1:]
		s.endCommand()
		s.chained, s.piped = false, false
		s.skipHeredocs()
	case c == ' ' || c == '\t' || c == '\r':
		s.rest = s.rest[1:]
		s.endWord()
	case c == '#' && s.word == nil:
		end := strings.IndexByte(s.rest, '\n')
		if end < 0 {
			end = len(s.rest)
		}
		s.rest = s.rest[end:]
	case strings.HasPrefix(s.rest, "&&"), strings.HasPrefix(s.rest, "||"):
		s.rest = s.rest[2:]
		s.endCommand()
		s.chained = true
	case c == ';' || c == '|' || c == '&':
		s.rest = s.rest[1:]
		s.piped = s.piped || c != ';'
		s.endCommand()
		s.chained, s.piped = s.chained && c != ';', c == '|'
	case c == '(' || c == ')':
		s.rest = s.rest[1:]
		s.endCommand()
		if c == '(' {
			s.depth++
		} else {
			s.depth = max(0, s.depth-1)
		}
	case heredoc.MatchString(s.rest):
		m := heredoc.FindStringSubmatch(s.rest)
		s.heredocs = append(s.heredocs, m[2])
		s.rest = s.rest[len(m[0]):]
		s.endWord()
	case strings.HasPrefix(s.rest, "<<<"):
		s.rest = s.rest[3:]
		s.endWord()
	case c == '>' || c == '<':
		s.rest = s.rest[1:]
		s.endWord()
		s.redirect = true
	case c == '\'':
		end := strings.IndexByte(s.rest[1:], '\'')
		if end < 0 {
			s.opaque(len(s.rest))
			return
		}
		s.literal("")
		inner, rest := s.rest[1:1+end], s.rest[end+2:]
		for s.rest = inner; s.rest != ""; {
			before, _, marks := strings.Cut(s.rest, marker)
			s.literal(before)
			s.rest = s.rest[len(before):]
			if marks {
				s.marked()
			}
		}
		s.rest = rest
	case c == '"':
		s.rest = s.rest[1:]
		s.quoted()
	default:
		s.piece("")
	}
}

// quoted takes what is in double quotes, which have been opened.
func (s *splitter) quoted() {
	s.literal("")
	for s.rest != "" {
		if s.rest[0] == '"' {
			s.rest = s.rest[1:]
			return
		}
		s.piece(`"`)
	}
	s.word.opaque = true
}

// piece takes one variable, one escape, or one character.
func (s *splitter) piece(quote string) {
	c := s.rest[0]
	switch {
	case s.rest[:1] == marker:
		s.marked()
	case c == '$':
		if m := variable.FindStringSubmatch(s.rest); m != nil {
			s.literal("")
			s.word.parts = append(s.word.parts, part{name: m[1] + m[2], fallback: m[3]})
			s.rest = s.rest[len(m[0]):]
			return
		}
		s.opaque(1)
	case c == '`':
		s.literal("`")
		s.opaque(1)
	case c == '\\' && len(s.rest) > 1:
		if quote != "" && !strings.ContainsRune("\"\\$`", rune(s.rest[1])) {
			s.literal(`\`)
		}
		s.literal(s.rest[1:2])
		s.rest = s.rest[2:]
	default:
		s.literal(s.rest[:1])
		s.rest = s.rest[1:]
	}
}

// marked takes the place of an expression of a workflow, which is put in before a
// shell sees it, whatever quotes are around it.
func (s *splitter) marked() {
	name, rest, ok := strings.Cut(s.rest[len(marker):], marker)
	if !ok {
		s.opaque(1)
		return
	}
	s.literal("")
	s.word.parts = append(s.word.parts, part{name: marker + name})
	s.rest = rest
}

func (s *splitter) opaque(n int) {
	s.literal("")
	s.word.opaque = true
	s.rest = s.rest[n:]
}

// skipHeredocs leaves out the texts that begin on this line, and notes whether
// they name Renovate.
func (s *splitter) skipHeredocs() {
	fed := false
	for _, end := range s.heredocs {
		for s.rest != "" {
			text, rest, _ := strings.Cut(s.rest, "\n")
			s.rest = rest
			if strings.TrimSpace(text) == end {
				break
			}
			fed = fed || strings.Contains(strings.ToLower(text), "renovate")
		}
	}
	for i := s.line; i < len(s.commands); i++ {
		s.commands[i].fed = fed
	}
	s.heredocs, s.line = nil, len(s.commands)
}
