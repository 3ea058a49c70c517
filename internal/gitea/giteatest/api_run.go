package giteatest

import (
	"cmp"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// stateWords are the words for the states that lists are filtered by.
var stateWords = map[string][]jobState{
	"pending": {waiting}, "waiting": {waiting}, "requested": {waiting}, "action_required": {waiting},
	"queued": {queued}, "in_progress": {running}, "completed": {succeeded, failed, skipped, cancelled},
	"failure": {failed}, "success": {succeeded}, "skipped": {skipped}, "neutral": {skipped},
	"cancelled": {cancelled}, "timed_out": {cancelled},
}

// wanted reads the filter by state.
func (r *request) wanted() (func(jobState) bool, error) {
	words := r.URL.Query()["status"]
	var states []jobState
	for _, word := range words {
		of, ok := stateWords[word]
		if !ok {
			return nil, &apiError{http.StatusBadRequest, "Invalid status " + word}
		}
		states = append(states, of...)
	}
	return func(s jobState) bool { return len(words) == 0 || slices.Contains(states, s) }, nil
}

func listRuns(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	wanted, err := r.wanted()
	if err != nil {
		return err
	}
	q := r.URL.Query()
	var list []any
	for _, found := range slices.Backward(repo.runs) {
		if sha := q.Get("head_sha"); sha != "" && sha != found.sha {
			continue
		}
		if branch := q.Get("branch"); branch != "" && found.ref != "refs/heads/"+branch {
			continue
		}
		// It is the trigger that is filtered by, and something else that is shown.
		if event := q.Get("event"); event != "" && event != found.trigger || !wanted(found.state()) {
			continue
		}
		list = append(list, r.server.runJSON(found))
	}
	return r.listed("workflow_runs", list, true)
}

// listed answers with a page of a list within an object.
func (r *request) listed(field string, list []any, header bool) error {
	page := cut(r, list)
	if page == nil {
		page = []any{}
	}
	if header {
		r.w.Header().Set("X-Total-Count", strconv.Itoa(len(list)))
	}
	writeJSON(r.w, http.StatusOK, map[string]any{field: page, "total_count": len(list)})
	return nil
}

// listJobs knows no jobs of a run that is not there, and says no more.
func listJobs(r *request, repo *repo) error {
	wanted, err := r.wanted()
	if err != nil {
		return err
	}
	var list []any
	if found := repo.run(r.number("id")); found != nil {
		for _, j := range found.jobs {
			if wanted(j.state) {
				list = append(list, r.server.jobJSON(found, j))
			}
		}
	}
	return r.listed("jobs", list, true)
}

// getLog answers 500 for a log without a line.
func getLog(r *request, repo *repo) error {
	if err := r.needDoer(); err != nil {
		return err
	}
	_, j := repo.jobByID(r.number("id"))
	switch {
	case j == nil, j.runner == nil, j.gone:
		return errNotFound
	case j.log.Len() == 0:
		return &apiError{http.StatusInternalServerError, ""}
	}
	r.w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := io.WriteString(r.w, j.log.String())
	return err
}

// epoch is shown where there is no time.
var epoch = time.Unix(0, 0).UTC()

func orEpoch(t time.Time) time.Time {
	if t.IsZero() {
		return epoch
	}
	return t
}

func (s *Server) runJSON(r *run) map[string]any {
	status, conclusion := r.state().shown()
	out := map[string]any{
		"id": r.id, "url": s.root + "/api/v1/repos/" + r.repo.fullName() + "/actions/runs/" + strconv.Itoa(int(r.id)), "html_url": s.runURL(r),
		"display_title": r.title, "path": r.workflow + "@" + r.ref, "event": r.event, "run_attempt": 0, "run_number": r.number,
		"head_sha": r.sha, "status": status, "actor": s.userJSON(r.by), "trigger_actor": s.userJSON(r.by),
		"repository": s.repoJSON(r.repo, None), "started_at": orEpoch(r.started), "completed_at": orEpoch(r.stopped),
	}
	if branch, ok := strings.CutPrefix(r.ref, "refs/heads/"); ok {
		out["head_branch"] = branch
	}
	if conclusion != "" {
		out["conclusion"] = conclusion
	}
	return out
}

func (s *Server) jobJSON(r *run, j *job) map[string]any {
	status, conclusion := j.state.shown()
	api := s.root + "/api/v1/repos/" + r.repo.fullName() + "/actions"
	out := map[string]any{
		"id": j.id, "url": api + "/jobs/" + strconv.Itoa(int(j.id)), "html_url": s.jobURL(r, j),
		"run_id": r.id, "run_url": api + "/runs/" + strconv.Itoa(int(r.id)), "name": j.name, "labels": j.labels, "run_attempt": j.attempt,
		"head_sha": r.sha, "status": status, "steps": []any{}, "created_at": orEpoch(r.started),
		"started_at": orEpoch(j.started), "completed_at": orEpoch(j.stopped),
	}
	if branch, ok := strings.CutPrefix(r.ref, "refs/heads/"); ok {
		out["head_branch"] = branch
	}
	if conclusion != "" {
		out["conclusion"] = conclusion
	}
	if j.runner != nil {
		out["runner_id"], out["runner_name"] = j.runner.id, j.runner.name
	}
	return out
}

// sendRun sends an event about a run. There is none where the default branch
// does not have the workflow.
func (s *Server) sendRun(r *run) {
	file, ok := s.model.workflowPath(r.repo, r.workflow)
	if !ok {
		return
	}
	status, _ := r.state().shown()
	if status == "queued" || status == "waiting" {
		status = "requested"
	}
	s.send(r.repo, "workflow_run", map[string]any{
		"action": status, "workflow": map[string]any{"id": r.workflow, "name": cmp.Or(r.name, r.workflow), "path": file, "state": "active"},
		"workflow_run": s.runJSON(r), "sender": s.userJSON(r.by),
	})
}

// sendJob sends an event about a job.
func (s *Server) sendJob(r *run, j *job) {
	status, _ := j.state.shown()
	s.send(r.repo, "workflow_job", map[string]any{"action": status, "workflow_job": s.jobJSON(r, j), "sender": s.userJSON(r.by)})
}
