// Package render shows a verdict to people: as the Markdown of a comment, as
// the line of a commit status and as text for a terminal. What is said in a
// conversation is a [Talk], from which the forms for Slack, Matrix and the
// others are made. The same verdict always gives the same bytes, so a comment or
// a card is edited only when the verdict changed.
//
// Everything that comes from outside is escaped for the place it is shown in:
// it cannot mention anybody, refer to an issue, or break out of its cell.
package render
