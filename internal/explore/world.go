package explore

// Bounds say what is explored.
type Bounds struct {
	Enforce bool   // the session has enforce_policy
	Loop    string // "", or on_park of a loop of two iterations
	// FromRequest begins before the first claim, else with the two calls open.
	FromRequest bool
	// Depth bounds the number of steps, 0 for none.
	Depth int
	Times
}

// Times say how often something may happen. What they do not name happens as
// often as it can: claims, rounds, decisions, leases that run out where nobody
// holds the run, run.resume and loop.abandon.
type Times struct {
	Gates   uint8 // second gates that replays meet
	Crash   uint8
	Lapse   uint8 // leases that run out under a runner that lives
	Lost    uint8 // replies lost
	Stray   uint8 // commands that arrive twice or after their sender has gone
	GiveUp  uint8 // calls that do not end
	Hand    uint8 // runs handed from one runner to the other
	Wild    uint8 // commands that a runner gives as it likes
	Cancel  uint8
	Stop    uint8
	Close   uint8
	Request uint8 // run.request with a prompt
	Plan    uint8 // changes of plan mode
	Mode    uint8 // changes of the session's mode, auto and back
	Deny    uint8 // the rule that denies both calls
	Expire  uint8 // what waits expires
	Refuse  uint8 // run.refuse
}

// world is one state of everything. It is a value and compares as one.
type world struct {
	Node   uint32
	At     at
	R      [2]runner
	P      [2]cmd // sent by each person and not arrived
	Stray  [2]cmd // will arrive, if ever, with nobody to hear the answer
	Ledger ledger
	Left   Times
}

// runner is what a runner has in memory.
type runner struct {
	Run     uint8 // that it holds, 0 for none
	Out     cmd   // the command under way
	Applied bool  // Out has appended, its reply was lost
	Reply   uint16
	Again   bool // Out was sent before under another id
	Slot    [2]slot
}

// slot is a started call.
type slot struct {
	S   slotState
	Gen uint8 // of the approval that started it, 0 for none
}

type slotState uint8

const (
	idle    slotState = iota
	started           // its start was answered: it may run now
	done              // it has run and is to be reported
	gated             // it has met a second gate, and has not run
	ghost             // nobody waits for it any more, but it may still run
)

var slotNames = [...]string{"", "started", "done", "at a second gate", "given up"}

func (r *runner) busy() bool { return r.Slot[0].S != idle || r.Slot[1].S != idle }

// lose is what is left when the runner learns that it has lost the run.
func (r *runner) lose() {
	r.Run, r.Out, r.Applied, r.Reply, r.Again = 0, cmd{}, false, 0, false
	r.abandon()
}

// abandon gives up what runs.
func (r *runner) abandon() {
	for i := range r.Slot {
		if r.Slot[i].S == started {
			r.Slot[i].S = ghost
		}
		if r.Slot[i].S != ghost {
			r.Slot[i] = slot{}
		}
	}
}

// canonical makes worlds equal that differ only in who is called first.
func (w *world) canonical() {
	if less(w.P[1], w.P[0]) {
		w.P[0], w.P[1] = w.P[1], w.P[0]
	}
	if less(w.Stray[1], w.Stray[0]) {
		w.Stray[0], w.Stray[1] = w.Stray[1], w.Stray[0]
	}
}

func (c cmd) key() uint64 {
	return uint64(c.Kind)<<32 | uint64(c.Run)<<24 | uint64(c.Call)<<16 | uint64(c.Gen)<<8 | uint64(c.O)
}

func less(a, b cmd) bool { return a.key() < b.key() }
