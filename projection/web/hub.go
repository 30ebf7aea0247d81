package web

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"time"

	"culm/events"
)

// Bounds of what the hub keeps for those who follow.
const (
	ringEvents = 8192
	ringBytes  = 32 << 20
)

// goneType marks the place in the ring where a session was found to be gone; no
// event has such a type.
const goneType = "-"

// hub keeps the latest events of all sessions in the order in which they came,
// numbered from 1. Clients read at their own pace: who is so slow that an event
// has left before it was read has lost it, and is told. So memory does not
// depend on how many follow, nor on how slowly.
type hub struct {
	feed      events.Feed
	log       *slog.Logger
	maxEvents int
	maxBytes  int

	mu     sync.Mutex
	epoch  string // of this numbering; another one after the feed was lost
	ring   []events.Record
	first  uint64 // number of ring[0]
	bytes  int
	grown  chan struct{} // closed, and replaced, when something was added
	live   bool          // the feed is subscribed
	minted uint64        // epochs so far
	start  int64
}

func newHub(feed events.Feed, log *slog.Logger, start time.Time) *hub {
	h := &hub{feed: feed, log: log, maxEvents: ringEvents, maxBytes: ringBytes, grown: make(chan struct{}), start: start.UnixNano()}
	h.reset()
	return h
}

// reset begins a new numbering: nobody can go on from the old one.
func (h *hub) reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.minted++
	h.epoch = strconv.FormatInt(h.start, 36) + "-" + strconv.FormatUint(h.minted, 10)
	h.ring, h.first, h.bytes, h.live = nil, 1, 0, false
	h.wake()
}

// wake is called with the lock held.
func (h *hub) wake() {
	close(h.grown)
	h.grown = make(chan struct{})
}

// run follows the feed until ctx ends; a feed that is lost is followed anew.
func (h *hub) run(ctx context.Context) {
	for {
		err := h.feed.Follow(ctx, events.FollowOptions{CaughtUp: h.subscribed}, func(r events.Record) error { h.add(r); return nil })
		if ctx.Err() != nil {
			return
		}
		h.log.Warn("the feed of the page was lost, to be followed again", "err", err)
		h.reset()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return
		}
	}
}

func (h *hub) subscribed() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.live = true
	h.wake()
}

func (h *hub) add(r events.Record) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ring = append(h.ring, r)
	h.bytes += len(r.Payload)
	drop := 0
	for len(h.ring)-drop > h.maxEvents || h.bytes > h.maxBytes && drop < len(h.ring)-1 {
		h.bytes -= len(h.ring[drop].Payload)
		h.ring[drop] = events.Record{} // so that its bytes can go before the array does
		drop++
	}
	h.ring, h.first = h.ring[drop:], h.first+uint64(drop)
	h.wake()
}

// cursor is a place in the hub's numbering: the next event to be read.
type cursor struct {
	epoch string
	next  uint64
}

// String is the cursor as Last-Event-ID carries it: the last event that was read.
func (c cursor) String() string { return c.epoch + "." + strconv.FormatUint(c.next-1, 10) }

func parseCursor(s string) (cursor, bool) {
	epoch, digits, ok := strings.Cut(s, ".")
	n, err := strconv.ParseUint(digits, 10, 63)
	return cursor{epoch, n + 1}, ok && err == nil && epoch != ""
}

// end waits until the feed is subscribed and returns the place after the newest
// event: whatever is stored from now on comes after it.
func (h *hub) end(ctx context.Context) (cursor, error) {
	for {
		h.mu.Lock()
		c, live, grown := cursor{h.epoch, h.first + uint64(len(h.ring))}, h.live, h.grown
		h.mu.Unlock()
		if live {
			return c, nil
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return c, refuse("unavailable", "the live feed is not there yet")
		}
	}
}

// holds says whether reading can go on at the cursor without a gap.
func (h *hub) holds(c cursor) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.has(c)
}

func (h *hub) has(c cursor) bool {
	return c.epoch == h.epoch && h.first <= c.next && c.next <= h.first+uint64(len(h.ring))
}

// read returns up to limit events from the cursor on, or what is closed when
// there are some. ok is false where the cursor is in no place of the ring.
func (h *hub) read(c cursor, limit int) (batch []events.Record, grown <-chan struct{}, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.has(c) {
		return nil, nil, false
	}
	rest := h.ring[c.next-h.first:]
	return append([]events.Record(nil), rest[:min(limit, len(rest))]...), h.grown, true
}
