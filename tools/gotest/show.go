package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// event is a line of "go test -json"; see "go doc test2json".
type event struct {
	Action, Package, Test, Output string
}

// count counts tests; a subtest is a test. A package that fails without a test
// that does, because it was not built or ended early, counts as one.
type count struct{ passed, failed, skipped int }

func (c count) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// running is what is known of a package while its tests run.
type running struct {
	output []event
	result map[string]string
}

// show reads the events of go test and writes what a person wants to see of
// them: the line of each package, and the output of tests that failed or were
// skipped, when their package ends.
func show(w io.Writer, events io.Reader) (count, error) {
	var c count
	packages := map[string]*running{}
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			if writeErr := step(w, line, packages, &c); writeErr != nil {
				return c, writeErr
			}
		}
		if errors.Is(err, io.EOF) {
			return c, nil
		}
		if err != nil {
			return c, fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

func step(w io.Writer, line string, packages map[string]*running, c *count) error {
	var e event
	if json.Unmarshal([]byte(line), &e) != nil {
		_, err := io.WriteString(w, line) // Not an event: go test itself speaks.
		return err
	}
	p := packages[e.Package]
	if p == nil {
		p = &running{result: map[string]string{}}
		packages[e.Package] = p
	}
	switch e.Action {
	case "build-output":
		_, err := io.WriteString(w, e.Output)
		return err
	case "output":
		p.output = append(p.output, e)
	case "pass", "fail", "skip":
		if e.Test != "" {
			p.result[e.Test] = e.Action
			return nil
		}
		delete(packages, e.Package)
		c.add(p, e.Action)
		return p.write(w, e.Action)
	}
	return nil
}

func (c *count) add(p *running, result string) {
	failed := c.failed
	for _, r := range p.result {
		switch r {
		case "pass":
			c.passed++
		case "fail":
			c.failed++
		case "skip":
			c.skipped++
		}
	}
	if result == "fail" && c.failed == failed {
		c.failed++
	}
}

// write writes what remains of a package. A test without a result was running
// when its package ended: what it said is the reason.
func (p *running) write(w io.Writer, result string) error {
	for _, e := range p.output {
		var shown bool
		switch {
		case e.Test != "":
			shown = p.result[e.Test] != "pass" && !strings.HasPrefix(e.Output, "=== ")
		case result == "fail":
			shown = true
		default:
			shown = strings.HasPrefix(e.Output, "ok  \t") || strings.HasPrefix(e.Output, "?   \t")
		}
		if !shown {
			continue
		}
		if _, err := io.WriteString(w, e.Output); err != nil {
			return err
		}
	}
	return nil
}
