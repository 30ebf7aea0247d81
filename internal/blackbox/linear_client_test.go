package blackbox

import (
	"fmt"
	"math/rand/v2"

	"github.com/nats-io/nats.go"
)

// linearClient sends random operations to one session; each goes on, under one
// id, until it is answered, also across the end of an engine.
type linearClient struct {
	*worker

	h       *history
	id      int
	session string
	random  *rand.Rand

	at    uint64 // sequence that was seen last
	run   string // run that was seen last
	held  obj    // run_id and fence of a claimed run, nil for none
	again []func() error
}

// step is one operation.
func (l *linearClient) step(n int) error {
	in := linearInput{id: fmt.Sprintf("%s/%d", l.name, n), who: l.name, remember: l.random.IntN(10) == 0}
	switch p := l.random.IntN(100); {
	case p < 20:
		in.kind = "submit"
		return l.command(in, "message.submit", obj{"content": in.id})
	case p < 30:
		in.kind, in.at = "submit at", l.at
		return l.command(in, "message.submit", obj{"content": in.id}, expect(l.at))
	case p < 45 && l.h.late:
		in.kind, in.at = "request at", l.at
		return l.command(in, "run.request", obj{"prompt": in.id}, expect(l.at))
	case p < 45:
		in.kind = "request"
		return l.command(in, "run.request", obj{"prompt": in.id})
	case p < 60 && l.run != "":
		in.kind, in.run = "claim", l.run
		return l.command(in, "run.claim", obj{"run_id": l.run, "runner": l.name, "providers": []string{"test"}})
	case p < 75 && l.held != nil:
		in.kind, in.run = "finish", l.held["run_id"].(string)
		return l.command(in, "run.finish", merge(l.held, obj{"outcome": "ok"}))
	case p < 80 && l.held != nil:
		in.kind, in.run, in.remember = "renew", l.held["run_id"].(string), false
		return l.command(in, "run.renew", l.held)
	case p < 85 && len(l.again) > 0:
		return l.again[l.random.IntN(len(l.again))]()
	}
	// A read with messages folds the log anew, a plain one is answered from memory.
	return l.readState(linearInput{kind: "read", messages: l.id%2 == 1 && l.random.IntN(20) == 0})
}

func (l *linearClient) command(in linearInput, name string, data obj, opts ...option) error {
	m := message(l.session, name, data, append(opts, id(in.id))...)
	send := func() error { return l.send(in, m) }
	if in.remember {
		l.again = append(l.again, send)
	}
	return send()
}

// send sends the command and takes the answer down.
func (l *linearClient) send(in linearInput, m *nats.Msg) error {
	done := l.h.call(l.id, l.session, in)
	r, err := l.insist(m)
	if err != nil {
		return err
	}
	run := ""
	switch in.kind {
	case "request", "request at":
		if r.OK {
			run = r.text("run_id")
			l.run = run
		}
	case "claim":
		if r.OK {
			l.held = obj{"run_id": in.run, "fence": r.Result["fence"]}
		}
	case "finish":
		l.held = nil
	}
	l.at = max(l.at, r.Sequence)
	done(linearOutput{ok: r.OK, code: r.code(), event: r.Event != nil, sequence: r.Sequence, run: run})
	return nil
}

func (l *linearClient) readState(in linearInput) error {
	done := l.h.call(l.id, l.session, in)
	var query obj
	if in.messages {
		query = obj{"transcript": true}
	}
	r, err := l.insist(readMessage(l.session, query))
	if err != nil {
		return err
	}
	out := linearOutput{ok: r.OK, code: r.code(), sequence: r.Sequence}
	if run, _ := r.State["run"].(obj); run != nil {
		out.run, _ = run["run_id"].(string)
		out.status, _ = run["status"].(string)
		out.runner, _ = run["runner"].(string)
		l.run = out.run
	}
	if list := objects(r.State["messages"]); in.messages && len(list) > 0 {
		out.last, _ = list[len(list)-1]["content"].(string)
	}
	l.at = max(l.at, r.Sequence)
	done(out)
	return nil
}
