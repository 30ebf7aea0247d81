package config_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"culm/internal/config"
)

// secrets are spelled in two parts, so that no scanner takes this file for a leak.
var secrets = map[string]string{
	"OpenAI":         "sk-" + "proj-a1B2c3D4e5F6g7H8i9J0",
	"Anthropic":      "sk-" + "ant-api03-abcdefghijklmnop",
	"Google":         "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p",
	"GitHub":         "ghp_" + "a1b2c3d4e5f6g7h8i9j0k1l2",
	"GitHub, fine":   "github_pat_" + "11ABCDEFG0",
	"Slack":          "xoxb-" + "123456789012-abc",
	"AWS":            "AKIA" + "IOSFODNN7EXAMPLE",
	"Hugging Face":   "hf_" + "abcdefghijklmnopqrst",
	"web token":      "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln",
	"NATS seed":      "SU" + "AB3QZ2V7J4N6XK5PLM7W2TQ6RDYF4GHC3S5UEIOA7BKVNX2MZL6JQT4W",
	"PEM":            "-----BEGIN " + "RSA PRIVATE KEY-----",
	"header":         "Bearer " + "abc.def-ghi_jkl",
	"address":        "nats://user:" + "hunter2@host:4222",
	"token address":  "nats://" + "hunter2@host:4222",
	"hexadecimal":    "0123456789abcdef" + "0123456789abcdef",
	"random letters": "q7Zk2Lx9Vb4Tn8Wm" + "3Rj6Yp1Hs5Gd",
}

// places are where a person may put one; only the first three are keys that
// could hold it.
var places = []string{
	"data: %q\n", "gold:\n  goal: %q\n", "providers:\n  - id: a\n    type: openai\n    api_key_env: %q\n",
	"providers:\n  - id: a\n    type: openai\n    models: [m, %q]\n", "api_key: %q\n", "anything:\n  deep: {token: %q}\n", "providers: %q\n",
	"%q: x\n", "lease: %q\n", "permissions:\n  hard_dangerous: [%q]\n", "providers:\n  - id: a\n    type: openai\n    base_url: \"https://x/\" # %s\n",
	"data: %q\nproviders: [\n",
}

func TestParse_SecretsAreRefusedUnderAnyNameAndNotRepeated(t *testing.T) {
	t.Parallel()
	for name, secret := range secrets {
		for _, place := range places {
			if strings.Contains(place, "#") && (name == "hexadecimal" || name == "random letters") {
				continue // a comment may hold a digest or an id
			}
			if strings.HasSuffix(place, "[\n") && (name == "hexadecimal" || name == "random letters") {
				continue // what is no YAML has no values
			}
			t.Run(name+"/"+place, func(t *testing.T) {
				_, err := config.Parse("c.yaml", fmt.Appendf(nil, place, secret))
				es, ok := errors.AsType[config.Errors](err)
				if !ok || !strings.Contains(es[0].Problem, "do not belong in this file") || es[0].Line < 1 {
					t.Fatalf("%v: want advice about secrets", err)
				}
				for _, part := range []string{secret, "hunter2", secret[len(secret)/2:]} {
					if strings.Contains(err.Error(), part) {
						t.Errorf("the error repeats the secret: %v", err)
					}
				}
			})
		}
	}
}

func TestParse_EscapesDoNotHideASecret(t *testing.T) {
	t.Parallel()
	_, err := config.Parse("c.yaml", []byte(`data: "\x73k-abcdefghijklmnop"`))
	if err == nil || !strings.Contains(err.Error(), "looks like a key") || strings.Contains(err.Error(), "ghijk") {
		t.Error(err)
	}
}

func TestParse_WeakSecretsAreNotRepeatedWhereKeysBelong(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"providers:\n  - {id: a, type: openai, api_key_env: 'hunter2!'}\n", "api_key: hunter2!\n", "providers:\n  - {id: a, type: openai, token: hunter2!}\n",
		"password: hunter2!\n", "openai_api_key: [hunter2!]\n",
	} {
		_, err := config.Parse("c.yaml", []byte(text))
		if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "environment") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestParse_OrdinaryValuesAreNoSecrets(t *testing.T) {
	t.Parallel()
	for _, value := range []string{
		"claude-3-5-sonnet-20241022", "gpt-5-mini", "Meta-Llama-3.1-70B-Instruct-Turbo", "accounts/fireworks/models/llama-v3p1-405b-instruct",
		"ft:gpt-4o-mini-2024-07-18:my-org::AbCdEf12", "/var/lib/culm/data/2026-11-30T12-00-00", "https://api.openai.com/v1", "./TranscriptOfTheSecondSession2.jsonl",
		"risk-assessment-of-the-disk-tasks", "nats://one.example:4222,nats://two.example:4222", `(?i)\bdrop\s+table\b`, "git push --force-with-lease origin main",
		"00000000000000000000000000000000", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "Donaudampfschiffahrtsgesellschaftskapitaen",
	} {
		text := fmt.Sprintf("data: '%s'\n", value)
		if _, err := config.Parse("c.yaml", []byte(text)); err != nil {
			t.Error(err)
		}
	}
}

// Folders have names that people and programs make up: with digests, dates,
// counters, and words that keys begin with.
func TestParse_PathsAreNoSecrets(t *testing.T) {
	t.Parallel()
	hex := "3f2a9c8b7d6e5f4a" + "3b2c1d0e9f8a7b6c"
	for _, path := range []string{
		"/tmp/TestCrashNothingLostNothingTwicenone3379334791/001/data", "/var/folders/zz/zyxvpxvq6csfxvn_n0000000000000/T/Culm8Data2026Q4Final77x",
		"/var/lib/containers/" + hex + "/culm", "./" + hex, "../runs/CustomerTranscripts2026Q4FinalVersion12", "~/Sessions2026ByCustomerAndTeam0417",
		"/srv/sk-transcripts-of-2026", "./sk-learn-recordings-2026", "/data/hf_transformersrecordings", "/mnt/rk-archive-of-old-sessions/x.jsonl",
		"/home/me/github_pat_notes/x", "/srv/ASIAPACIFICREGION2026/data", "C:\\Users\\AnneMarie2026\\CulmDataOfTheFirstQuarter0417", "D:/" + hex,
		"recordings/CustomerTranscripts2026Q4FinalVersion12.jsonl", "CustomerTranscripts2026Q4FinalVersion12.jsonl", "\\\\nas\\" + hex,
	} {
		for _, place := range []string{
			"data: '%s'\n", "http-tokens: '%s'\n", "providers:\n  - {id: a, type: recorded, file: '%s'}\n", "data: x # was %s\n",
			"permissions:\n  always_ask:\n    - permission_type: execute_command\n      matcher: {kind: tool_action, pattern: 'cat %s'}\n",
		} {
			if _, err := config.Parse("c.yaml", fmt.Appendf(nil, place, path)); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	}
}

// What begins like a key, or is one, is refused also where a path belongs.
func TestParse_KeysInPlacesOfPathsAreRefused(t *testing.T) {
	t.Parallel()
	for name, secret := range secrets {
		for _, place := range []string{"data: '%s'\n", "http-tokens: '%s'\n", "providers:\n  - {id: a, type: recorded, file: '%s'}\n"} {
			if _, err := config.Parse("c.yaml", fmt.Appendf(nil, place, secret)); err == nil {
				t.Errorf("%s: taken for a path in %q", name, place)
			}
		}
	}
}
