package bus

import (
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// restAtMost is how long looks are left out before one is made anyway.
	restAtMost = time.Minute
	// restShare keeps those looks at 1/restShare of the time where they take long.
	restShare = 400
)

// Rest leaves out looks at the log that would find what the last one found,
// because the embedded server has stored and removed nothing since; for at most
// a minute, or 400 times what the last look took. Of a server that is not
// embedded nothing is known, and every look is due. It is not safe for
// concurrent use.
type Rest struct {
	server *Server
	most   time.Duration
	stand  stand // when the last look began
	known  bool  // the last look was clean, and its stand is known
	began  time.Time
	took   time.Duration
}

// stand tells what a server holds from what it held before: equal stands mean
// that nothing was stored or removed in between. A removal and an append of the
// same size would pass for that; the live feed shows the append, which moved
// counts, and a look is made sooner or later anyway.
type stand struct {
	server  *server.Server // another one after a restart
	bytes   uint64
	streams int
	moved   uint64
}

// NewRest makes one for one looker; server is nil where it is not embedded.
func NewRest(server *Server) *Rest { return &Rest{server: server, most: restAtMost} }

// Due says whether a look can find something new. moved counts what changed at
// the looker's own side.
func (r *Rest) Due(moved uint64) bool {
	if !r.known || time.Since(r.began) >= max(r.most, restShare*r.took) {
		return true
	}
	now, ok := r.server.stand(moved)
	return !ok || now != r.stand
}

// Begin notes that a look begins.
func (r *Rest) Begin(moved uint64) {
	r.began = time.Now()
	r.stand, r.known = r.server.stand(moved)
}

// End notes that the look that began has ended; clean says that the same look
// again would have nothing to do.
func (r *Rest) End(clean bool) {
	r.took = time.Since(r.began)
	r.known = r.known && clean
}

// stand asks the server in this process, not over the network. False if s is
// nil or the server does not run.
func (s *Server) stand(moved uint64) (stand, bool) {
	if s == nil {
		return stand{}, false
	}
	ns := s.ns.Load()
	if ns == nil || !ns.JetStreamEnabled() {
		return stand{}, false
	}
	u := ns.GlobalAccount().JetStreamUsage()
	return stand{ns, u.Store, u.Streams, moved}, true
}
