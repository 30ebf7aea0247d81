package blackbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

// worker is a client that repeats each command under its id until it is
// answered, as clients are told to do.
type worker struct {
	*client

	ctx    context.Context //nolint:containedctx // ends the worker
	ledger *ledger
	name   string
	lost   <-chan nats.Status // says that answers under way will not come
}

// attemptTime is how long one attempt waits on a connection that holds.
const attemptTime = 5 * time.Second

func newWorker(ctx context.Context, c *client, l *ledger, name string) *worker {
	return &worker{ctx: ctx, client: c, ledger: l, name: name, lost: c.nc.StatusChanged(nats.DISCONNECTED, nats.RECONNECTING)}
}

// once is the context of one attempt: it ends when the connection does.
func (w *worker) once(wait time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(w.ctx, wait)
	go func() {
		select {
		case <-w.lost:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// within sends m once and waits as long for the answer.
func (w *worker) within(m *nats.Msg, wait time.Duration) (reply, error) {
	ctx, cancel := w.once(wait)
	defer cancel()
	return w.tryWith(ctx, m)
}

// insist sends m until there is an answer other than unavailable, within patience.
func (w *worker) insist(m *nats.Msg) (reply, error) {
	w.ledger.verifying.RLock()
	defer w.ledger.verifying.RUnlock()
	for end := time.Now().Add(patience); ; {
		r, err := w.within(m, attemptTime)
		switch {
		case err == nil && r.code() != "unavailable":
			return r, nil
		case w.ctx.Err() != nil:
			return r, fmt.Errorf("%s: %w (%w)", m.Subject, context.Cause(w.ctx), err)
		case time.Now().After(end):
			return r, fmt.Errorf("%s: no answer in %s, at last %v %s", m.Subject, patience, err, r.raw)
		}
		select {
		case <-w.ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// send is a command that has to be accepted in the end; the ledger notes it.
func (w *worker) send(session, id, name string, data any) (reply, error) {
	m := message(session, name, data, header("Nats-Msg-Id", id))
	r, err := w.insist(m)
	if err != nil {
		return r, err
	}
	if !r.OK || r.Event == nil {
		return r, fmt.Errorf("%s %s of %s: %s", id, name, session, r.raw)
	}
	w.ledger.note(session, sent{m, r})
	return r, nil
}

// script is a row of commands of one worker in one session; after the first
// error it does nothing.
type script struct {
	w       *worker
	session string
	n       int
	err     error
	run     obj // run_id and fence of the run that is held
}

func (w *worker) script(session string) *script {
	s := &script{w: w, session: session}
	s.do("session.create", obj{"model": obj{"provider": "test", "model": "m1"}})
	return s
}

func (s *script) do(name string, data obj) reply {
	if s.err != nil {
		return reply{}
	}
	s.n++
	var r reply
	r, s.err = s.w.send(s.session, fmt.Sprintf("%s/%d", s.session, s.n), name, data)
	return r
}

// held sends a command of the run that is held.
func (s *script) held(name string, data obj) reply { return s.do(name, merge(s.run, data)) }

func (s *script) claim(id string) {
	r := s.do("run.claim", obj{"run_id": id, "runner": s.w.name, "providers": []string{"test"}})
	s.run = obj{"run_id": id, "fence": r.Result["fence"]}
}

func (s *script) read() reply {
	if s.err != nil {
		return reply{}
	}
	var r reply
	if r, s.err = s.w.insist(readMessage(s.session, nil)); s.err == nil && !r.OK {
		s.err = errors.New(r.raw)
	}
	return r
}

// loop plays a counted loop of three iterations with a tool call in each.
func (w *worker) loop(session string) error {
	s := w.script(session)
	s.claim(s.do("run.request", obj{"prompt": "p", "loop": obj{"max_iterations": 3, "max_total_rounds": 6}}).text("run_id"))
	s.held("round.start", nil)
	for i := range 3 {
		s.held("round.finish", obj{"round": 2 * i, "message": obj{"content": "", "tool_calls": []obj{{"id": "c", "name": "Bash", "arguments": fmt.Sprint(i)}}}})
		s.held("tool.start", obj{"tool_call_id": "c"})
		s.held("tool.finish", obj{"tool_call_id": "c", "success": true, "content": "ok"})
		s.held("round.start", nil)
		s.held("round.finish", obj{"round": 2*i + 1, "message": obj{"content": fmt.Sprint("answer ", i)}, "admit_next": true})
	}
	s.held("run.finish", obj{"outcome": "ok"})
	if l, _ := s.read().State["loop"].(obj); s.err == nil && (l["status"] != "completed" || l["revision"] != 12.0) {
		return fmt.Errorf("loop of %s: %v", session, l)
	}
	return s.err
}

// parked plays a call that waits for a person and is then replayed.
func (w *worker) parked(session string) error {
	s := w.script(session)
	s.claim(s.do("run.request", obj{"prompt": "p"}).text("run_id"))
	s.held("round.start", nil)
	s.held("round.finish", obj{"round": 0, "message": obj{"content": "", "tool_calls": []obj{{"id": "c", "name": "Write", "arguments": "{}"}}}})
	s.held("tool.park", obj{"tool_call_id": "c", "question": "Run it?", "request": obj{"tool_name": "Write", "permission_type": "write_file", "resource": "a", "allowed_decisions": []string{"allow_once"}}})
	items := objects(s.read().State["pending"])
	if s.err == nil && len(items) != 1 {
		return fmt.Errorf("%s: pending %v", session, items)
	}
	for _, item := range items {
		s.do("approval.decide", obj{"tool_call_id": "c", "generation": item["generation"], "decision": "allow_once"})
	}
	run, _ := s.read().State["run"].(obj)
	id, _ := run["run_id"].(string)
	s.claim(id)
	s.held("replay.start", nil)
	s.held("tool.finish", obj{"tool_call_id": "c", "success": true, "content": "written"})
	s.held("round.start", nil)
	s.held("round.finish", obj{"round": 0, "message": obj{"content": "done"}})
	s.held("run.finish", obj{"outcome": "ok"})
	return s.err
}

// talk plays messages and settings.
func (w *worker) talk(session string) error {
	s := w.script(session)
	for i := range 20 {
		s.do("message.submit", obj{"content": strings.Repeat("x", 1+i*50)})
		s.do("session.configure", obj{"title": fmt.Sprint(i)})
	}
	s.do("session.close", nil)
	return s.err
}

// crowd writes to a session that others write to as well.
func (w *worker) crowd(session string) error {
	_, n, _ := strings.Cut(session, "-")
	shared := "crowd-" + n
	if _, err := w.insist(message(shared, "session.create", nil, header("Nats-Msg-Id", "create"))); err != nil {
		return err
	}
	for i := range 20 {
		if _, err := w.send(shared, fmt.Sprintf("%s/%d", w.name, i), "message.submit", obj{"content": w.name}); err != nil {
			return err
		}
	}
	return nil
}

// queue plays queued commands; each is published until the queue has it.
func (w *worker) queue(session string) error {
	if _, err := w.send(session, session+"/create", "session.create", obj{}); err != nil {
		return err
	}
	for i := range 15 {
		id := fmt.Sprintf("%s/%d", session, i)
		m := message(session, "message.submit", obj{"content": fmt.Sprint(i)}, header("Culm-Command-Id", id))
		m.Subject = strings.Replace(m.Subject, "agent.cmd.", "agent.later.", 1)
		if err := w.publish(m); err != nil {
			return err
		}
		w.ledger.queued(session, id)
	}
	return nil
}

// publish repeats until the queue has stored m, within patience.
func (w *worker) publish(m *nats.Msg) error {
	w.ledger.verifying.RLock()
	defer w.ledger.verifying.RUnlock()
	for end := time.Now().Add(patience); ; {
		ctx, cancel := w.once(attemptTime)
		_, err := w.js.PublishMsg(ctx, m)
		cancel()
		if err == nil || w.ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}
