package renovate

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// Analyze reads a log to its end, or to the limit. The log may hold several
// runs, in Renovate's JSON or text form, among lines of other tools, each line
// behind the time of a runner.
//
// If the reader fails, the report is of what was read, is cut, and comes with
// the error. No content of a log is an error.
func Analyze(r io.Reader, limits Limits) (Report, error) {
	limits = limits.orDefault()
	in := newLines(r, limits)
	a := &analyzer{limit: limits.Line}
	var failed error
	for failed == nil {
		l, err := in.next()
		if errors.Is(err, io.EOF) {
			break
		}
		a.line(l)
		failed = err
	}
	a.flush()
	report := a.report
	report.Bytes = in.source.read
	report.Cut = failed != nil || in.more()
	a.judge(&report)
	if failed != nil {
		return report, fmt.Errorf("read log of Renovate after line %d: %w", report.Lines, failed)
	}
	return report, nil
}

// analyzer gathers the report line by line.
type analyzer struct {
	limit  int
	report Report
	runs   []*run
	// dropped counts what was over a bound; wroteDropped says that it wrote.
	dropped      int
	wroteDropped bool
	// pending is a message of the text form that waits for its details.
	pending *record
	details []byte
	// inEnv says that the lines are those of an environment, printed by a runner.
	inGroup, inEnv bool
}

func (a *analyzer) line(l line) {
	a.report.Lines++
	if l.end != nil {
		a.report.Shortened++
	}
	text, at := bare(l.text)
	if a.pending != nil {
		if rest, ok := bytes.CutPrefix(text, []byte(indent)); ok {
			if len(a.details)+len(rest) < a.limit && l.end == nil {
				a.details = append(append(a.details, rest...), '\n')
			}
			return
		}
		a.flush()
	}
	record, ok := parseJSON(text, l.end)
	if !ok {
		record, ok = parseText(text)
		if !ok {
			a.environment(string(text[:min(len(text), minLine)]))
			return
		}
		record.time = at
	}
	record.line = a.report.Lines
	if record.format == formatText && wantsDetails(record) {
		a.pending, a.details = record, a.details[:0]
		return
	}
	a.record(record)
}

// flush handles the message that waited for its details.
func (a *analyzer) flush() {
	if a.pending == nil {
		return
	}
	r := a.pending
	a.pending = nil
	r.addDetails(a.details)
	a.record(r)
}

// Lines with which a runner prints a step: a group, in it the word env, below it
// the variables.
var (
	groupStart = regexp.MustCompile(`^(?:##\[group\]|::group::)`)
	groupEnd   = regexp.MustCompile(`^(?:##\[endgroup\]|::endgroup::)`)
	envHead    = regexp.MustCompile(`^\s*env:\s*$`)
	envLine    = regexp.MustCompile(`^\s+(RENOVATE_DRY_RUN|LOG_FORMAT|LOG_LEVEL): ?(.*)$`)
)

func (a *analyzer) environment(text string) {
	switch {
	case groupStart.MatchString(text):
		a.inGroup, a.inEnv = true, false
	case groupEnd.MatchString(text):
		a.inGroup, a.inEnv = false, false
	case a.inGroup && envHead.MatchString(text):
		a.inEnv = true
	case a.inEnv && !strings.HasPrefix(text, " "):
		a.inEnv = false
	case a.inEnv && len(a.report.Environment) < maxKinds:
		if m := envLine.FindStringSubmatch(text); m != nil {
			a.report.Environment = append(a.report.Environment, Variable{Name: m[1], Value: clean(m[2]), Line: a.report.Lines})
		}
	}
}

// record files a message with its run and repository.
func (a *analyzer) record(r *record) {
	a.inGroup, a.inEnv = false, false
	run := a.runOf(r)
	if run == nil {
		a.dropped++
		a.wroteDropped = a.wroteDropped || isWrite(r.message, "", "")
		return
	}
	run.note(r)
	name := r.text("repository")
	if name == "" {
		run.global(r)
		return
	}
	repository := run.repositoryOf(name, r)
	if repository == nil {
		a.dropped++
		a.wroteDropped = a.wroteDropped || isWrite(r.message, r.text("branch"), "")
		return
	}
	repository.add(r, repository.is(name))
}

// runOf finds the run that a message belongs to, or begins one. It returns nil
// where there are too many.
func (a *analyzer) runOf(r *record) *run {
	for _, run := range slices.Backward(a.runs) {
		if run.takes(r) {
			return run
		}
		if run.same(r) {
			// The newest of the same process is over, and so are those before it.
			break
		}
	}
	if len(a.runs) == maxRuns {
		return nil
	}
	run := &run{process: r.process, context: r.context}
	run.Format = r.format
	a.runs = append(a.runs, run)
	return run
}
