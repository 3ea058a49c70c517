// Package matrix is the adapter of Matrix: it takes in what is said in the rooms
// that signalbox was invited to, and says what others want said.
//
// In comes what is addressed to signalbox: a message that begins with the prefix,
// that mentions it, or that is said where nobody else is. Reactions to its own
// messages stand for the buttons of a card. Notices, which other bots send, and
// everything of its own are left alone. The same event has the same cause, and is
// handed on again after a restart.
//
// The position in the stream of events is stored only when the receiver has taken
// every event before it. An event that cannot be decrypted yet holds the stored
// position back for a while, so that it is neither lost nor in the way of others.
//
// Out go notices. A message is sent with a transaction id that is made of its
// cause. The homeserver answers a repetition with the id of the first for as long
// as it remembers: Synapse about half an hour, Dendrite until it starts again, and
// both only for the same login. After that the same cause shows a second message.
// Pictures are files of the homeserver, and messages that name them. The file goes to
// no other host, and into an encrypted room only encrypted.
//
// Matrix has no message that one person alone sees in a room, so that a whisper is
// a reply like any other, which calls that person only.
//
// Encryption needs the build tag goolm, and a folder; see [Encryption].
//
// To test code that posts or receives, write a stand-in of [chat.Poster]; the suite
// in internal/chat/conformance says how it behaves.
package matrix
