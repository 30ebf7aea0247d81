package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
	"culm/events"
)

const (
	adaToken = "ada-ada-ada-ada-ada-ada-ada"
	bobToken = "bob-bob-bob-bob-bob-bob-bob"
)

// world is a server over a log in memory and rules that note what they are told.
type world struct {
	t      *testing.T
	mem    *events.Mem
	server *Server
	http   *httptest.Server
	left   chan string // paths of requests that have been answered, the first ones
	heads  map[string]events.Head

	mu       sync.Mutex
	commands []aggregate.Request
	queries  []string
	reply    aggregate.Reply // of the next commands
	answer   string          // of the next queries
	err      error           // of the next commands
}

func newWorld(t *testing.T, change func(*Options)) *world {
	t.Helper()
	w := &world{t: t, mem: events.NewMem(), heads: map[string]events.Head{}, left: make(chan string, 16), reply: aggregate.Reply{OK: true}, answer: `{"ok":true,"items":[]}`}
	tokens, err := ReadTokens(strings.NewReader("# who\n\nada " + adaToken + "\nbob " + bobToken + "\n"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Query: w, Commands: w, Read: w, Log: w.mem, Feed: w.mem, Tokens: tokens, Metrics: NewMetrics(nil), Heartbeat: 50 * time.Millisecond}
	if change != nil {
		change(&o)
	}
	if w.server, err = New(o); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); w.server.Follow(ctx) }()
	w.http = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		defer w.leaves(r.URL.Path)
		w.server.Handler().ServeHTTP(rw, r)
	}))
	t.Cleanup(func() { stop(); w.http.CloseClientConnections(); w.http.Close(); <-ended })
	return w
}

// patience bounds the wait for something that must happen.
const patience = time.Minute

func (w *world) leaves(path string) {
	select {
	case w.left <- path:
	default:
	}
}

// Query implements Querier.
func (w *world) Query(_ context.Context, view, verb string, request []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queries = append(w.queries, view+"."+verb+" "+string(request))
	return []byte(w.answer)
}

// Do implements Commands.
func (w *world) Do(_ context.Context, r aggregate.Request) (aggregate.Reply, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.commands = append(w.commands, r)
	return w.reply, w.err
}

// Read implements Reader with the fold of the log.
func (w *world) Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	var through uint64
	if q.AtSequence != nil {
		through = *q.AtSequence
	}
	st, err := aggregate.Fold(w.mem.Read(ctx, session, 0, through))
	if err != nil {
		return aggregate.ReadReply{Error: &aggregate.Error{Code: aggregate.CodeSessionNotFound, Message: "none"}}, nil
	}
	raw, err := json.Marshal(st.View(), json.Deterministic(true))
	return aggregate.ReadReply{OK: true, Session: session, Sequence: st.Head.Seq, State: raw}, err
}

// put appends an event to a session, which it creates with the first.
func (w *world) put(session string, data ...events.Data) {
	w.t.Helper()
	for _, d := range data {
		head := w.heads[session]
		if head.Seq == 0 {
			if _, err := w.mem.Create(w.t.Context(), session); err != nil {
				w.t.Fatal(err)
			}
			head = events.Head{Birth: testID(len(w.heads))}
		}
		e := events.Event{
			ID: testID(int(head.Seq) + 100), Type: d.EventType(), Version: 1, Session: session, Seq: head.Seq + 1, Birth: head.Birth,
			Time: time.Date(2026, 11, 30, 12, 0, int(head.Seq%60), 0, time.UTC), Actor: "ada", Prevhash: head.Hash, Data: d,
		}
		if _, ok := d.(events.NoteAppended); ok {
			e.Ignorable = true
		}
		payload, err := events.Encode(e)
		if err != nil {
			w.t.Fatal(err)
		}
		if err := w.mem.Append(w.t.Context(), session, head.Seq, e.Type, payload); err != nil {
			w.t.Fatal(err)
		}
		w.heads[session] = head.Next(&e, payload)
	}
}

// testID is the n-th of ids that sort.
func testID(n int) string {
	const digits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
	b := []byte("01000000000000000000000000")
	for i := len(b) - 1; n > 0; i, n = i-1, n/32 {
		b[i] = digits[n%32]
	}
	return string(b)
}

func created(title string) events.Data {
	return events.SessionCreated{Kind: "root", Mode: "default", Settings: events.Settings{Title: title}, Posture: events.Posture{AuditRevision: 1, RequestedMode: "default", EffectiveMode: "default"}}
}

func said(text string) events.Data {
	return events.MessageSubmitted{Role: "user", UserMessage: events.UserMessage{MessageID: "m-" + text[:min(4, len(text))], Content: text}}
}

// answered is what came back over HTTP.
type answered struct {
	*http.Response

	body string
}

// code is the error code of the body, "" without.
func (a answered) code() string { return codeOf([]byte(a.body)) }

// ask sends a request; edits change it before.
func (w *world) ask(method, path, body string, edits ...func(*http.Request)) answered {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.http.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, edit := range edits {
		edit(r)
	}
	resp, err := w.http.Client().Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	var b strings.Builder
	if _, err := copyAll(&b, resp.Body); err != nil {
		b.WriteString(" CUT " + err.Error())
	}
	return answered{resp, b.String()}
}

func header(name, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(name, value) }
}

func twice(name, first, second string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Add(name, first); r.Header.Add(name, second) }
}

func host(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }

func as(token string) func(*http.Request) { return header("Authorization", "Bearer "+token) }

func roundStarted(round uint32) events.Data {
	return events.RoundStarted{RunID: "run-1", Admission: events.Admission{Round: round}}
}

func toolFinished(call string) events.Data {
	return events.ToolFinished{CallRef: events.CallRef{ToolCallID: call, MessageID: "m.0", Name: "grep"}, Result: events.Result{Success: true}}
}
