// Package projection keeps what people and programs look up: views of all
// sessions in one SQLite database, computed from the events alone.
//
// A [Projector] follows the log; each batch of events becomes rows, and the
// checkpoints of the sessions it belongs to, in one transaction. So a view is
// never ahead of its checkpoint nor behind it, whenever the process dies. A
// checkpoint is the session's birth, sequence and head hash: a session that was
// deleted and created again, and a store that was restored or cut, do not fit
// their checkpoints and are read anew from their beginning.
//
// How an event comes here:
//
//	Feed ──live──▶ applier ──▶ live.apply ──▶ rows, in memory ──▶ one transaction
//	Log ──reads of what is missing──▶ ┘  (follow.go, jobs.go, apply*.go, write.go)
//
// The duties of a caller:
//
//  1. [Open] the database. One process at a time may; it is refused otherwise.
//  2. [Projector.Run] until the context ends. An error means that the process
//     should end too; what is committed stays.
//  3. Query at any time ([Projector.Sessions] and its neighbours, or
//     [Projector.Answer] by name, which bus.StartQueries offers over NATS). Queries during a catch-up answer what is
//     there; AsOf says up to where.
//  4. [Projector.Close] after Run has returned.
//
// An event that cannot be applied parks its session: the rows stay as they were
// before it, the session's status is stuck with the reason, and the event is
// tried again at the next start. The other sessions go on.
//
// Every view has a version. Where the stored one differs from the program's,
// the view is dropped and computed anew when the database is opened for Run.
// [Check] compares all rows with aggregate's fold of the log, which shares no
// code with how they were made.
//
// To add a view:
//
//  1. Write its table into views/NAME.sql, with a column session.
//  2. Add its row to rows.go and a mapper to views.go.
//  3. Add it to the list in views.go, version 1, with how it is written.
//  4. Set its rows in apply*.go.
//  5. Compute what its rows must be in check_expect.go, from the fold.
package projection
