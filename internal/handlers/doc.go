// Package handlers decides what to do with an event, a changed fact and a piece
// of work; there is one file for each.
//
//	event ──▶ [Events] ──▶ work ──▶ [Evaluator] ──▶ statuses, comment, record
//	fact  ──▶ [Facts]  ──▶ work ──┘
//
// Promises:
//
//   - An event only asks for work. The evaluation reads what is true now, so
//     lost, repeated and reordered events change nothing in the end;
//     [Reconciler] finds what nobody told.
//   - Effects are idempotent: the comment is found by its marker, a status is
//     posted when it differs, a record is kept by compare-and-set.
//   - A verdict that stays as it was costs no call to the forge when only facts
//     changed.
//   - A fact that changes while it is being read is not missed: see
//     [Evaluator.Handle].
//
// Handlers know no SDK: each declares the small interfaces that it needs. The
// error they return decides what becomes of the message; see
// [signalbox/internal/events.Permanent].
package handlers
