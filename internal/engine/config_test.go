package engine

import (
	"errors"
	"strings"
	"testing"
	"time"

	"culm/internal/config"
)

// TestConfig_Check: what is refused before anything is started, and by what name
// a person knows it.
func TestConfig_Check(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]Config{
		"":                 {Data: "d"},
		"--prefix":         {Data: "d", Prefix: "a b"},
		"sharded":          {Data: "d", Layout: "sharded"},
		"--layout":         {Data: "d", Layout: "round"},
		"--lease is 1ms":   {Data: "d", Lease: time.Millisecond},
		"--lease is 900":   {Data: "d", Lease: 900_000 * time.Hour},
		"--replicas is 6":  {Data: "d", Replicas: 6},
		"needs a cluster":  {Data: "d", Replicas: 3},
		"--sessions":       {Data: "d", Sessions: -1},
		"--http-actor":     {Data: "d", HTTPActor: "_a"},
		"--http-tokens":    {Data: "d", HTTP: "127.0.0.1:0", HTTPTokens: "no-such-file"},
		"runner name":      {Data: "d", RunnerName: "a b"},
		`--http "x"`:       {Data: "d", HTTP: "x"},
		"--data":           {},
		`--listen ":"`:     {Data: "d", Listen: ":"},
		"--sync \"x\"":     {Data: "d", Sync: "x"},
		"--nats":           {NATS: "http://h"},
		"--sync is the":    {NATS: "nats://h", Sync: "always"},
		"embeds a server":  {NATS: "nats://u:secret@h", Listen: "127.0.0.1:4222", ListenGiven: true},
		"providers[0].id":  {Data: "d", Rules: config.Rules{Providers: []config.Provider{{ID: "a b", Type: "recorded", File: "f", Enabled: true}}}},
		"providers[0].typ": {Data: "d", Rules: config.Rules{Providers: []config.Provider{{ID: "a", Type: "x", Enabled: true}}}},
	} {
		err := c.Check()
		if want == "" {
			if err != nil {
				t.Errorf("%+v: %v", c, err)
			}
			continue
		}
		if !errors.Is(err, ErrUsage) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
}

// TestConfig_Defaults: the zero value is an engine on a free loopback port.
func TestConfig_Defaults(t *testing.T) {
	t.Parallel()
	c := Config{Data: "d"}
	if err := c.complete(); err != nil {
		t.Fatal(err)
	}
	if c.Prefix != "agent" || c.Lease != 15*time.Second || c.Replicas != 1 || c.Listen != "127.0.0.1:0" || c.Logger == nil || c.httpAddress() != "" {
		t.Errorf("%+v", c)
	}
	for http, want := range map[string]string{"off": "", "OFF": "", "127.0.0.1:1": "127.0.0.1:1"} {
		if got := (&Config{HTTP: http}).httpAddress(); got != want {
			t.Errorf("--http %s listens on %q, want %q", http, got, want)
		}
	}
}
