package main

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/events"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// fake is a backend that answers as told and remembers what was asked.
type fake struct {
	replies []aggregate.Reply // of Do, in order; the last one again and again
	doErr   error
	sent    []sent
	state   string            // JSON of Read
	states  map[string]string // the same by session, where they differ
	readErr error
	refuse  *aggregate.Error // answer of Read
	stored  map[string][]events.Record
	live    []events.Record // what the feed has
	closed  bool
	views   map[string][]string // answers of Query by name, in order; nil is no projector
	asked   []string            // queries, with their requests
}

type sent struct {
	session, name, body string
	opts                sendOptions
}

func (f *fake) Do(_ context.Context, session, name string, body any, opts sendOptions) (aggregate.Reply, error) {
	b, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return aggregate.Reply{}, err
	}
	f.sent = append(f.sent, sent{session, name, string(b), opts})
	if f.doErr != nil {
		return aggregate.Reply{}, f.doErr
	}
	if len(f.replies) == 0 {
		return aggregate.Reply{OK: true, Session: session, Sequence: 1, Event: &aggregate.EventRef{Sequence: 1, Type: name}}, nil
	}
	r := f.replies[0]
	if len(f.replies) > 1 {
		f.replies = f.replies[1:]
	}
	return r, nil
}

func (f *fake) Read(_ context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	switch {
	case f.readErr != nil:
		return aggregate.ReadReply{}, f.readErr
	case f.refuse != nil:
		return aggregate.ReadReply{Session: session, Error: f.refuse}, nil
	case q.Events != nil:
		r := aggregate.ReadReply{OK: true, Session: session}
		for _, rec := range f.stored[session] {
			if rec.Seq <= q.Events.After {
				continue
			}
			if len(r.Events) == 2 { // small pages
				r.Next = strconv.AppendUint(nil, rec.Seq-1, 10)
				break
			}
			r.Events = append(r.Events, rec.Payload)
		}
		return r, nil
	}
	state := f.state
	if f.states != nil {
		var there bool
		if state, there = f.states[session]; !there {
			return aggregate.ReadReply{Session: session, Error: &aggregate.Error{Code: aggregate.CodeSessionNotFound}}, nil
		}
	}
	return aggregate.ReadReply{OK: true, Session: session, Birth: "01BIRTH", Sequence: 9, HeadHash: "ab12", State: []byte(state)}, nil
}

func (f *fake) Query(_ context.Context, view, verb string, request []byte) ([]byte, error) {
	name := view + "." + verb
	f.asked = append(f.asked, name+" "+string(request))
	if f.views == nil {
		return nil, errNoEngine
	}
	answers := f.views[name]
	if len(answers) == 0 {
		return []byte(`{"ok":true,"as_of":{},"items":[]}`), nil
	}
	if len(answers) > 1 {
		f.views[name] = answers[1:]
	}
	return []byte(answers[0]), nil
}

func (f *fake) Log() logReader    { return fakeLog{f} }
func (f *fake) Feed() events.Feed { return feedOf(f.live) }
func (f *fake) Close()            { f.closed = true }

func (f *fake) Deltas(ctx context.Context, _ string, handle func(string, string, []byte)) error {
	handle("demo", "r1", []byte(`{"kind":"text","text":"Hel"}`))
	handle("demo", "r1", []byte(`{"kind":"text","text":"lo\u001b[2J"}`))
	handle("demo", "r1", []byte(`{"kind":"text","text":"once more","attempt":2}`))
	handle("demo", "r1", []byte(`not json`))
	<-ctx.Done()
	return nil
}

func (f *fake) Last(_ context.Context, session string) (uint64, error) {
	rs := f.stored[session]
	if len(rs) == 0 {
		return 0, events.ErrNotFound
	}
	return rs[len(rs)-1].Seq, nil
}

// fakeLog is the reading side of the streams.
type fakeLog struct{ f *fake }

func (l fakeLog) Last(ctx context.Context, s string) (uint64, error)  { return l.f.Last(ctx, s) }
func (l fakeLog) Sessions(ctx context.Context) ([]events.Info, error) { return l.f.Sessions(ctx) }

func (l fakeLog) Read(_ context.Context, session string, after, through uint64) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		if len(l.f.stored[session]) == 0 {
			yield(events.Record{}, events.ErrNotFound)
			return
		}
		for _, r := range l.f.stored[session] {
			if r.Seq > after && (through == 0 || r.Seq <= through) && !yield(r, nil) {
				return
			}
		}
	}
}

func (f *fake) Sessions(context.Context) ([]events.Info, error) {
	var infos []events.Info
	for _, name := range slices.Sorted(maps.Keys(f.stored)) {
		rs := f.stored[name]
		infos = append(infos, events.Info{Session: name, FirstSeq: rs[0].Seq, LastSeq: rs[len(rs)-1].Seq})
	}
	return infos, nil
}

type feedOf []events.Record

func (f feedOf) Follow(ctx context.Context, opts events.FollowOptions, handle func(events.Record) error) error {
	if err := f.hand(opts, handle); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// hand gives what there is.
func (f feedOf) hand(opts events.FollowOptions, handle func(events.Record) error) error {
	for _, r := range f {
		if r.Seq > opts.From[opts.Session] {
			if err := handle(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// result is what an invocation left behind.
type result struct {
	status   int
	out, err string
	back     *fake
}

// culm runs the command line against the fake as a person at a pipe.
func culm(t *testing.T, f *fake, args ...string) result { return culmAt(t, f, false, "", args...) }

func culmAt(t *testing.T, f *fake, terminal bool, in string, args ...string) result {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	var out, errOut bytes.Buffer
	a := &app{
		in: strings.NewReader(in), out: &out, errOut: &errOut, terminal: terminal, place: time.UTC,
		now:  func() time.Time { return noon.Add(time.Hour) },
		dial: func(context.Context, *app) (backend, error) { return f.dial() },
	}
	status := a.main(ctx, args)
	return result{status, out.String(), errOut.String(), f}
}

func (f *fake) dial() (backend, error) {
	if f == nil {
		return nil, &unreachable{"nats://me:secret@127.0.0.1:9", errors.New("connection refused")}
	}
	return f, nil
}

// story stores events of one session, chained as an engine would.
func story(t *testing.T, session string, data ...events.Data) []events.Record {
	t.Helper()
	var head events.Head
	var out []events.Record
	for i, d := range data {
		id, err := events.NextID(head.ID, noon, [10]byte{byte(i)})
		if err != nil {
			t.Fatal(err)
		}
		birth := head.Birth
		if birth == "" {
			birth = id
		}
		e := events.Event{
			ID: id, Type: d.EventType(), Session: session, Time: noon.Add(time.Duration(i) * time.Second),
			Seq: head.Seq + 1, Birth: birth, Actor: "alice", Prevhash: head.Hash, Data: d,
		}
		b, err := events.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, events.Record{Session: session, Seq: e.Seq, Type: e.Type, Payload: b})
		head = head.Next(&e, b)
	}
	return out
}

var errNoEngine = nats.ErrNoResponders
