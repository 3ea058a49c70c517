// Package chat holds what the chat platforms have in common: who says what
// where, what signalbox says, and how that can fail. Adapters translate between
// it and their platform; handlers decide.
//
// People are named by the id that the platform gives them, never by a name that
// they choose. What an adapter takes in is on the bus before the platform is
// told that it arrived; what it sends names its cause, so that sending twice
// shows one message.
package chat
