package main

import (
	"testing"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/bus"
	"culm/internal/natstest"
)

// TestOverNATS_SendsWhatThePageSends: id, expected sequence and trace of a
// command from the page go out with it.
func TestOverNATS_SendsWhatThePageSends(t *testing.T) {
	t.Parallel()
	nc := natstest.Start(t, nil).Connect(t)
	c := &connection{nc: nc}
	sent := make(chan *nats.Msg, 2)
	if _, err := nc.Subscribe(c.subjects.Command("*", "*", ">"), func(m *nats.Msg) {
		sent <- m
		_ = m.Respond([]byte(`{"ok":true}`))
	}); err != nil {
		t.Fatal(err)
	}
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	seq := uint64(7)
	for _, r := range []aggregate.Request{
		{Actor: "ada", Session: "s", Name: "run.request", ID: "id 1", Expected: &seq, Traceparent: trace, Body: []byte("{}")},
		{Actor: "ada", Session: "s", Name: "run.request", ID: "id 2", Body: []byte("{}")},
	} {
		if reply, err := (overNATS{c}).Do(t.Context(), r); err != nil || !reply.OK {
			t.Fatal(reply, err)
		}
		m, expected := <-sent, ""
		if r.Expected != nil {
			expected = "7"
		}
		if m.Subject != c.subjects.Command("ada", "s", "run.request") || m.Header.Get(bus.HeaderCommandID) != r.ID ||
			m.Header.Get(bus.HeaderExpected) != expected || m.Header.Get(bus.HeaderTraceparent) != r.Traceparent {
			t.Errorf("%+v was sent as %s %v", r, m.Subject, m.Header)
		}
	}
}
