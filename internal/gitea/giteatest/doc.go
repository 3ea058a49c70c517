// Package giteatest is a stand-in for Gitea that runs within the process: it
// keeps repositories, pull requests, reviews, comments, statuses, teams and
// webhooks in memory, answers the calls that package gitea makes as Gitea
// 1.26 answers them, and delivers signed webhooks.
//
// People act through its methods ([Server.Push], [Server.Review], ...); tests
// break it ([Server.Fail], [Server.Down], [Server.Slow]) and count the calls it
// got ([Server.Calls]). Package conformance runs the same suite on it and on a
// real Gitea; what that suite does not cover, do not rely on.
//
// What it leaves out: pages, sign-in, git itself, branch protection, Actions,
// conflicts (a merge takes the head's side), and every endpoint that package
// gitea does not call.
//
// A Server may be used by many goroutines. Webhooks are delivered one after
// the other by a goroutine that [Server.Close] waits for; [Server.Settle] waits
// until all were answered.
package giteatest
