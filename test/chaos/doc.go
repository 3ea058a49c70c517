// Package chaos lets people, a cluster and everything between them do what they like
// to signalbox, in an order made from a seed, and looks what is true afterwards.
//
// A run plants a repository on the real servers and starts the program. In each storm
// people push, rebase, review, dismiss, retarget and give commands that they may and may
// not give, objects of Flux turn, and meanwhile the program is killed, Gitea answers
// with errors, late or not at all, also after having done what it was asked for, the API
// server is away, and webhooks are lost, doubled and late. After each storm everything
// works again, and what is shown must become what is true: an [Oracle] of its own, which
// knows nothing of the program, says what that is.
//
// "make chaos" runs it for long; "make e2e" for a minute. The environment sets
//
//	CHAOS_SEED   what the first run is made from, or "random"; 1 if it is not set
//	CHAOS_RUNS   how many runs at most; the seeds of the others follow that of the first
//	CHAOS_TIME   after which no further run is begun, such as 10m
//
// The same seed makes the same deeds. How they meet is up to the machine, so a failure
// may need some runs of its seed to be seen again.
//
// The clock of the machine is not turned: a process has no other, and a program that is
// linked statically cannot be given one. Jumps of the clock are tried in one process, by
// TestClockJumps of cmd/bot.
package chaos
