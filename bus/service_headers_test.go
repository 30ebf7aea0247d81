package bus

import (
	"bufio"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"culm/aggregate"
)

// wire is a client that spells the protocol itself.
type wire struct {
	t *testing.T
	net.Conn
	lines *bufio.Reader
}

func dialWire(t *testing.T, address string) *wire {
	t.Helper()
	c, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(testPatience)); err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, Conn: c, lines: bufio.NewReader(c)}
	w.say("CONNECT {\"headers\":true,\"verbose\":false}\r\nSUB _INBOX.w.* 1\r\n")
	return w
}

func (w *wire) say(text string) {
	w.t.Helper()
	if _, err := w.Write([]byte(text)); err != nil {
		w.t.Fatal(err)
	}
}

// request sends a command with a block of headers as it is, and returns the
// answer.
func (w *wire) request(headers, body string) (r aggregate.Reply) {
	w.t.Helper()
	w.say(fmt.Sprintf("HPUB agent.cmd.a.s.message.submit _INBOX.w.1 %d %d\r\n%s%s\r\n", len(headers), len(headers)+len(body), headers, body))
	for {
		line, err := w.lines.ReadString('\n')
		if err != nil {
			w.t.Fatalf("%q: %v", headers, err)
		}
		if line == "PING\r\n" {
			w.say("PONG\r\n")
		}
		if _, after, ok := strings.Cut(line, "{\"ok\""); ok {
			if err := json.Unmarshal([]byte("{\"ok\""+after), &r); err != nil {
				w.t.Fatalf("%q: %v", line, err)
			}
			return r
		}
	}
}

// TestService_MalformedHeaders: what the client library cannot read is refused,
// not judged without its id; what it can read is not.
func TestService_MalformedHeaders(t *testing.T) {
	t.Parallel()
	rules := &fakeRules{}
	d := openDoor(t, rules)
	w := dialWire(t, strings.TrimPrefix(d.nc.ConnectedUrl(), "nats://"))
	for _, headers := range []string{
		"NATS/1.0\r\nNats-Msg-Id x\r\n\r\n", "NATS/1.0\r\nNats-Msg-Id: x\r\n", "HTTP/1.1\r\nNats-Msg-Id: x\r\n\r\n", "x", "NATS/1.0\r\nNats-Msg-Id: x\r\n bad\r\n\r\n\r\n",
	} {
		r := w.request(headers, "{}")
		if r.OK || r.Error == nil || r.Error.Code != aggregate.CodeInvalidCommand || r.Error.Message != malformedHeaders || r.Session != "s" {
			t.Errorf("%q: %+v", headers, r)
		}
	}
	for _, header := range []string{"Nats-Msg-Id : x", "Culm-Expected-Sequence : 1", "nats-msg-id: x", "NATS-MSG-ID: x", "Culm-Command-Id: x", "culm-expected-sequence: 1"} {
		r := w.request("NATS/1.0\r\n"+header+"\r\n\r\n", "{}")
		if r.OK || r.Error == nil || r.Error.Code != aggregate.CodeInvalidCommand {
			t.Errorf("%q: %+v", header, r)
		}
	}
	if got := rules.requests(); len(got) > 0 {
		t.Errorf("judged: %+v", got)
	}
	for headers, id := range map[string]string{"NATS/1.0\r\n\r\n": "", "NATS/1.0\r\nNats-Msg-Id: x\r\n\r\n": "x", "NATS/1.0\r\nNats-Msg-Id:x\r\n\r\n": "x"} {
		if r := w.request(headers, "{}"); !r.OK || r.Command != id {
			t.Errorf("%q: %+v", headers, r)
		}
	}
	if r, _ := d.request(t, "agent.cmd.a.s.message.submit", nil, "{}"); !r.OK {
		t.Errorf("without headers: %+v", r)
	}
}
