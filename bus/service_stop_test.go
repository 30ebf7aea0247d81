package bus

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"culm/aggregate"
	"culm/internal/natstest"
)

// goneDoor is a service whose server has gone, with unanswered requests.
func goneDoor(t *testing.T, unanswered int) (svc *Service, answer func()) {
	t.Helper()
	ns := natstest.Start(t, nil)
	held := make(chan func(aggregate.Reply), unanswered)
	svc, err := StartService(ServiceOptions{Conn: ns.Connect(t), Handler: &fakeRules{handle: func(_ aggregate.Request, done func(aggregate.Reply)) { held <- done }}})
	if err != nil {
		t.Fatal(err)
	}
	nc := ns.Connect(t)
	for range unanswered {
		if err := nc.PublishRequest("agent.cmd.a.s.n.v", nc.NewInbox(), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	var done []func(aggregate.Reply)
	for range unanswered {
		done = append(done, awaitValue(t, held))
	}
	gone := svc.conn.StatusChanged(nats.RECONNECTING, nats.DISCONNECTED)
	ns.Stop()
	awaitValue(t, gone)
	return svc, func() {
		for _, d := range done {
			d(aggregate.Reply{OK: true})
		}
	}
}

// TestService_StopsWithoutItsServer: at once, however much time there is, and it
// is an error only where an answer was owed.
func TestService_StopsWithoutItsServer(t *testing.T) {
	t.Parallel()
	began := time.Now()
	svc, _ := goneDoor(t, 0)
	if err := svc.Stop(t.Context()); err != nil { // without a deadline: it would wait for ever
		t.Errorf("Stop: %v", err)
	}
	svc, answer := goneDoor(t, 2)
	err := svc.Stop(t.Context())
	if !errors.Is(err, errGone) || !strings.Contains(err.Error(), "2 requests unanswered") {
		t.Errorf("Stop with requests in flight: %v", err)
	}
	answer() // late answers harm nobody
	if took := time.Since(began); took > testPatience {
		t.Errorf("it took %s", took)
	}
}
