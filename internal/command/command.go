package command

import (
	"regexp"
	"strings"
	"time"
	"unicode/utf8"
)

// Command is a command as it was given.
type Command struct {
	Name Name
	// Cancel takes the command back.
	Cancel bool
	// SHA is the abbreviated or full commit that the command is for, in lower
	// case, or empty.
	SHA string
	// Lasts is how long a freeze is to last, or Until when it is to end, in UTC;
	// just one of them is set.
	Lasts time.Duration
	Until time.Time
	// Text is the reason that was given, or the code of a [Link] in upper case, or
	// empty.
	Text string
	// Line is the line as it was written.
	Line string
	// Problem says what is wrong with it, or is empty. A command with a problem
	// is refused.
	Problem string
}

// maxText bounds a reason, in bytes.
const maxText = 1000

var shaPattern = regexp.MustCompile(`^[0-9a-fA-F]{7,64}$`)

func parseApprove(c *Command, args string) string {
	switch {
	case args == "":
	case strings.EqualFold(args, Cancel):
		c.Cancel = true
	case shaPattern.MatchString(args):
		c.SHA = strings.ToLower(args)
	default:
		return "after /approve comes nothing, \"cancel\", or the SHA of the head with at least 7 digits"
	}
	return ""
}

func parseOverride(c *Command, args string) string {
	switch {
	case args == "":
		return "an override needs a reason: /approve-override REASON"
	case strings.EqualFold(args, Cancel):
		c.Cancel = true
		return ""
	}
	return parseText(c, args)
}

func parseCancel(c *Command, args string) string {
	switch {
	case args == "":
	case strings.EqualFold(args, Cancel):
		c.Cancel = true
	default:
		return "after /" + string(c.Name) + " comes nothing or \"cancel\""
	}
	return ""
}

// codePattern is the form of a code, which is base32.
var codePattern = regexp.MustCompile(`^[A-Za-z2-7]{8,64}$`)

func parseCode(c *Command, args string) string {
	if strings.EqualFold(args, Cancel) {
		c.Cancel = true
		return ""
	}
	if !codePattern.MatchString(args) {
		return "after /link comes the code that signalbox gave you in chat, or \"cancel\""
	}
	c.Text = strings.ToUpper(args)
	return ""
}

func parseText(c *Command, args string) string {
	if len(args) > maxText {
		return "the reason is longer than 1000 bytes"
	}
	if !utf8.ValidString(args) {
		return "the reason is not valid text"
	}
	c.Text = args
	return ""
}

func parseNothing(c *Command, args string) string {
	if args != "" {
		return "nothing comes after /" + string(c.Name)
	}
	return ""
}

// brief is the command without what may come from elsewhere.
func (c Command) brief() string {
	if c.Cancel {
		return "/" + string(c.Name) + " " + Cancel
	}
	return "/" + string(c.Name)
}

// excludes reports whether c stops what o asks for: who writes both in one text
// gets the one that stops.
func (c Command) excludes(o Command) bool {
	switch c.Name {
	case Hold:
		return o.Name == Unhold || o.Name == Merge && !o.Cancel
	case Freeze:
		return o.Name == Unfreeze || o.Name == Merge && !o.Cancel
	case Approve, Override, Merge:
		return c.Cancel && o.Name == c.Name && !o.Cancel
	default:
		return false
	}
}
