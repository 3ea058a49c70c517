package command

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/bmatcuk/doublestar/v4"
)

// ChatCommand is a command as it was given in chat.
type ChatCommand struct {
	// Command is the same as on a pull request, and its Line is as it would stand
	// there; its Problem is always empty.
	Command
	// Said is what was said, with all white space as single spaces.
	Said string
	// Target is what it is about; zero is what the conversation is about.
	Target Target
	// Paths are the globs of a [Subscribe]; none are all paths. Sensitive asks
	// for pull requests that change a sensitive path.
	Paths     []string
	Sensitive bool
}

// ChatProblem is why a text of chat is no command.
type ChatProblem struct {
	// Text says what is wrong in one line; it may quote what was written, so it
	// has to be escaped.
	Text string
	// Suggest is the command that was probably meant, or empty.
	Suggest Name
	// Usages are the forms of the command that was given wrongly, or none.
	Usages []string
}

// Error implements error.
func (p *ChatProblem) Error() string { return p.Text }

// ParseChat reads what somebody said to signalbox: the word of a command, what
// it is about, and the same arguments as on a pull request. A slash before the
// word and the case of its letters do not matter, and nothing at all asks for
// help. With a problem, the command holds what could be read of it.
func ParseChat(text string) (ChatCommand, *ChatProblem) {
	if !utf8.ValidString(text) {
		return ChatCommand{}, &ChatProblem{Text: "this is not valid text"}
	}
	said := strings.Join(strings.Fields(text), " ")
	word, args := cutWord(said)
	word = strings.TrimPrefix(visible(word), "/")
	name := Name(strings.ToLower(word))
	if name == "" && args == "" {
		name = Help
	}
	specs := ChatSpecs()
	spec, ok := specOf(name, specs)
	if !ok {
		return ChatCommand{Said: said}, &ChatProblem{
			Text:    quote(word) + " is no command",
			Suggest: nearest(clip(string(name)), specs),
		}
	}
	c := ChatCommand{Command: Command{Name: name}, Said: said}
	if problem := c.read(spec, args); problem != "" {
		return c, &ChatProblem{Text: inChat(name, problem), Usages: usages(name, specs)}
	}
	return c, nil
}

// read reads all that follows the word.
func (c *ChatCommand) read(spec Spec, args string) string {
	first, rest := cutWord(args)
	target, named, problem := spec.about.target(spec.Name, visible(first))
	if problem != "" {
		return problem
	}
	if named {
		c.Target, args = target, rest
	}
	c.Line = strings.TrimSpace("/" + string(c.Name) + " " + args)
	switch {
	case spec.about == aboutRepo && !named:
		return "it does not name a repository: " + howToNameRepo
	case spec.Name == Subscribe:
		return c.readPaths(strings.Fields(args))
	}
	return spec.parse(&c.Command, args)
}

// maxPaths bounds the paths of a subscription.
const maxPaths = 20

func (c *ChatCommand) readPaths(words []string) string {
	for _, w := range words {
		if strings.EqualFold(w, "sensitive") {
			c.Sensitive = true
			continue
		}
		switch {
		case len(c.Paths) == maxPaths:
			return fmt.Sprintf("it names more than %d paths", maxPaths)
		case len(w) > maxText || !doublestar.ValidatePattern(w):
			return quote(w) + " is not a valid glob: check its brackets and braces"
		case strings.HasPrefix(w, "/") || strings.HasPrefix(w, "./"):
			return quote(w) + " begins with a slash or dot: paths begin at the top of the repository, as in clusters/**"
		}
		c.Paths = append(c.Paths, w)
	}
	return ""
}

// inChat words what is wrong with a command as it is written in chat.
func inChat(n Name, problem string) string {
	return strings.ReplaceAll(problem, "/"+string(n), string(n))
}

func usages(n Name, specs []Spec) []string {
	var out []string
	for _, s := range specs {
		if s.Name == n {
			out = append(out, s.Chat)
		}
	}
	return out
}

// quote quotes what was written, and keeps it short. An address may hold a
// password, which is not repeated.
func quote(word string) string {
	if isAddress(word) && strings.Contains(word, "@") {
		return "the address"
	}
	return strconv.Quote(clip(word))
}

func clip(word string) string {
	const most = 80
	if r := []rune(word); len(r) > most {
		return string(r[:most]) + "…"
	}
	return word
}
