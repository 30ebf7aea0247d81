package bus

import (
	"net"
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	pipeRoom  = 4 << 20     // bytes that may wait to be taken, but for the last write
	pipeKept  = 256 << 10   // bytes of a buffer that is used again
	pipeClose = time.Second // for what is left when it is closed
)

// pipe is the client's end of a connection in process, with a buffer. The
// server's pipe takes a write only as somebody reads it, and the client library
// holds its lock for as long: who wants to publish waits for that, and messages
// go through one by one. Here a write is a copy, and one goroutine passes on
// what has gathered.
type pipe struct {
	net.Conn
	done chan struct{} // nothing more is passed on

	mu       sync.Mutex
	changed  *sync.Cond // what is below
	waiting  []byte
	deadline time.Time // of writes that find no room
	err      error     // why nothing more is taken
}

func newPipe(c net.Conn) *pipe {
	p := &pipe{Conn: c, done: make(chan struct{})}
	p.changed = sync.NewCond(&p.mu)
	go p.passOn()
	return p
}

// Write implements net.Conn. It does not wait, but for room.
func (p *pipe) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.room(); err != nil {
		return 0, err
	}
	p.waiting = append(p.waiting, b...)
	p.changed.Broadcast()
	return len(b), nil
}

// room waits until there is some; mu is held.
func (p *pipe) room() error {
	if p.err != nil || len(p.waiting) < pipeRoom {
		return p.err
	}
	late := false
	if !p.deadline.IsZero() {
		timer := time.AfterFunc(time.Until(p.deadline), func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			late = true
			p.changed.Broadcast()
		})
		defer timer.Stop()
	}
	for p.err == nil && !late && len(p.waiting) >= pipeRoom {
		p.changed.Wait()
	}
	if p.err == nil && len(p.waiting) >= pipeRoom {
		return os.ErrDeadlineExceeded
	}
	return p.err
}

// SetWriteDeadline implements net.Conn, for the writes that follow.
func (p *pipe) SetWriteDeadline(t time.Time) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deadline = t
	return p.err
}

// Close implements net.Conn. What was written before is passed on, as long as
// the server takes it within a second.
func (p *pipe) Close() error {
	p.end(net.ErrClosed)
	_ = p.Conn.SetWriteDeadline(time.Now().Add(pipeClose)) // fails on a closed pipe
	<-p.done
	return p.Conn.Close()
}

// end lets nothing more in.
func (p *pipe) end(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.changed.Broadcast()
}

// passOn gives what waits to the server until the end.
func (p *pipe) passOn() {
	defer close(p.done)
	var batch []byte
	for p.gathered() {
		// Others who are about to publish come first, and go with this batch.
		runtime.Gosched()
		batch = p.swap(batch)
		if _, err := p.Conn.Write(batch); err != nil {
			p.end(err)
			return
		}
	}
}

// gathered waits for something to pass on; false is the end.
func (p *pipe) gathered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.waiting) == 0 && p.err == nil {
		p.changed.Wait()
	}
	return len(p.waiting) > 0
}

// swap takes what waits, and leaves an empty buffer.
func (p *pipe) swap(empty []byte) (batch []byte) {
	if cap(empty) > pipeKept {
		empty = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	batch, p.waiting = p.waiting, empty[:0]
	if len(batch) >= pipeRoom {
		p.changed.Broadcast()
	}
	return batch
}
