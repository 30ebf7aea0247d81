package bus

import "time"

// minSweep is the number of remembered renewals up to which none is dropped.
const minSweep = 1024

// fresh says whether this engine renewed the lease within the last third.
func (l *Leases) fresh(session, run string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	w, ok := l.written[session]
	return ok && w.run == run && time.Since(w.at) < l.opts.unwritten()
}

// remember notes a renewal. Renewals older than a third of the lease say
// nothing any more and are dropped whenever their number has doubled, so that
// the memory holds at most twice the sessions that are alive here.
func (l *Leases) remember(session string, w leaseWrite) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.written[session] = w
	if len(l.written) < l.sweepAt {
		return
	}
	for s, old := range l.written {
		if time.Since(old.at) >= l.opts.unwritten() {
			delete(l.written, s)
		}
	}
	l.sweepAt = max(minSweep, 2*len(l.written))
}

func (l *Leases) forget(session string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.written, session)
}

// inGrace says whether every run counts as alive. A reconnect begins a new
// grace: while the server was away nobody could renew.
func (l *Leases) inGrace() bool {
	reconnects := l.nc.Stats().Reconnects
	l.mu.Lock()
	defer l.mu.Unlock()
	if reconnects != l.reconnects {
		l.reconnects = reconnects
		l.grace = time.Now().Add(l.opts.Duration)
	}
	return time.Now().Before(l.grace)
}
