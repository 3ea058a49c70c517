// Package expression evaluates conditions on one Kubernetes object, written in
// CEL, the language of Kubernetes' own validation rules:
//
//	object.status.state != "attached" || object.status.robustness == "healthy"
//
// [Compile] reads a condition once, and [Program.Eval] asks it of an object. A
// program may be used by several goroutines at once. The package makes no call,
// keeps nothing between evaluations, and has no clock: what an expression says
// of an object changes only with the object.
//
// # Language
//
// One variable, object, of any type. Besides the standard library and macros of
// CEL there are optional fields (object.?status), the macros for two variables
// (labels.all(k, v, ...)), and cel-go's libraries of strings, lists, sets and
// math. Whole and broken numbers compare by value. The functions that
// Kubernetes adds itself, such as quantity(), are not there, and the regular
// expression of matches() has to be written out. The maps of an
// object are walked in the order of their keys.
//
// # Limits
//
// Whoever may open a pull request may write an expression, so each is bounded:
// its source by [MaxLength], the number of its macros and the depth of what they
// make, its evaluation by [MaxCost] and each value by [MaxSize]. CEL charges for a call when it is done; what can cost more than
// its arguments are long (replace, join, distinct, ...) is charged for before.
//
// # Errors
//
// A problem of the source is an [*Error], with its place. An error of an
// evaluation quotes the expression and names fields, but holds no value of the
// object, which may be secret.
package expression
