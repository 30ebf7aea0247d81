package bus

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"culm/internal/natstest"
)

func TestParseAck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		ack  string
		seq  uint64
		code int
		fail bool
	}{
		{ack: `{"stream":"SESSION_s", "seq":7}`, seq: 7},
		{ack: `{"stream":"SESSION_s","seq":7}`, seq: 7},
		{ack: `{"stream":"SESSION_s","seq":7,"domain":"hub"}`, seq: 7},
		{ack: `{"stream":"SESSION_s", "seq":18446744073709551615}`, seq: 18446744073709551615},
		{ack: `{"stream":"SESSION_other","seq":7}`, fail: true},
		{ack: `{"stream":"SESSION_s","seq":0}`, fail: true},
		{ack: `{"stream":"SESSION_s", "seq":`, fail: true},
		{ack: ``, fail: true},
		{ack: `{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 3"},"stream":"SESSION_s","seq":0}`, code: 10071, fail: true},
	} {
		seq, err := parseAck([]byte(c.ack), "SESSION_s")
		if seq != c.seq || (err != nil) != c.fail || errCode(err) != c.code {
			t.Errorf("parseAck(%s) = %d, %v", c.ack, seq, err)
		}
	}
}

// The quick ways to read answers fit what this version of the server sends.
func TestQuickAnswers(t *testing.T) {
	t.Parallel()
	l := newTestLog(t, natstest.Start(t, nil), LogOptions{})
	fillLog(t, l, "s", 2)
	answer, err := l.nc.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: "agent.log.s.note.appended", Data: []byte("{}")})
	if err != nil {
		t.Fatal(err)
	}
	if seq, ok := plainAck(answer.Data, "SESSION_s"); !ok || seq != 3 {
		t.Errorf("plainAck(%s) = %d, %v", answer.Data, seq, ok)
	}
	answer, err = l.nc.RequestMsgWithContext(t.Context(), &nats.Msg{Subject: "$JS.API.STREAM.MSG.GET.SESSION_s", Data: []byte(`{"last_by_subj":"agent.log.s.>"}`)})
	if err != nil {
		t.Fatal(err)
	}
	if seq := seqOf(answer.Data); seq != 3 {
		t.Errorf("seqOf(%s) = %d", answer.Data, seq)
	}
	if _, err := l.Last(t.Context(), "other"); errors.Is(err, nil) {
		t.Error("Last of a session that does not exist")
	}
}
