// Package runner is the shell that pays what a session is owed: it claims
// runs, calls models, runs tools and replays, and reports each outcome as a
// command. It decides nothing; what comes next is [Engine].Next, and every
// command is judged again by the rules.
//
// One goroutine drives a session while it has work:
//
//	for the runner's context has not ended {
//		step := Next(session)
//		claim   run.claim; somebody else was first: leave it
//		admit   round.start
//		model   Generate, then round.finish (which admits the next iteration)
//		tools   tool.park for questions; for each other call tool.authorize, and
//		        if that allows it tool.start, Execute, tool.finish
//		replay  replay.start, Execute what it handed out, tool.finish
//		finish  run.finish
//		wait, nothing: let go until somebody wakes the session
//	}
//
// What it promises:
//
//  1. Nothing is started before its admission is durable, nor after the
//     runner's context has ended or the run was asked to cancel.
//  2. Only runs that this Runner claimed, or that were handed back to it, are
//     driven. A call that it did not start itself is never run, and a call it
//     lost sight of is left without an outcome, for a person to decide.
//  3. With the lease lost (stale_run) the run is dropped at once: a late
//     result is thrown away.
//  4. When its context ends, calls under way get [Config].Grace to end and be
//     reported; then they are left as they are. The run is not cancelled.
//  5. No call runs that the policy did not allow or a person did not approve,
//     and an approved one only with the bytes that were approved.
//  6. Refusals end in run.finish or in letting go, never in a busy loop.
//  7. An engine out of reach costs no run: it is kept in hand with all that is
//     known of it, until somebody wakes the session; see [Runner.Resting].
package runner
