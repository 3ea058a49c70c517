package window

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// maxLength bounds the text of a span, in bytes.
const maxLength = 200

// Parse reads one span; the forms are in the description of the package. An
// error says what is wrong at which character, and how it is written correctly.
func Parse(text string) (Span, error) {
	if strings.TrimSpace(text) == "" {
		return Span{}, errors.New(`the span is empty; write it like "Mon-Fri 09:00-17:00"`)
	}
	if len(text) > maxLength || !utf8.ValidString(text) {
		return Span{}, fmt.Errorf(`this is no span: it has more than %d bytes or is not valid UTF-8; write it like "Mon-Fri 09:00-17:00"`, maxLength)
	}
	p := &parser{text: strings.TrimSpace(text)}
	s, err := p.span()
	if err != nil {
		return Span{}, err
	}
	if p.space(); p.rest() != "" {
		return Span{}, p.failed("%s comes after the end of the span; give several spans as a list", quote(p.rest()))
	}
	return s, nil
}

// parser goes through the text of a span.
type parser struct {
	text string
	pos  int
}

func (p *parser) rest() string { return p.text[p.pos:] }

func (p *parser) space() { p.pos = len(p.text) - len(strings.TrimLeft(p.rest(), " \t")) }

// failed returns an error with the character that comes next.
func (p *parser) failed(format string, args ...any) error {
	return fmt.Errorf("%q, character %d: %s", p.text, utf8.RuneCountInString(p.text[:p.pos])+1, fmt.Sprintf(format, args...))
}

func (p *parser) span() (Span, error) {
	if p.space(); isDate(p.rest()) {
		return p.once()
	}
	s := Span{weekdays: everyDay}
	from := p.pos
	if p.rest()[0] < '0' || p.rest()[0] > '9' {
		days, err := p.weekdays()
		if err != nil {
			return Span{}, err
		}
		s.weekdays = days
	}
	start, err := p.clock()
	if err != nil {
		return Span{}, err
	}
	s.start = start
	if err := p.dash("17:00"); err != nil {
		return Span{}, err
	}
	if p.space(); isLetter(p.rest()) {
		return p.acrossDays(s, from)
	}
	end := p.pos
	if s.end, err = p.clock(); err != nil {
		return Span{}, err
	}
	switch {
	case s.start == day:
		p.pos = from
		return Span{}, p.failed("24:00 can only end a span; a day starts at 00:00")
	case s.end == s.start:
		p.pos = end
		return Span{}, p.failed("it ends when it starts; the whole day is 00:00-24:00")
	case s.end < s.start:
		s.end += day
	}
	return s, nil
}

// acrossDays reads the end of a span that has a weekday of its own.
func (p *parser) acrossDays(s Span, from int) (Span, error) {
	first := s.weekdays.first()
	if s.weekdays != 1<<first {
		p.pos = from
		return Span{}, p.failed("a span to another weekday starts on one weekday; write it like Fri 16:00-Mon 07:00")
	}
	at := p.pos
	last, err := p.weekday()
	if err != nil {
		return Span{}, err
	}
	end, err := p.clock()
	if err != nil {
		return Span{}, err
	}
	s.end = int((last-first+7)%7)*day + end
	switch {
	case s.start == day:
		p.pos = from
		return Span{}, p.failed("24:00 can only end a span; a day starts at 00:00")
	case s.end%week == s.start && s.end != week:
		p.pos = at
		return Span{}, p.failed("it ends when it starts; the whole week is 00:00-24:00")
	case s.end < s.start:
		s.end += week
	}
	return s, nil
}

// once reads a span between two dates.
func (p *parser) once() (Span, error) {
	from, err := p.date()
	if err != nil {
		return Span{}, err
	}
	s := Span{date: from}
	at := p.pos
	if s.start, err = p.clock(); err != nil {
		return Span{}, err
	}
	if s.start == day {
		p.pos = at
		return Span{}, p.failed("24:00 can only end a span; a day starts at 00:00")
	}
	if err := p.dash("2026-12-27 08:00"); err != nil {
		return Span{}, err
	}
	p.space()
	at = p.pos
	to, err := p.date()
	if err != nil {
		return Span{}, err
	}
	end, err := p.clock()
	if err != nil {
		return Span{}, err
	}
	if s.end = (to-from)*day + end; s.end <= s.start {
		p.pos = at
		return Span{}, p.failed("it ends before it starts, or at once; write it like 2026-12-24 18:00-2026-12-27 08:00")
	}
	return s, nil
}

// weekdays reads days and ranges of days, with commas between.
func (p *parser) weekdays() (weekdays, error) {
	var days weekdays
	for {
		p.space()
		at := p.pos
		first, err := p.weekday()
		if err != nil {
			return 0, err
		}
		last := first
		if p.space(); p.skip("-") {
			if last, err = p.weekday(); err != nil {
				return 0, err
			}
			if last == first {
				p.pos = at
				return 0, p.failed("%[1]s-%[1]s is one day; write %[1]s, or no weekday for every day", short(first))
			}
		}
		for d := first; ; d = (d + 1) % 7 {
			if days |= 1 << d; d == last {
				break
			}
		}
		if p.space(); !p.skip(",") {
			return days, nil
		}
	}
}

// weekday reads a day, short or in full.
func (p *parser) weekday() (time.Weekday, error) {
	p.space()
	word := p.rest()
	for i := range word {
		if !isLetter(word[i:]) {
			word = word[:i]
			break
		}
	}
	for d := time.Sunday; d <= time.Saturday; d++ {
		if strings.EqualFold(word, short(d)) || strings.EqualFold(word, d.String()) {
			p.pos += len(word)
			return d, nil
		}
	}
	if word == "" {
		return 0, p.failed("a weekday is missing; write Mon, Tue, Wed, Thu, Fri, Sat or Sun")
	}
	return 0, p.failed("%s is not a weekday; write Mon, Tue, Wed, Thu, Fri, Sat or Sun, or none for every day", quote(word))
}

// clock reads a time, in minutes since midnight.
func (p *parser) clock() (int, error) {
	p.space()
	text := p.rest()
	if i := strings.IndexAny(text, "-– \t,"); i >= 0 {
		text = text[:i]
	}
	hour, minute, ok := strings.Cut(text, ":")
	h, herr := number(hour, 2)
	m, merr := number(minute, 2)
	switch {
	case text == "":
		return 0, p.failed("a time is missing; write it like 09:00")
	case !ok || herr != nil || merr != nil:
		return 0, p.failed("%s is not a time; write it like 09:00 or 17:30, with two digits each", quote(text))
	case h > 24 || m > 59 || h == 24 && m > 0:
		return 0, p.failed("%s is not a time; the day goes from 00:00 to 24:00", quote(text))
	}
	p.pos += len(text)
	return h*60 + m, nil
}

// date reads a date, in days since 1970-01-01.
func (p *parser) date() (int, error) {
	p.space()
	text := p.rest()[:min(len(time.DateOnly), len(p.rest()))]
	t, err := time.Parse(time.DateOnly, text)
	if err != nil || t.Year() < 1970 || t.Year() > 2999 {
		return 0, p.failed("%s is not a date; write it like 2026-12-24", quote(text))
	}
	p.pos += len(text)
	return dateOf(t, time.UTC), nil
}

func (p *parser) dash(next string) error {
	if p.space(); !p.skip("-") {
		if p.rest() == "" {
			return p.failed("the end of the span is missing; write it like -%s", next)
		}
		return p.failed("%s stands where the end of the span is expected; write it like -%s", quote(p.rest()), next)
	}
	return nil
}

func (p *parser) skip(text string) bool {
	rest, ok := strings.CutPrefix(p.rest(), text)
	p.pos = len(p.text) - len(rest)
	return ok
}

// quote returns a part of the text for a message.
func quote(text string) string { return strconv.Quote(text) }

// number reads as many digits.
func number(text string, digits int) (int, error) {
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil || len(text) != digits {
		return 0, strconv.ErrSyntax
	}
	return int(n), nil
}

func isLetter(text string) bool {
	return text != "" && (text[0]|0x20 >= 'a' && text[0]|0x20 <= 'z' || text[0] >= utf8.RuneSelf)
}

// isDate reports whether a text begins as a date does.
func isDate(text string) bool {
	if len(text) < 5 || text[4] != '-' {
		return false
	}
	_, err := number(text[:4], 4)
	return err == nil
}
