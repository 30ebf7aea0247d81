package bus

import (
	"errors"
	"testing"

	"culm/internal/natstest"
)

func TestDeltas_OfOneSession(t *testing.T) {
	t.Parallel()
	server := natstest.Start(t, nil)
	nc := server.Connect(t)
	subjects, err := NewSubjects("agent")
	if err != nil {
		t.Fatal(err)
	}
	d := NewDeltas(server.Connect(t), subjects)
	got := make(chan string, 8)
	stop, err := d.Follow("s", func(run string, delta []byte) { got <- run + " " + string(delta) })
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(nc, subjects, "runner")
	if err != nil {
		t.Fatal(err)
	}
	for _, to := range []string{"other", "s", "s"} {
		if err := client.Delta(to, "run-1", Delta{Kind: "text", Text: to}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if m := awaitValue(t, got); m != `run-1 {"round":0,"index":0,"kind":"text","text":"s"}` {
			t.Errorf("got %s", m)
		}
	}
	stop()
	if n := len(got); n > 0 {
		t.Errorf("%d more", n)
	}
	if _, err := d.Follow("*", nil); !errors.Is(err, ErrInvalidToken) {
		t.Errorf("of all sessions: %v", err)
	}
}
