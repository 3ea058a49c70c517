// Package gitea is the adapter to Gitea (and Forgejo, which answers alike): a
// client of its API and the intake of its webhooks. It speaks the types of the
// domain; nobody outside sees the SDK.
//
// # The client
//
// [Client] promises to whoever decides by what it returns:
//
//   - Complete or an error. A list is read to its end, and a list that changed
//     while it was read is read again. See [ErrIncomplete].
//   - The commit that was asked for. A writer can push a branch that is named
//     like a commit id, and some endpoints of Gitea then answer for the branch.
//     Methods that take a commit id use endpoints that cannot be misled so.
//   - Bounded. Every attempt has a timeout, every body a limit.
//   - Repeated only where a repeat is safe: see [Client.CreateComment] and
//     [Client.Merge] for the calls that are not.
//   - Silent about the token: no error contains it.
//
// A Client may be used by many goroutines.
//
// # The intake
//
// [NewIntake] answers 2xx to a webhook only after the event was published, and
// [Decode] turns a delivery into events without trusting any part of it. Gitea
// delivers once, waits five seconds and never tries again, and its deliveries
// come in any order: an event is a hint to read again.
//
// # Testing
//
// Package giteatest holds a stand-in for Gitea, and giteatest/conformance the
// suite that keeps the stand-in and the real server alike.
package gitea
