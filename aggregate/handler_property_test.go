package aggregate

import (
	"context"
	"fmt"
	"reflect"
	"testing"

	"github.com/go-json-experiment/json"
	"pgregory.net/rapid"

	"culm/events"
)

// TestProperty_TwoEngines: two engines judge any commands over one log that
// loses appends and acknowledgements, while runners die and commands are sent
// again. Each command is stored at most once, a repeat gets the first outcome
// from whichever engine, and both engines read what the log says.
func TestProperty_TwoEngines(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		b := newBench(t)
		engines := []*engine{b.engine(), b.engine()}
		defer func() {
			for _, e := range engines {
				_ = e.h.Close(context.Background())
			}
		}()
		engines[0].must("s", "session.create", obj{"model": obj{"provider": "p", "model": "m"}})
		w := &world{t: r, watch: newWatcher()}
		first := map[string]Reply{}
		var sent []Request
		for i := range rapid.IntRange(1, 40).Draw(r, "commands") {
			w.follow(b)
			switch pick(r, 20, "what") {
			case 0:
				b.leases.expire("s")
			case 1:
				engines[pick(r, 2, "restarted")] = b.engine()
			case 2:
				fault := among(r, []events.Fault{events.FaultBefore, events.FaultAfter}, "fault")
				b.log.FailAppends(events.FailNth(b.log.Appends()+1, fault))
			}
			c := w.drawMove()
			req := commandRequest(r, c, fmt.Sprint("c-", i))
			sent = append(sent, req)
			if oneIn(r, 4, "again") {
				sent = append(sent, among(r, sent, "which"))
				req = sent[len(sent)-1]
			}
			reply := engines[pick(r, 2, "engine")].send(req)
			compareOutcomes(r, first, req, reply)
		}
		b.log.FailAppends(nil)
		for _, req := range sent {
			compareOutcomes(r, first, req, engines[0].send(req))
		}
		w.follow(b)
		want := viewJSON(r, b.fold("s"))
		for i, e := range engines {
			if got := e.read("s", ReadQuery{}); string(got.State) != want {
				r.Fatalf("engine %d reads\n%s\nthe log says\n%s", i, got.State, want)
			}
		}
	})
}

// follow folds what the log holds by now, and watches it.
func (w *world) follow(b *bench) {
	records := b.records("s")
	if w.read == nil {
		w.read, w.state = &State{}, &State{}
	}
	stored := map[string]bool{}
	for i, r := range records {
		e, err := events.Decode(r.Payload)
		if err != nil {
			w.t.Fatal(err)
		}
		if stored[e.Command] && e.Command != "" {
			w.t.Fatalf("command %s is stored twice", e.Command)
		}
		stored[e.Command] = true
		if i < len(w.log) {
			continue
		}
		if err := w.read.Apply(r); err != nil {
			w.t.Fatal(err)
		}
		w.log = append(w.log, r)
		w.watch.event(w.t, &e, w.read)
		if run := w.read.Run; run != nil && run.Status == runLive {
			w.holds = append(w.holds, RunRef{RunID: run.ID, Fence: run.Fence})
		}
	}
	w.state = w.read.Clone()
}

// commandRequest spells a command as a client would send it.
func commandRequest(t *rapid.T, c Command, id string) Request {
	body, err := json.Marshal(c, json.Deterministic(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))
	if err != nil {
		t.Fatal(err)
	}
	name := commandName(c)
	return Request{Actor: "a", Session: "s", Name: name, ID: id, Digest: events.CommandDigest(name, body), Body: body}
}

func commandName(c Command) string {
	for name, decode := range commandTypes {
		if empty, _ := decode([]byte("{}")); reflect.TypeOf(empty) == reflect.TypeOf(c) {
			return name
		}
	}
	return ""
}

// compareOutcomes: what a command led to it leads to for ever.
func compareOutcomes(t *rapid.T, first map[string]Reply, req Request, got Reply) {
	if !got.OK && got.Error.Code == CodeUnavailable {
		return
	}
	was, known := first[req.ID]
	switch {
	case !known:
		if got.OK && got.Event != nil || got.Duplicate {
			first[req.ID] = got
		}
		return
	case !got.Duplicate:
		t.Fatalf("%s %s again is no repeat: %+v", req.Name, req.ID, got)
	case got.OK != was.OK || got.Sequence != was.Sequence || string(got.Result) != string(was.Result) || !reflect.DeepEqual(got.Event, was.Event):
		t.Fatalf("%s %s again:\n%+v\nthe first time:\n%+v", req.Name, req.ID, got, was)
	case !got.OK && got.Error.Code != was.Error.Code:
		t.Fatalf("%s %s again: %v, the first time: %v", req.Name, req.ID, got.Error, was.Error)
	}
}
