package demo

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"signalbox/internal/yamlfile"
)

// prompt reads commands until the input ends or says so.
func (p *player) prompt(ctx context.Context) error {
	p.screen.blank()
	p.screen.tell("Now it is your turn. Try recover, then approve carol, then forge; help lists everything.")
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	lines := readLines(ctx, p.In)
	for {
		p.screen.raw("\nsignalbox> ")
		if err := p.screen.failed(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			p.screen.blank()
			return ctx.Err()
		case text, ok := <-lines:
			if !ok {
				p.screen.blank()
				return nil
			}
			switch err := p.answer(ctx, text); {
			case errors.Is(err, errQuit):
				return nil
			case err != nil:
				return err
			}
		}
	}
}

// readLines reads lines in a goroutine until the input or the context ends.
func readLines(ctx context.Context, in io.Reader) <-chan string {
	lines := make(chan string)
	go func() {
		defer close(lines)
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			select {
			case lines <- scanner.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	return lines
}

// answer does what one line asks for.
func (p *player) answer(ctx context.Context, text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	var names []string
	for _, c := range p.commands() {
		if strings.EqualFold(c.name, words[0]) {
			return p.obey(ctx, c, words[1:])
		}
		names = append(names, c.name)
	}
	p.screen.tell("There is no command %q; %s", words[0], yamlfile.Suggest(words[0], names))
	return nil
}

func (p *player) obey(ctx context.Context, c command, arguments []string) error {
	if len(arguments) > 1 || len(arguments) == 1 && c.argument == "" {
		p.screen.tell("Write %s", strings.TrimSpace(c.name+" "+c.argument))
		return nil
	}
	return c.run(ctx, strings.Join(arguments, ""))
}

// move is something that is tried at the prompt.
type move struct {
	words string
	act   func(context.Context) error
	// want ends the wait; nil waits for anything that is posted.
	want func(*view) error
	// patience is how long to wait; 5s if it is zero.
	patience time.Duration
}

// defaultPatience is many times what signalbox needs to post something.
const defaultPatience = 5 * time.Second

// try does something and shows what comes of it. What is refused, or has no
// effect, is said.
func (p *player) try(ctx context.Context, m move) error {
	p.screen.tell("%s", m.words)
	before, err := p.eye.look(ctx)
	if err != nil {
		return err
	}
	if err := m.act(ctx); err != nil {
		p.screen.tell("That is refused: %v.", err)
		return nil
	}
	want := m.want
	if want == nil {
		want = before.posted
	}
	result, err := p.watch(ctx, before, want, cmp.Or(m.patience, defaultPatience))
	if err != nil && !late(err) {
		return err
	}
	if !p.report(result) {
		p.screen.say(gutter, run{"Nothing is posted: the verdict stays as it was.", plain})
	}
	return nil
}
