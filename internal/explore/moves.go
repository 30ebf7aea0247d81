package explore

import (
	"fmt"
)

// step is one move to another world.
type step struct {
	text string
	w    world
	bad  string // what it breaks
	// forced: the move is no way out that a session should need (a cancel, a
	// close), so that it does not count as one.
	forced bool
}

// moves collects the moves out of a world.
type moves struct {
	e       *engine
	w       world
	out     []step
	spoken  bool // texts are wanted
	replies *[]reply
}

func (m *moves) add(w world, bad string, forced bool, format string, args ...any) {
	w.canonical()
	s := step{w: w, bad: bad, forced: forced}
	if m.spoken {
		s.text = fmt.Sprintf(format, args...)
	}
	m.out = append(m.out, s)
}

// give lets a command arrive; w is changed.
func (m *moves) give(w *world, c cmd) (*outcome, string) {
	o := m.e.do(question{w.Node, w.At, c})
	if o.err != nil {
		return o, o.err.Error()
	}
	before := m.e.nodes[w.Node]
	if c.fenced() && before.live(m.e) != c.Run && (o.reply.OK || o.reply.Stored) {
		return o, fmt.Sprintf("the fence of run %d is obeyed while run %d lives", c.Run, before.live(m.e))
	}
	for _, f := range o.facts {
		if bad := w.Ledger.sees(w, m.e, f, before); bad != "" {
			return o, f.EventType() + ": " + bad
		}
	}
	w.Node = o.node
	if run := m.e.nodes[o.node].s.Run; run != nil && run.Status == "suspended" {
		w.Ledger.Suspended |= 1 << m.e.runs.number(run.ID)
	}
	return o, ""
}

// told says what came of a command.
func told(o *outcome) string {
	s := ""
	for _, f := range o.facts {
		s += " -> " + f.EventType()
	}
	if !o.reply.OK {
		return s + " refused " + o.reply.Code
	}
	if s == "" {
		return " ok"
	}
	return s
}

func (m *moves) all() {
	for i := range m.w.R {
		if i == 1 && m.w.R[1] == m.w.R[0] {
			break
		}
		m.runner(i)
	}
	m.people()
	m.clients()
	m.nature()
}

// people send decisions about what they see; they arrive later.
func (m *moves) people() {
	n := m.e.nodes[m.w.Node]
	for i, sent := range m.w.P {
		if i == 1 && sent == m.w.P[0] {
			break
		}
		if sent.Kind != none {
			w := m.w
			w.P[i] = cmd{}
			o, bad := m.give(&w, sent)
			m.add(w, bad, false, "arrives: %s%s", sent, told(o))
			if w.Left.Stray > 0 && len(o.facts) > 0 {
				w.Left.Stray--
				if w.keep(sent) {
					m.add(w, bad, false, "arrives, and will again: %s%s", sent, told(o))
				}
			}
			continue
		}
		for _, it := range n.waiting {
			for _, k := range []kind{approve, deny, resolve} {
				if k == resolve && !it.unknown {
					continue
				}
				w := m.w
				w.P[i] = cmd{Kind: k, Call: it.call, Gen: it.gen}
				m.add(w, "", false, "a person sends: %s", w.P[i])
			}
		}
		if len(n.waiting) == 2 { // one is taken for the other
			w := m.w
			w.P[i] = cmd{Kind: approve, Call: n.waiting[0].call, Gen: n.waiting[1].gen}
			m.add(w, "", false, "a person sends: %s", w.P[i])
		}
	}
}

// clients give commands that arrive at once.
func (m *moves) clients() {
	for _, c := range []struct {
		kind   kind
		left   func(*Times) *uint8
		forced bool
	}{
		{cancel, func(b *Times) *uint8 { return &b.Cancel }, true},
		{closing, func(b *Times) *uint8 { return &b.Close }, true},
		{stop, func(b *Times) *uint8 { return &b.Stop }, true},
		{request, func(b *Times) *uint8 { return &b.Request }, false},
		{planOn, func(b *Times) *uint8 { return &b.Plan }, false},
		{planOff, func(b *Times) *uint8 { return &b.Plan }, false},
		{auto, func(b *Times) *uint8 { return &b.Mode }, false},
		{ask, func(b *Times) *uint8 { return &b.Mode }, false},
		{resume, nil, false},
		{abandon, nil, false},
	} {
		w := m.w
		if c.left != nil {
			if left := c.left(&w.Left); *left == 0 {
				continue
			} else {
				*left--
			}
		}
		o, bad := m.give(&w, cmd{Kind: c.kind})
		if len(o.facts) > 0 {
			m.add(w, bad, c.forced, "a client: %s%s", cmd{Kind: c.kind}, told(o))
		}
	}
}

// nature is what nobody does: policies change, time passes, strays arrive.
func (m *moves) nature() {
	if m.w.Left.Deny > 0 {
		w := m.w
		w.Left.Deny, w.At.denies = 0, true
		m.add(w, "", false, "the policy gains a rule that denies both calls")
	}
	if m.w.Left.Expire > 0 {
		w := m.w
		w.Left.Expire, w.At.late = 0, true
		m.add(w, "", false, "time passes")
	}
	if m.w.At.late {
		w := m.w
		if o, bad := m.give(&w, cmd{Kind: look}); len(o.facts) > 0 {
			m.add(w, bad, false, "the engine sweeps%s", told(o))
		}
	}
	m.lapse()
	for i, c := range m.w.Stray {
		if c.Kind == none || i == 1 && c == m.w.Stray[0] {
			continue
		}
		w := m.w
		w.Stray[i] = cmd{}
		o, bad := m.give(&w, c)
		m.add(w, bad, false, "arrives late: %s%s", c, told(o))
	}
}

// lapse: the lease runs out; a runner that holds the run has let it, which is
// bounded, or is gone.
func (m *moves) lapse() {
	n := m.e.nodes[m.w.Node]
	if n.s.Run == nil || n.s.Run.Status != "live" {
		return
	}
	w, run := m.w, m.e.runs.number(n.s.Run.ID)
	if m.w.R[0].Run == run || m.w.R[1].Run == run {
		if w.Left.Lapse == 0 {
			return
		}
		w.Left.Lapse--
	}
	o, bad := m.give(&w, cmd{Kind: lapse})
	m.add(w, bad, false, "the lease runs out%s", told(o))
}

// keep remembers a command that will arrive once more; false without room.
func (w *world) keep(c cmd) bool {
	for i := range w.Stray {
		if w.Stray[i].Kind == none {
			w.Stray[i] = c
			return true
		}
	}
	return false
}
