package actions

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	runnerv1 "code.gitea.io/actions-proto-go/runner/v1"
	"code.gitea.io/actions-proto-go/runner/v1/runnerv1connect"
	"connectrpc.com/connect"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// Result is how a step or a job ended.
type Result int

// The results that Gitea knows.
const (
	Success   = Result(runnerv1.Result_RESULT_SUCCESS)
	Failure   = Result(runnerv1.Result_RESULT_FAILURE)
	Cancelled = Result(runnerv1.Result_RESULT_CANCELLED)
	Skipped   = Result(runnerv1.Result_RESULT_SKIPPED)
)

// ErrCancelled is returned when Gitea has ended the job in the meantime, because somebody cancelled it or
// a newer run took its place. Nothing more can be reported of it.
var ErrCancelled = errors.New("the job was cancelled")

// rowsAtOnce is how many lines one request carries, as with Gitea's own runner.
const rowsAtOnce = 100

// Task is a job that a runner has taken. Gitea shows it as in progress until Finish. Its methods must not
// be called concurrently.
type Task struct {
	// ID is the task's id, which is not that of the job: every attempt of a job is a task.
	ID int64
	// Job is what the workflow says of the job.
	Job Job
	// Context is the context github, or gitea, of expressions. Context["event"] is the payload of the event.
	Context map[string]any
	// Secrets and Vars are what the workflow may use. Secrets never reach the log, which shows *** instead:
	// that is up to the runner, and not to Gitea.
	Secrets, Vars map[string]string

	client  runnerv1connect.RunnerServiceClient
	mask    *strings.Replacer
	state   *runnerv1.TaskState
	current int   // Index of the step that runs.
	written int64 // Lines of the log that Gitea has.
}

func (r *Runner) take(t *runnerv1.Task) (*Task, error) {
	job, err := parseJob(t.GetWorkflowPayload())
	if err != nil {
		return nil, fmt.Errorf("read task %d: %w", t.GetId(), err)
	}
	task := &Task{
		ID: t.GetId(), Job: job, Context: t.GetContext().AsMap(), Secrets: t.GetSecrets(), Vars: t.GetVars(),
		client: r.client, state: &runnerv1.TaskState{Id: t.GetId(), StartedAt: timestamppb.Now()},
	}
	task.mask = task.masking()
	for i := range job.Steps {
		task.state.Steps = append(task.state.Steps, &runnerv1.StepState{Id: int64(i)})
	}
	return task, nil
}

// masking returns what hides the secrets and the tokens of the job. The longest go first, since one may
// contain another.
func (t *Task) masking() *strings.Replacer {
	values := slices.Collect(maps.Values(t.Secrets))
	for _, name := range []string{"token", "gitea_runtime_token"} {
		token, _ := t.Context[name].(string)
		values = append(values, token)
	}
	slices.SortFunc(values, func(a, b string) int { return len(b) - len(a) })
	var pairs []string
	for _, value := range values {
		if value != "" {
			pairs = append(pairs, value, "***")
		}
	}
	return strings.NewReplacer(pairs...)
}

// Log adds lines to the log, as output of the current step. A line must not contain a line break.
func (t *Task) Log(ctx context.Context, lines ...string) error {
	if step := t.step(); step != nil && step.StartedAt == nil {
		step.StartedAt, step.LogIndex = timestamppb.Now(), t.written
	}
	for batch := range slices.Chunk(lines, rowsAtOnce) {
		rows := make([]*runnerv1.LogRow, len(batch))
		for i, line := range batch {
			rows[i] = &runnerv1.LogRow{Time: timestamppb.Now(), Content: t.mask.Replace(line)}
		}
		if err := t.send(ctx, rows, false); err != nil {
			return err
		}
		if step := t.step(); step != nil {
			step.LogLength += int64(len(rows))
		}
	}
	return t.update(ctx)
}

// EndStep ends the current step; what is logged afterwards belongs to the next one.
func (t *Task) EndStep(ctx context.Context, result Result) error {
	t.endStep(result)
	return t.update(ctx)
}

// Finish ends the job. The current step has the same result, and those after it are skipped. The log ends
// with a line of the runner, as with Gitea's own; a skipped job has none, and so no log.
func (t *Task) Finish(ctx context.Context, result Result) error {
	return t.FinishAt(ctx, result, time.Now())
}

// FinishAt is Finish for a job that ended at another time: Gitea believes the runner, and cleans up what it
// keeps of jobs that ended long ago.
func (t *Task) FinishAt(ctx context.Context, result Result, at time.Time) error {
	if last := lastLine(result); last != "" {
		// Gitea closes a log only with a line.
		if err := t.send(ctx, []*runnerv1.LogRow{{Time: timestamppb.Now(), Content: last}}, true); err != nil {
			return err
		}
	}
	t.endStep(result)
	for t.step() != nil {
		t.endStep(Skipped)
	}
	t.state.Result, t.state.StoppedAt = wire(result), timestamppb.New(at)
	return t.update(ctx)
}

func (t *Task) step() *runnerv1.StepState {
	if t.current >= len(t.state.GetSteps()) {
		return nil
	}
	return t.state.GetSteps()[t.current]
}

func (t *Task) endStep(result Result) {
	step := t.step()
	if step == nil {
		return
	}
	now := timestamppb.Now()
	if step.StartedAt == nil && result != Skipped {
		step.StartedAt, step.LogIndex = now, t.written
	}
	step.Result, step.StoppedAt = wire(result), now
	t.current++
}

func lastLine(r Result) string {
	switch r {
	case Success:
		return "🏁  Job succeeded"
	case Failure, Cancelled:
		return "🏁  Job failed"
	default:
		return ""
	}
}

func wire(r Result) runnerv1.Result { return runnerv1.Result(r) }

// send writes rows to the end of the log. With the last of them Gitea moves the log to where it stays.
func (t *Task) send(ctx context.Context, rows []*runnerv1.LogRow, last bool) error {
	answer, err := t.client.UpdateLog(ctx, connect.NewRequest(&runnerv1.UpdateLogRequest{
		TaskId: t.ID, Index: t.written, Rows: rows, NoMore: last,
	}))
	if err != nil {
		return fmt.Errorf("write the log of task %d: %w", t.ID, err)
	}
	if want := t.written + int64(len(rows)); answer.Msg.GetAckIndex() != want {
		return fmt.Errorf("write the log of task %d: Gitea has %d lines, not %d", t.ID, answer.Msg.GetAckIndex(), want)
	}
	t.written = answer.Msg.GetAckIndex()
	return nil
}

// update tells Gitea the state of the job and its steps.
func (t *Task) update(ctx context.Context) error {
	answer, err := t.client.UpdateTask(ctx, connect.NewRequest(&runnerv1.UpdateTaskRequest{State: t.state}))
	if err != nil {
		return fmt.Errorf("report task %d: %w", t.ID, err)
	}
	if answer.Msg.GetState().GetResult() != t.state.GetResult() {
		return fmt.Errorf("report task %d: %w", t.ID, ErrCancelled)
	}
	return nil
}
