// Package recording is what is stored on the bus, as lines: to look at, to keep in a
// file, and to evaluate again elsewhere.
//
// A file is JSON, one object a line. The first is the [Header]. Then come the lines of
// what was true when the recording began, in no order that means anything, and of the
// events that were still kept; a line of kind [Now] ends them. What follows changed
// since, each line when it was stored.
//
// A recording holds names, titles and texts of pull requests, policies and messages of
// controllers. It holds no secret: those are never on the bus, and what people said in
// chats, where a one-time code may stand, is left out.
package recording
