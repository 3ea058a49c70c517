package actions

import (
	"fmt"
	"maps"

	"go.yaml.in/yaml/v3"
)

// Job is what a workflow says of one job. Expressions are as written; see [Task.Env] and [Task.Wanted].
type Job struct {
	// ID is the key of the job in the workflow.
	ID string
	// If is the condition; empty means that there is none.
	If string
	// Env holds the environment of the workflow and the job.
	Env   map[string]string
	Steps []Step
}

// Step is one step of a job.
type Step struct {
	Name string
	Run  string
	Env  map[string]string
}

// payload is the workflow that Gitea hands to a runner: the one of the repository with the one job.
type payload struct {
	Env  map[string]string `yaml:"env"`
	Jobs map[string]struct {
		If    string            `yaml:"if"`
		Env   map[string]string `yaml:"env"`
		Steps []struct {
			Name string            `yaml:"name"`
			Run  string            `yaml:"run"`
			Env  map[string]string `yaml:"env"`
		} `yaml:"steps"`
	} `yaml:"jobs"`
}

func parseJob(workflow []byte) (Job, error) {
	var p payload
	if err := yaml.Unmarshal(workflow, &p); err != nil {
		return Job{}, fmt.Errorf("parse the workflow: %w", err)
	}
	if len(p.Jobs) != 1 {
		return Job{}, fmt.Errorf("parse the workflow: it has %d jobs, not one", len(p.Jobs))
	}
	j := Job{Env: map[string]string{}}
	maps.Copy(j.Env, p.Env)
	for id, job := range p.Jobs {
		j.ID, j.If = id, job.If
		maps.Copy(j.Env, job.Env)
		for _, step := range job.Steps {
			j.Steps = append(j.Steps, Step(step))
		}
	}
	return j, nil
}

// Wanted reports whether the job's condition holds. A job whose condition does not hold is finished as
// Skipped by the runner: Gitea itself looks at conditions only when a job that is needed has failed.
func (t *Task) Wanted() (bool, error) {
	if t.Job.If == "" {
		return true, nil
	}
	value, err := t.evaluate(unwrap(t.Job.If))
	if err != nil {
		return false, fmt.Errorf("condition of job %s: %w", t.Job.ID, err)
	}
	return truth(value), nil
}

// Env returns the environment of a step, with that of the job and the workflow: expressions are replaced
// by their values.
func (t *Task) Env(step int) (map[string]string, error) {
	env := maps.Clone(t.Job.Env)
	if step >= 0 && step < len(t.Job.Steps) {
		maps.Copy(env, t.Job.Steps[step].Env)
	}
	for name, text := range env {
		value, err := t.expand(text)
		if err != nil {
			return nil, fmt.Errorf("environment variable %s of job %s: %w", name, t.Job.ID, err)
		}
		env[name] = value
	}
	return env, nil
}
