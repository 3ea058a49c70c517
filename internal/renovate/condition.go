package renovate

import (
	"slices"
	"strings"
)

// conditions are those that can skip a job, its own and those of the jobs that it
// needs, and what they come to on an event.
type conditions struct {
	texts []string
	runs  Runs
}

// maxConditions bounds the conditions that are told of a job.
const maxConditions = 20

// condition returns the conditions of a job on the event in hand. What was found
// of a job is kept; jobs that need each other never start, so it does not matter
// what is said of them, and they count as ones that perhaps do.
func (w *workflow) condition(event, id string) conditions {
	if known, ok := w.conditions[id]; ok {
		return known
	}
	w.conditions[id] = conditions{runs: RunsMaybe}
	job := w.jobs[id]
	out := conditions{runs: RunsYes}
	own := scalar(child(job, "if"))
	if own != "" {
		out.texts = append(out.texts, clean(own))
		out.runs = w.holds(own, w.names(event, func(string) (value, bool) { return value{}, false }))
	}
	if !strings.Contains(own, "always()") {
		for _, need := range items(child(job, "needs")) {
			if w.jobs[scalar(need)] == nil {
				continue
			}
			needed := w.condition(event, scalar(need))
			out.runs = both(out.runs, needed.runs)
			for _, text := range needed.texts {
				if len(out.texts) < maxConditions && !slices.Contains(out.texts, text) {
					out.texts = append(out.texts, text)
				}
			}
		}
	}
	w.conditions[id] = out
	return out
}

// holds evaluates a condition.
func (w *workflow) holds(text string, names scope) Runs {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "${{"); ok && expressionEnd(inner) == len(inner)-2 {
		text = inner[:len(inner)-2]
	}
	switch v := evaluate(text, names); {
	case v.isUnknown():
		return RunsMaybe
	case v.truthy():
		return RunsYes
	}
	return RunsNo
}

// both returns what two conditions come to together.
func both(a, b Runs) Runs {
	switch {
	case a == RunsNo || b == RunsNo:
		return RunsNo
	case a == RunsMaybe || b == RunsMaybe:
		return RunsMaybe
	}
	return RunsYes
}

// maxWork bounds the jobs, needs and steps that are looked at, each on each
// event, with 100 bytes of a script as one more. A file can name the same steps
// in every job, and the same script in every step.
const maxWork = 100_000

// size is what is to be looked at on each event.
func (w *workflow) size() (n int) {
	for _, job := range w.jobs {
		n += 1 + len(items(child(job, "needs")))
		for _, step := range items(child(job, "steps")) {
			n += 1 + len(scalar(child(step, "run")))/100
		}
		if n > maxWork {
			return n
		}
	}
	return n
}
