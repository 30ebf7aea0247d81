package bus

import (
	"context"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"culm/internal/natstest"
)

// TestService_AnswersWhereItWasAsked: a server with users may let an engine publish
// under _INBOX only what answers a request, which is judged by connection.
func TestService_AnswersWhereItWasAsked(t *testing.T) {
	t.Parallel()
	ns := natstest.Start(t, func(o *server.Options) {
		o.Users = []*server.User{
			{Username: "client", Password: "c"},
			{Username: "engine", Password: "e", Permissions: &server.Permissions{
				Publish:  &server.SubjectPermission{Allow: []string{"$JS.API.>", "agent.log.>"}},
				Response: &server.ResponsePermission{MaxMsgs: 1, Expires: testPatience},
			}},
		}
	})
	svc, err := StartService(ServiceOptions{Conn: ns.Connect(t, nats.UserInfo("engine", "e")), Handler: &fakeRules{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = svc.Stop(t.Context()) })
	nc := ns.Connect(t, nats.UserInfo("client", "c"))
	for _, subject := range []string{"agent.cmd.alice.s.note.append", "agent.read.s"} {
		if _, err := nc.Request(subject, []byte("{}"), testPatience); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
}

// TestService_AnswersByEitherConnection: after a restart of the embedded server
// the service may be asked before the engine's connection, by which it answers,
// is back. An answer that the engine could have sent is no silence.
func TestService_AnswersByEitherConnection(t *testing.T) {
	t.Parallel()
	s := startServer(t, ServerOptions{})
	engines := connectTo(t, s)
	svc, err := StartService(ServiceOptions{Conn: engines, Handler: &fakeRules{}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = svc.Stop(ctx)
	}()
	if svc.out != engines {
		t.Fatal("in process answers go out with the appends")
	}
	engines.Close()
	nc := connectTo(t, s)
	for _, subject := range []string{"agent.cmd.alice.s.note.append", "agent.read.s"} {
		if _, err := nc.Request(subject, []byte("{}"), testPatience); err != nil {
			t.Errorf("%s: %v", subject, err)
		}
	}
}
