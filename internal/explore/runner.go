package explore

import "culm/aggregate"

// runner are the moves of runner i: as package runner does it, crashes apart.
func (m *moves) runner(i int) {
	r := &m.w.R[i]
	if *r != (runner{}) && m.w.Left.Crash > 0 {
		m.crash(i)
	}
	for c := range r.Slot {
		m.execute(i, uint8(c)) //nolint:gosec // 0 or 1
	}
	if r.Out.Kind != none {
		m.underWay(i)
		return
	}
	for _, c := range m.owed(r) {
		w := m.w
		w.R[i].Out = c
		if c.Kind == end && c.O == 1 { // a call that does not end is given up
			if r.busy() {
				w.Left.GiveUp--
			}
			w.R[i].abandon()
		}
		m.add(w, "", false, "runner %d sends: %s", i+1, c)
	}
	m.unusual(i)
}

// owed are the commands that the runner may give next, by what Next says now.
func (m *moves) owed(r *runner) []cmd {
	step := m.e.nodes[m.w.Node].next
	if step.Kind == aggregate.StepClaim && !r.busy() {
		return []cmd{{Kind: claim, Run: m.e.runs.number(step.RunID)}}
	}
	if r.Run == 0 {
		return nil
	}
	var out []cmd
	unended := false
	for c, s := range r.Slot {
		switch s.S {
		case done:
			out = append(out, cmd{Kind: finish, Run: r.Run, Call: uint8(c)}) //nolint:gosec // 0 or 1
		case gated:
			out = append(out, cmd{Kind: gate, Run: r.Run, Call: uint8(c)}) //nolint:gosec // 0 or 1
		case started:
			unended = true
		}
	}
	if unended && m.w.Left.GiveUp > 0 {
		out = append(out, cmd{Kind: end, Run: r.Run, O: 1})
	}
	if step.Fence == 0 || m.e.runs.number(step.RunID) != r.Run {
		return out
	}
	return append(out, m.owedByStep(r, step)...)
}

func (m *moves) owedByStep(r *runner, step aggregate.Step) []cmd {
	if step.Kind == aggregate.StepTools && len(step.Calls) > 0 {
		return []cmd{{Kind: authorize, Run: r.Run, Call: callOf(step.Calls[0].ID)}}
	}
	if r.busy() {
		return nil
	}
	switch step.Kind {
	case aggregate.StepTools: // started, and not known here
		return []cmd{{Kind: end, Run: r.Run, O: 1}}
	case aggregate.StepReplay:
		return []cmd{{Kind: replay, Run: r.Run}}
	case aggregate.StepAdmit:
		return []cmd{{Kind: admit, Run: r.Run}}
	case aggregate.StepModel:
		return []cmd{{Kind: answer, Run: r.Run}}
	case aggregate.StepFinish:
		c := cmd{Kind: end, Run: r.Run}
		for c.O < 2 && outcomes[c.O] != step.Outcome {
			c.O++
		}
		return []cmd{c}
	}
	return nil
}

// execute lets a started call really run, or meet a second gate.
func (m *moves) execute(i int, c uint8) {
	s := m.w.R[i].Slot[c]
	if s.S != started && s.S != ghost {
		return
	}
	w := m.w
	bad := w.Ledger.runs(c, s.Gen)
	w.R[i].Slot[c].S = done
	if s.S == ghost {
		w.R[i].Slot[c] = slot{}
	}
	m.add(w, bad, false, "runner %d: %s RUNS, %s, generation %d", i+1, callName(c), slotNames[s.S], s.Gen)
	if s.S == started && s.Gen > 0 && m.w.Left.Gates > 0 {
		w := m.w
		w.Left.Gates--
		w.R[i].Slot[c].S = gated
		m.add(w, "", false, "runner %d: %s meets a second gate", i+1, callName(c))
	}
}

// underWay: the command of the runner arrives, its reply is lost, it is sent
// again, or the runner goes on without an answer.
func (m *moves) underWay(i int) {
	r := m.w.R[i]
	if r.Applied {
		w := m.w
		bad := w.R[i].hears((*m.replies)[r.Reply])
		m.add(w, bad, false, "runner %d sends %s again, same id, and is answered as before", i+1, r.Out)
		w = m.w
		w.R[i].Applied, w.R[i].Reply, w.R[i].Again = false, 0, true
		m.add(w, "", false, "runner %d sends %s again, new id", i+1, r.Out)
		w = m.w
		w.R[i].Out, w.R[i].Applied, w.R[i].Reply, w.R[i].Again = cmd{}, false, 0, false
		m.add(w, "", false, "runner %d goes on without an answer to %s", i+1, r.Out)
		return
	}
	w := m.w
	o, bad := m.give(&w, r.Out)
	if bad == "" && m.w.Left.Lost > 0 && o.reply.Stored {
		lost := w
		lost.Left.Lost--
		lost.R[i].Applied, lost.R[i].Reply = true, m.number(o.reply)
		m.add(lost, "", false, "arrives from runner %d: %s%s, the reply is lost", i+1, r.Out, told(o))
	}
	if bad == "" && m.w.Left.Stray > 0 && len(o.facts) > 0 {
		twice := w
		twice.Left.Stray--
		if twice.keep(r.Out) {
			bad := twice.R[i].hears(o.reply)
			m.add(twice, bad, false, "arrives from runner %d, and will again: %s%s", i+1, r.Out, told(o))
		}
	}
	if bad == "" {
		bad = w.R[i].hears(o.reply)
	}
	m.add(w, bad, false, "arrives from runner %d: %s%s", i+1, r.Out, told(o))
}

func (m *moves) number(r reply) uint16 {
	for i, known := range *m.replies {
		if known == r {
			return uint16(i) //nolint:gosec // few
		}
	}
	*m.replies = append(*m.replies, r)
	return uint16(len(*m.replies) - 1) //nolint:gosec // few
}

// hears takes the reply to Out.
func (r *runner) hears(a reply) string {
	c, again := r.Out, r.Again
	r.Out, r.Applied, r.Reply, r.Again = cmd{}, false, 0, false
	if a.Code == aggregate.CodeStaleRun || a.Code == aggregate.CodeSessionClosed {
		r.lose()
		return ""
	}
	switch c.Kind {
	case claim:
		if a.OK {
			r.Run = c.Run
		}
	case authorize:
		if a.OK && a.Decision == "allow" {
			r.Out = cmd{Kind: start, Run: c.Run, Call: c.Call}
		}
	case start:
		if a.OK || a.Code == aggregate.CodeCallNotOpen && again {
			r.Slot[c.Call] = slot{S: started}
		}
	case replay:
		if a.Replay {
			r.Slot[a.Call] = slot{started, a.Gen}
			if !a.Bytes {
				return "other bytes are handed out than the model gave"
			}
		}
	case finish, gate:
		r.Slot[c.Call] = slot{}
	case end, refuseRun:
		if a.OK {
			r.lose()
		}
	}
	return ""
}

// crash loses what the runner has in memory; its command may still arrive.
func (m *moves) crash(i int) {
	w, out := m.w, m.w.R[i]
	w.Left.Crash--
	w.R[i] = runner{}
	m.add(w, "", false, "runner %d crashes", i+1)
	if out.Out.Kind != none && !out.Applied && w.Left.Stray > 0 {
		w.Left.Stray--
		if w.keep(out.Out) {
			m.add(w, "", false, "runner %d crashes; %s is still under way", i+1, out.Out)
		}
	}
}

// unusual is what a runner does seldom: it hands the run over, it refuses it,
// or it gives a command as it likes.
func (m *moves) unusual(i int) {
	r := m.w.R[i]
	if r.Run == 0 {
		return
	}
	if other := &m.w.R[1-i]; m.w.Left.Hand > 0 && !r.busy() && *other == (runner{}) {
		w := m.w
		w.Left.Hand--
		w.R[1-i].Run, w.R[i] = r.Run, runner{}
		m.add(w, "", false, "runner %d hands run %d to the other", i+1, r.Run)
	}
	if m.w.Left.Refuse > 0 {
		w := m.w
		w.Left.Refuse--
		w.R[i].Out = cmd{Kind: refuseRun, Run: r.Run}
		m.add(w, "", false, "runner %d sends: %s", i+1, w.R[i].Out)
	}
	if m.w.Left.Wild == 0 {
		return
	}
	for _, c := range []cmd{
		{Kind: start}, {Kind: start, Call: 1}, {Kind: finish}, {Kind: finish, Call: 1}, {Kind: gate}, {Kind: gate, Call: 1},
		{Kind: authorize}, {Kind: replay}, {Kind: admit}, {Kind: answer}, {Kind: end}, {Kind: end, O: 1}, {Kind: end, O: 2},
	} {
		w := m.w
		w.Left.Wild--
		c.Run = r.Run
		w.R[i].Out = c
		m.add(w, "", false, "runner %d sends, as it likes: %s", i+1, c)
	}
}
