// Package sim holds random histories of one session as tests: runners and
// handlers as they are built into an engine, over the log in memory, with fake
// time, a scripted world of models, tools and people, and everything failing now
// and then: appends that are refused or whose acknowledgement is lost, a store
// that is away, processes that die before a command, after its append, or between
// the start of a call and its execution. What must hold is checked against the
// log and against the world's own ledger of what really ran.
package sim
