// Package giteatest is a stand-in for Gitea that runs within the process: it
// keeps repositories, pull requests, issues, reviews, comments, reactions,
// statuses, teams, protection rules, runs of workflows and webhooks in memory,
// answers the calls that package gitea makes as Gitea 1.26 answers them, and
// delivers signed webhooks.
//
// People act through its methods ([Server.Push], [Server.Review], ...); tests
// break it ([Server.Fail], [Server.Down], [Server.Slow]) and count the calls it
// got ([Server.Calls]). Package conformance runs the same suite on it and on a
// real Gitea; what that suite does not cover, do not rely on.
//
// What it leaves out: pages, sign-in, git itself, and every endpoint that
// package gitea does not call. Of Actions it does not read workflows: a run is
// started by [Server.Run] with the jobs that a test gives it, also where a real
// Gitea starts one by itself. Of a protection rule it knows who may push
// and merge, statuses, approvals, requested changes and outdated heads; it keeps
// the rest and does nothing with it, as with the dismissal of stale approvals,
// the files, and signatures. Of merging it does not know what a repository
// switches off, and rebases as it squashes.
//
// A Server may be used by many goroutines. Webhooks are delivered one after
// the other by a goroutine that [Server.Close] waits for; [Server.Settle] waits
// until all were answered.
package giteatest
