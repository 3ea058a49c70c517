package gitea

import (
	"cmp"
	"errors"

	"signalbox/internal/events"
)

// hookRun is the part that is read of a run or a job in a payload. Everything
// may be missing.
type hookRun struct {
	ID         int64  `json:"id"`
	RunID      int64  `json:"run_id"` // Of a job.
	Name       string `json:"name"`   // Of a job.
	Path       string `json:"path"`   // Of a run.
	HeadBranch string `json:"head_branch"`
	HeadSHA    string `json:"head_sha"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
}

func readRun(p *hookPayload, repo events.Repo) (events.Payload, error) {
	r := p.WorkflowRun
	if r == nil || r.ID <= 0 {
		return nil, errors.New("workflow_run is missing or null")
	}
	workflow, _ := splitPath(r.Path)
	return r.event(p, events.WorkflowChanged{Repo: repo, Run: r.ID, Workflow: workflow})
}

func readJob(p *hookPayload, repo events.Repo) (events.Payload, error) {
	j := p.WorkflowJob
	if j == nil || j.ID <= 0 || j.RunID <= 0 {
		return nil, errors.New("workflow_job is missing or null")
	}
	return j.event(p, events.WorkflowChanged{Repo: repo, Run: j.RunID, Job: j.Name})
}

// event fills in what runs and jobs have in common.
func (r *hookRun) event(p *hookPayload, out events.WorkflowChanged) (events.Payload, error) {
	// The action of a run says "requested" for what the run itself calls queued
	// or waiting.
	out.Status = cmp.Or(r.Status, p.Action)
	if !word.MatchString(out.Status) {
		return nil, errors.New("status is missing or no word")
	}
	if word.MatchString(r.Conclusion) {
		out.Conclusion = r.Conclusion
	}
	if checkCommit(r.HeadSHA) == nil {
		out.Commit = r.HeadSHA
	}
	out.Branch, out.Sender = r.HeadBranch, p.Sender.person()
	return out, nil
}
