// Package events holds what can happen once: a webhook, a chat message, a
// clock tick. An [Event] travels as a CloudEvents 1.0 JSON envelope
// (https://github.com/cloudevents/spec, structured mode) around a typed
// [Payload].
//
// An event is a hint, never the truth: a handler that receives one reads the
// pull request again and decides from what is true now. So an event that is
// lost, repeated or late changes nothing in the end.
//
// The identity of an event comes from its cause (a delivery, a message, a
// scheduled time), so that every replica may publish the same event and the
// bus keeps one.
//
// To test code that consumes events, build them with [New]; [Decode] is the
// only way back to a payload and is fuzzed.
package events
