package bus

import (
	"testing"

	"culm/events"
	"culm/internal/logtest"
	"culm/internal/natstest"
)

func newTestLog(t testing.TB, s *natstest.Server, opts LogOptions) *JetStreamLog {
	t.Helper()
	l, err := NewJetStreamLog(inTime(t), s.Connect(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestJetStreamLog(t *testing.T) {
	t.Parallel()
	logtest.Run(t, func(t *testing.T) events.Log {
		return newTestLog(t, natstest.Start(t, nil), LogOptions{})
	})
}
