// Package trace lets one follow what an event leads to: over the bus, through
// the handlers, to what is posted in the end.
//
// Two things travel with a context. The id of the event that began it all,
// always: every line of the log that is written with the context tells it, see
// [Logs]. And a span of OpenTelemetry, where somebody asked for traces: a nil
// [Tracer] makes none, and costs next to nothing.
//
// What crosses the bus is put into the headers of a message with [Inject] and
// read back with [Read]; the span is written as the W3C Trace Context has it.
//
// A span tells ids, repositories, numbers, routes and states: no title, no text and no
// secret. Nothing that comes with a request from outside is taken for a trace.
//
// To test code that makes spans, hand it a [NewTo] of an exporter that keeps them.
package trace
