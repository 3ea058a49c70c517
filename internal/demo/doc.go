// Package demo shows signalbox at work in a terminal: a [World] of stand-ins
// for Gitea and a cluster, a story that is played on it, and a prompt to try
// things.
//
// It knows signalbox only from the outside. People and controllers act on the
// stand-ins, and what signalbox posted is read through the API of Gitea, as a
// person would see it. Whoever calls [Play] runs signalbox on the world.
//
// Each step of the story says what must come true; one that does not within
// its time is an error of [Play]. So the demo is a check from end to end too.
//
// A World and a call of Play are used by one goroutine. To test what the
// screen shows, give Play a buffer; commands come from any reader.
package demo
