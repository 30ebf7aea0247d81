package config_test

import (
	"strings"
	"testing"

	"culm/internal/config"
)

// TestSettingProblem: what flags and variables may say is what a file may say.
func TestSettingProblem(t *testing.T) {
	t.Parallel()
	for name, values := range map[string]struct{ good, bad []string }{
		"listen":    {[]string{"127.0.0.1:0", "127.0.0.1:65535", ":4222", "[::1]:4222", "localhost:1"}, []string{"", ":", "x", "127.0.0.1:-1", "127.0.0.1:+1", "127.0.0.1:65536", "127.0.0.1:http", "127.0.0.1: 1", "127.0.0.1", "::1"}},
		"http":      {[]string{"off", "OFF", "127.0.0.1:8280"}, []string{"", "x", "none", "127.0.0.1:99999", ":"}},
		"nats":      {[]string{"nats://h:4222", "h", "h:1,tls://i", "nats://u:p@h", "nats://[::1]:4222", "ws://h", "h, i,"}, []string{"", ",", "http://h", "nats://", "nats://h:99999", "nats://h:x", "nats://u:secret@h:x", "http://u:secret@h", "nats://\x7f"}},
		"replicas":  {[]string{"1", "5"}, []string{"0", "6", "-1", "x"}},
		"sessions":  {[]string{"1", "100000"}, []string{"0", "-5", "100001"}},
		"lease":     {[]string{"1s", "24h"}, []string{"0s", "999ms", "24h1s", "900000h", "x"}},
		"prefix":    {[]string{"agent", "a.b"}, []string{"", "a b", "$JS", ".", "a."}},
		"layout":    {[]string{"per-session"}, []string{"", "round"}},
		"data":      {[]string{"./data"}, []string{""}},
		"log-level": {[]string{"info"}, []string{""}},
		"no-runner": {[]string{"true"}, nil}, // kong reads those
	} {
		for _, v := range values.good {
			if p := config.SettingProblem(name, v); p != "" {
				t.Errorf("%s %q %s", name, v, p)
			}
		}
		for _, v := range values.bad {
			p := config.SettingProblem(name, v)
			if p == "" {
				t.Errorf("%s takes %q", name, v)
			}
			if strings.Contains(p, "secret") {
				t.Errorf("%s repeats %q: %s", name, v, p)
			}
		}
	}
}
