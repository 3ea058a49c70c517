package gitea

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"signalbox/internal/fact"
	"signalbox/internal/pull"
)

// apiJob is a job as Gitea gives it. What it says of its steps is of no use:
// each has the status of the job.
type apiJob struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	RunAttempt  int64     `json:"run_attempt"`
	HeadSHA     string    `json:"head_sha"`
	Status      string    `json:"status"`
	Conclusion  string    `json:"conclusion"`
	RunnerName  string    `json:"runner_name"`
	StartedAt   time.Time `json:"started_at"`
	CompletedAt time.Time `json:"completed_at"`
}

func (j apiJob) fact() fact.Job {
	return fact.Job{
		ID: j.ID, Name: j.Name, Status: j.Status, Conclusion: j.Conclusion, Runner: j.RunnerName,
		Started: instant(j.StartedAt), Completed: instant(j.CompletedAt),
	}
}

// finishedKey names a run that is over. A run that is started again keeps its
// id, and gets other times.
type finishedKey struct {
	repo, run          int64
	name               string
	conclusion         string
	started, completed int64
}

func keyOfRun(repo pull.Repo, r apiRun) finishedKey {
	key := finishedKey{
		repo: repo.ID, run: r.ID, conclusion: r.Conclusion,
		started: r.StartedAt.Unix(), completed: r.CompletedAt.Unix(),
	}
	if key.repo == 0 {
		key.name = repo.String()
	}
	return key
}

// jobList are the jobs of a run in the order of their ids.
type jobList []apiJob

func (l jobList) facts() []fact.Job { return convertAll(l, apiJob.fact) }

// attempt returns how often a runner took a job of the run; a run itself does
// not tell.
func (l jobList) attempt() int64 {
	var attempt int64
	for _, j := range l {
		attempt = max(attempt, j.RunAttempt)
	}
	return attempt
}

// over says that nothing of the run goes on. A run says that it is completed as
// soon as a job of it was cancelled.
func (l jobList) over() bool {
	return !slices.ContainsFunc(l, func(j apiJob) bool { return j.Status != "completed" })
}

// jobs returns the jobs of a run. Those of a run that is over are remembered;
// nobody changes what it returns.
func (c *Client) jobs(ctx context.Context, repo pull.Repo, r apiRun) (jobList, error) {
	key := keyOfRun(repo, r)
	if r.Status == "completed" {
		if list, ok := c.finished.Get(key); ok {
			return list, nil
		}
	}
	list, err := c.readJobs(ctx, repo, r.ID)
	if errors.Is(err, errNoRun) {
		err = fmt.Errorf("%w: it was deleted while it was read", ErrIncomplete)
	}
	if err != nil {
		return nil, fmt.Errorf("jobs of run %d: %w", r.ID, err)
	}
	if r.Status == "completed" && list.over() {
		c.finished.Add(key, list)
	}
	return list, nil
}

// errNoRun means that the repository has no such run.
var errNoRun = errors.New("no such run")

// readJobs reads the jobs of a run of the repository.
func (c *Client) readJobs(ctx context.Context, repo pull.Repo, run int64) (jobList, error) {
	list, err := exact(ctx, pages[apiJob]{
		client: c,
		route:  "/repos/:owner/:repo/actions/runs/:id/jobs",
		path:   fmt.Sprintf("%s/actions/runs/%d/jobs", repoPath(repo), run),
		field:  "jobs",
	}, func(j apiJob) int64 { return j.ID })
	switch {
	case err != nil:
		return nil, err
	case len(list) == 0:
		// A run has a job at least; this is how Gitea answers for one that is gone.
		return nil, errNoRun
	}
	slices.SortFunc(list, func(a, b apiJob) int { return cmp.Compare(a.ID, b.ID) })
	return list, nil
}
