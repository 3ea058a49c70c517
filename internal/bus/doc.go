// Package bus carries everything that travels inside signalbox over NATS
// JetStream: events, facts, work, dead letters and the records of pull
// requests. It runs its own embedded server, which no other process can
// reach, or uses an external one that several replicas share. The code above
// it cannot tell which.
//
// # What is promised
//
// Publish returns when the event is stored: on disk with the default
// configuration of the embedded server, on a quorum with a replicated stream.
// Two events with one id within the duplicate window are one.
//
// Delivery is at least once. A handler that returns nil has the message
// acknowledged; an [events.Permanent] error puts it aside as a dead letter
// with the reason; any other error, and a panic, has it delivered again after
// a delay that grows; a handler whose context ended leaves it, unacknowledged, to
// whoever comes next. These rules live in one place and hold for every consumer.
//
// A bucket holds last values and a view of them in memory, so that reading
// costs nothing: a reader that lags sees the newest value and not the steps
// before it. What this process writes is in its view when the write returns.
// Sync is the barrier: after it, every write that was acknowledged anywhere
// before the call is in the view.
//
// Work is for one pull request at a time: it is never handled twice at once,
// across replicas too, as long as a replica that lost its connection stops
// when its context ends, which happens before another replica may take over.
//
// # Testing
//
// Package bustest gives a bus in a temporary directory.
package bus
