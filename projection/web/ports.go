package web

import (
	"context"
	"iter"

	"culm/aggregate"
	"culm/events"
)

// Querier answers queries of views; the JSON on both sides is that of the
// queries over NATS (docs/contract.md, "Reads"). It does not fail: a refusal is
// a reply with "ok":false and an error.
type Querier interface {
	Query(ctx context.Context, view, verb string, request []byte) (reply []byte)
}

// Commands gives a command to the rules. Actor, Session and Name are valid
// tokens, ID is set, Body is at most MaxBody bytes; Digest is left to the
// implementation. An error means that the outcome is not known: the same
// command with the same id may be given again.
type Commands interface {
	Do(ctx context.Context, r aggregate.Request) (aggregate.Reply, error)
}

// Reader is the strongly consistent read of one session. An error means that no
// answer came.
type Reader interface {
	Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error)
}

// Log is the reading half of events.Log.
type Log interface {
	Last(ctx context.Context, session string) (uint64, error)
	Read(ctx context.Context, session string, after, through uint64) iter.Seq2[events.Record, error]
}

// Deltas brings what runs stream while a model answers or a tool runs. It is
// stored nowhere and may be lost.
type Deltas interface {
	// Follow hands over what the runs of a session stream, one JSON object each,
	// until stop is called. handle does not block, and may keep delta.
	Follow(session string, handle func(run string, delta []byte)) (stop func(), err error)
}

// Gone takes the names of deleted sessions to the page.
type Gone chan string

// maxGone bounds the names that wait to be told.
const maxGone = 256

// NewGone has nothing to tell yet.
func NewGone() Gone { return make(Gone, maxGone) }

// Tell hands a name over and does not block: one too many is shown until the
// page is loaded anew.
func (g Gone) Tell(session string) {
	select {
	case g <- session:
	default:
	}
}

// Status is what the page shows about the process it speaks to.
type Status struct {
	Version string `json:"version"`
	// Ready says that the views have caught up since the start.
	Ready bool `json:"ready"`
	// BehindEvents and BehindSeconds are how far the views are behind the log.
	BehindEvents  int64   `json:"behind_events"`
	BehindSeconds float64 `json:"behind_seconds"`
	// Rebuilding names the views that are being computed anew.
	Rebuilding []string `json:"rebuilding"`
}

// Gauges are the figures that are read when somebody asks for the metrics.
type Gauges struct {
	Lag              []ViewLag
	WaitingItems     int64
	OldestWaiting    float64 // seconds, 0 for none
	SessionsByStatus map[string]int64
}

// ViewLag is how far one view is behind the log.
type ViewLag struct {
	View    string
	Events  int64
	Seconds float64
}
