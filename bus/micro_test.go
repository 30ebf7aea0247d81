package bus

import (
	"log/slog"
	"testing"

	"github.com/nats-io/nats.go/micro"

	"culm/internal/natstest"
)

// TestMicroConfig_Version: a build says its version where micro takes it, and
// 0.0.0 where micro would refuse the service.
func TestMicroConfig_Version(t *testing.T) {
	t.Parallel()
	nc := natstest.Start(t, nil).Connect(t)
	subjects, err := NewSubjects("agent")
	if err != nil {
		t.Fatal(err)
	}
	for build, want := range map[string]string{
		"v1.2.3": "1.2.3", "0.1.0-dev": "0.1.0-dev", "v1.2.3-4-gabc-dirty": "1.2.3-4-gabc-dirty",
		"v0.0.0-20261130120000-0123456789ab+dirty": "0.0.0-20261130120000-0123456789ab+dirty",
		"7f2e38e": "0.0.0", "unknown": "0.0.0", "": "0.0.0", "v1.2": "0.0.0", "v1.2.3-01": "0.0.0", "v1.2.3-a..b": "0.0.0", "v01.2.3": "0.0.0",
	} {
		c := microConfig(QueriesName, "d", subjects, build, slog.New(slog.DiscardHandler))
		if c.Version != want || c.Metadata["build"] != build {
			t.Errorf("%q: version %q, build %q", build, c.Version, c.Metadata["build"])
		}
		svc, err := micro.AddService(nc, c)
		if err != nil {
			t.Errorf("%q: %v", build, err)
			continue
		}
		if err := svc.Stop(); err != nil {
			t.Error(err)
		}
	}
}
