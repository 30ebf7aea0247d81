package bus

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

func TestRedact(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"nats://127.0.0.1:4222":                           "nats://127.0.0.1:4222",
		"nats://user:secret@host:4222":                    "nats://xxxxx@host:4222",
		"nats://secret@host:4222":                         "nats://xxxxx@host:4222",
		"nats://a:4222,nats://user:secret@b, tls://s@c:1": "nats://a:4222,nats://xxxxx@b,tls://xxxxx@c:1",
		"nats://user:secret@host:port":                    "(not a URL)",
		"":                                                "",
	} {
		if got := Redact(list); got != want {
			t.Errorf("%q is shown as %q, want %q", list, got, want)
		}
	}
}

func TestRedactError(t *testing.T) {
	t.Parallel()
	_, err := nats.Connect("nats://user:secret@host:port")
	if err == nil || !strings.Contains(err.Error(), "secret") {
		t.Fatalf("the client tells %v", err)
	}
	if got := RedactError(err); got == nil || strings.Contains(got.Error(), "secret") {
		t.Errorf("it is shown as %v", got)
	}
}
