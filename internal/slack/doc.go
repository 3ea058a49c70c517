// Package slack is the adapter to Slack: it takes in what people say and press,
// and is the [chat.Poster] of that platform. It speaks the types of package chat;
// nobody outside sees the SDK.
//
// # In
//
// Events come by Socket Mode, where signalbox connects to Slack ([Adapter.Run]), or
// by HTTP, where Slack connects to signalbox ([Adapter.Handler]). Both decode alike
// and promise:
//
//   - Slack hears that an event arrived only after the [chat.Receiver] has taken it,
//     within the three seconds that Slack waits. What was not taken comes again with
//     the same cause; a slash command or a button that was not taken shows an error
//     to whoever used it.
//   - A mention in a channel is taken from app_mention, a message in the conversation
//     with signalbox from message, so that nothing comes twice.
//   - What bots say is not taken, whoever they speak for, nor what Slackbot repeats.
//   - A message that is edited into a mention is taken with Edited set. Other edits,
//     also those in a direct conversation, are not taken.
//   - What is of another workspace is not taken: there the same ids are other people.
//
// # Out
//
// A message carries its cause in its metadata, which only apps see. [Adapter.Post]
// remembers what it has posted; what it does not remember, it first looks for among
// the messages of the last day, as it may have been posted by another replica, or
// by a call whose answer was lost. That needs the right to read the history, see
// docs/slack.md; without it the message is posted again. A message that shows a picture
// takes no metadata: there the name of the file ends with a digest of the cause.
//
// # A token that is refused
//
// It ends neither [Adapter.Run] nor the program. It is logged once, shown in the
// metric signalbox_chat_up, and tried again every few minutes.
//
// # Testing
//
// Package slacktest is a Slack in memory.
package slack
