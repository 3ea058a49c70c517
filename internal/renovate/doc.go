// Package renovate reads what Renovate and the workflow that starts it leave
// behind, and says what is true of a run: [Analyze] reads a log, [Workflow] and
// [CronJob] read how Renovate is configured now, and [Dashboard] reads the issue
// in which Renovate keeps its list.
//
// What proves a dry run is what Renovate itself wrote of it, and nothing else:
// no colour of a job, no absence of a line, no line that merely quotes one. One
// write disproves it. Where neither is in the log, the mode is [ModeUnknown]. A
// log is as trustworthy as the workflow that wrote it, since a step may print
// anything; so judge the workflow of the base branch beside it.
//
// The wording and the rules are those of Renovate 39.264 and 44.121, read in
// their sources.
//
// All of it is pure, bounded in memory and in what it returns, and safe for
// concurrent use. Texts that are returned are shortened, free of control
// characters and of credentials as far as they have a known form; they still
// have to be escaped for the place where they are shown.
package renovate
