// Package actions is a runner for the workflows of a real Gitea, in the hands of a test: it takes a job,
// and the test decides what the job says and how it ends.
//
//	runner, err := actions.Register(ctx, gitea, actions.Options{Owner: alice, Repository: "alice/home"})
//	...
//	task, err := runner.Next(ctx)
//	env, err := task.Env(0)
//	err = task.Log(ctx, "one line", "another")
//	err = task.Finish(ctx, actions.Success)
//	err = runner.Close(ctx)
//
// It speaks the protocol of Gitea's own runner and behaves like it where Gitea can tell: it asks with the
// version of the list of tasks, evaluates the condition of a job ([Task.Wanted]), masks secrets and ends the
// log with a line of its own. It runs nothing by itself, and evaluates of the expressions what tests need.
//
// What Gitea 1.26 makes of it, as the tests here hold it to:
//
//   - A run has no attempt (run_attempt is 0) and no name of its workflow but in path, which is file@ref. Times
//     that are not set are 1970-01-01T00:00:00Z. A run on a pull request has no head_branch.
//   - A run by schedule says the event by which the schedule was registered, mostly push. Only the filter
//     event=schedule tells it apart. It has no inputs, not even their defaults.
//   - A run is completed and cancelled as soon as one job is cancelled, also while others wait or run.
//   - The list of runs can be filtered by head_sha (all 40 digits), event, status, branch and actor; an
//     unknown actor is answered with 500. Other parameters, such as workflow, are ignored without a word.
//   - A rerun keeps the ids of the run and of its jobs and raises run_attempt of the jobs, once a runner has
//     them. The log of the attempt before is gone from the API.
//   - Every step has the state of its job.
//   - A job whose condition does not hold is skipped by the runner. A job is skipped by Gitea when one that it
//     needs has failed; it has no runner then.
//   - A line of a log is the time of the runner in UTC with seven digits, a space and at most 64 KiB.
//   - A log is answered with 404 before the job is taken, when it was cleaned up, and when the run is deleted;
//     and with 500 when the job was taken and nothing was written, as with most jobs that are skipped.
//   - Jobs of a run that does not exist are an empty list.
//   - Runs, jobs, logs and workflows need the right to read the repository, and the scope read:repository.
//     Runners, secrets and variables need the owner: a collaborator with administrator's rights is refused.
//   - The runners of a repository are those registered for it, without those of its owner or of the instance that
//     take its jobs too. One is busy for ten seconds after it has told of a job, and online for a minute.
package actions
