// Package explore goes through every interleaving of a small world around one
// session, over the real [aggregate.Decide], [aggregate.Evolve] and
// [aggregate.Next], breadth first and without repeating a state.
//
// The world: two runners that behave as package runner does (and, where the
// bounds say so, a few times as they like), two persons who decide what waits,
// and clients that cancel, stop, close, resume, and change plan mode and policy.
// The model asks once for two calls that change the world, one that the policy
// asks about and one that it allows; then it answers with text. A command
// arrives any time after it was sent, so that it may rest on a state that is
// long gone; it may arrive twice; its reply may be lost, and then the sender
// asks again under the same id or a new one. A runner may crash at any step,
// between the start of a call and its execution too, and its last command may
// still arrive. A lease may run out under a runner that lives: it goes on.
//
// The physical world is part of the state: which call really ran, under which
// start and with which bytes.
//
// What holds in every state that is reached (see ledger):
//
//   - a call runs at most once for each start, and each approval gives one
//     start; a call that the policy asks about never runs without an approval;
//   - it runs with exactly the bytes that the model gave;
//   - nothing of a run starts after its cancel was accepted, and no approval
//     given before a cancel or a stop is replayed after it;
//   - nothing that changes the world starts in plan mode, nor once a rule of the
//     policy denies it;
//   - a run starts once and ends once, one run lives at a time, and its fence is
//     the only one that is obeyed;
//   - State.Validate holds;
//   - from every state persons and runners can bring the session to rest: every
//     call with an outcome, no run, no loop that blocks. Neither a cancel nor a
//     close is needed for that.
//
// What is abstract: ids follow from how many of their kind there are, the
// sequence of an event from the number of runs, receipts are kept by the model
// of the sender instead of the state (the rule of the handler: a command id
// that has appended is answered with the first reply), and time is a switch
// between before and after the expiry of what waits.
package explore
