// Package window knows the hours at which something is allowed or denied: spans
// of the clock on a wall, such as "Mon-Fri 09:00-17:00", and schedules of them in
// a time zone. It is pure: the time is handed in, and [Schedule.At] says what
// holds then and until when exactly.
//
// # Spans
//
//	03:00-06:00                         every day
//	Mon-Fri 09:00-17:00                 on some weekdays: Mon, Mon-Fri, Mon,Wed,Fri, Fri-Mon
//	Fri 22:00-02:00                     across midnight; it belongs to the day on which it starts
//	Fri 16:00-Mon 07:00                 across days, once a week
//	2026-12-24 18:00-2026-12-27 08:00   once
//	00:00-24:00                         the whole day
//
// A span holds its first instant and not its last. Weekdays are English, short
// or in full, in any letter case.
//
// # Daylight saving
//
// The ends of a span are what the clock on the wall shows. Twice a year that is
// not one instant:
//
//   - An end that the clock skips in spring means the first instant after the gap.
//   - An end that it shows twice in autumn means what is safe: what is denied
//     starts at the first and ends at the second, what is allowed starts at the
//     second and ends at the first. A span within the hour that comes twice is
//     denied from its first start to its second end, and not allowed at all.
//
// # Time zones
//
// [Zone] finds zones by their names in the IANA database. A program that runs
// where no such database is installed, as in an image made from scratch, has to
// import time/tzdata in its main package.
package window
