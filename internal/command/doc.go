// Package command knows the commands that people write to steer signalbox: it
// finds them in a text, describes them as data from which every help is made,
// and decides which one holds where several contradict each other.
//
// A command is a line of its own that starts with a slash, in a paragraph of
// the text: not in code, in a quote, in a list or in an HTML comment. Whether
// its author may give it, and whether it still fits the pull request, is not
// decided here.
package command
