// Package pull holds what is known of a pull request at one moment: the values
// that the forge tells, in the form the rest of signalbox reads them, and the
// identity of a diff. It knows no SDK and makes no call.
//
// Strings in these types come from outside (titles, branches, file names,
// logins): they are data, and whoever shows them escapes them for the place.
package pull
