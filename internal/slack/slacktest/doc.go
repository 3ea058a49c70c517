// Package slacktest is a Slack in memory: one workspace with one app, its Web API,
// and its events by Socket Mode or by HTTP. It knows what signalbox uses.
//
// It is like Slack where that is inconvenient: what is not acknowledged comes again
// under the same event id, a mention comes as a message too where both are
// subscribed, the app hears its own words in direct conversations, an edit without
// blocks keeps those there were, and an answer in the thread of a message that is
// gone stands outside of threads. It differs in what would take time: it repeats
// after a moment, and without an end, and a file is shown when the call that shows it
// is answered, where Slack needs some seconds more.
//
// What an adapter does that Slack would not understand is in [Server.Problems].
package slacktest
