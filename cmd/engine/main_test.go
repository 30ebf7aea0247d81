package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"culm/internal/config"
)

// engineRun runs the program in the root of the repository, where the example's
// recording is found.
func engineRun(t *testing.T, args ...string) (status int, stdout, stderr string) {
	t.Helper()
	t.Chdir("../..")
	var out, err bytes.Buffer
	status = run(t.Context(), args, &out, &err)
	return status, out.String(), err.String()
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "engine.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestCheckConfig_PrintsWhatEachNameGets(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "never to be seen")
	status, out, errs := engineRun(t, "--check-config", "--config", "examples/engine.yaml")
	if status != exitOK || errs != "" {
		t.Fatalf("status %d, %s", status, errs)
	}
	for _, want := range []string{
		"examples/engine.yaml is good\n", "digest ", "OPENAI_API_KEY (set)", "recorded         demo\n", "no model         demo, drafts\n",
		"summarization  demo, drafts\n", `refused: provider instance "work" is disabled`, "refused: no enabled instance has the provider type gemini",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in:\n%s", want, out)
		}
	}
	if strings.Contains(out, "never to be seen") {
		t.Error("the key is printed")
	}
}

func TestCheckConfig_ExitsWith2WhereAnEngineWouldNotStart(t *testing.T) {
	for _, c := range []struct {
		name, text string
		args       []string
		want       string
	}{
		{"file", "lease: 15s\nproviders:\n  - id: a\n    type: x\n", nil, `engine.yaml:4: providers[0].type: "x" is none of`},
		{"recording that is not there", "providers: [{id: a, type: recorded, file: /nowhere/x.jsonl}]\n", nil, "provider a: stat /nowhere/x.jsonl"},
		{"recording that is a folder", "providers: [{id: a, type: recorded, file: /tmp}]\n", nil, "provider a: /tmp is a folder"},
		{"flag", "", []string{"--lease", "1ms"}, `--lease "1ms" is not from 1s to 24h`},
		{"setting", "layout: sharded\n", nil, "--layout sharded is not served"},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, out, errs := engineRun(t, append(c.args, "--check-config", "--config="+write(t, c.text))...)
			if status != exitUsage || !strings.Contains(errs, c.want) || out != "" {
				t.Errorf("status %d, stdout %q, stderr %s", status, out, errs)
			}
		})
	}
	if status, _, errs := engineRun(t, "--config", "/nowhere.yaml"); status != exitUsage || !strings.Contains(errs, "/nowhere.yaml") {
		t.Errorf("status %d, %s", status, errs)
	}
}

// TestFlags_ZeroIsNoDefault: what is written on the command line is meant, also
// where a program that embeds the engine would say "default" with it.
func TestFlags_ZeroIsNoDefault(t *testing.T) {
	for _, arg := range []string{
		"--lease=0", "--lease=-1s", "--lease=900000h", "--replicas=0", "--replicas=6", "--prefix=", "--layout=", "--sessions=0", "--sessions=-1",
		"--data=", "--config=", "--listen=:", "--listen=", "--listen=127.0.0.1:-1", "--http=", "--http=x", "--http=127.0.0.1:99999", "--nats=http://h", "--nats=,", "--http-actor=_x",
	} {
		name, _, _ := strings.Cut(arg, "=")
		status, out, errs := engineRun(t, arg, "--check-config")
		if status != exitUsage || out != "" || !strings.Contains(errs, name) || strings.Count(errs, "\n") > 2 {
			t.Errorf("%s: status %d, stdout %q, stderr %s", arg, status, out, errs)
		}
	}
}

// TestListen_WithAServerToUse: who asks for an address does not get an engine
// that listens nowhere; a variable, the file and the default ask for nothing.
func TestListen_WithAServerToUse(t *testing.T) {
	const url = "nats://ada:secret@127.0.0.1:4999"
	file := write(t, "listen: 127.0.0.1:4425\n")
	for _, c := range []struct {
		name, nats, listen string // variables
		args               []string
		status             int
	}{
		{"flag, server of the variable", url, "", []string{"--listen", "127.0.0.1:4425"}, exitUsage},
		{"flag, server of a flag", "", "", []string{"--listen=127.0.0.1:4425", "--nats", url}, exitUsage},
		{"flag, and the variable taken back", url, "", []string{"--listen", "127.0.0.1:4425", "--nats="}, exitOK},
		{"flag, no server", "", "", []string{"--listen", "127.0.0.1:4425"}, exitOK},
		{"variable", url, "127.0.0.1:4425", nil, exitOK},
		{"file", url, "", []string{"--config", file}, exitOK},
		{"default", url, "", nil, exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("CULM_NATS", c.nats)
			if c.listen != "" {
				t.Setenv("CULM_LISTEN", c.listen)
			}
			status, _, errs := engineRun(t, append(c.args, "--check-config")...)
			if status != c.status || strings.Contains(errs, "secret") {
				t.Errorf("status %d, want %d: %s", status, c.status, errs)
			}
			for _, want := range []string{"--listen 127.0.0.1:4425", "CULM_NATS", "127.0.0.1:4999", "env -u CULM_NATS"} {
				if c.status == exitUsage && !strings.Contains(errs, want) {
					t.Errorf("no %q in %s", want, errs)
				}
			}
		})
	}
}

// TestCheckConfig_TellsWhatWaits: a provider that this engine has no client for.
func TestCheckConfig_TellsWhatWaits(t *testing.T) {
	path := write(t, "providers: [{id: a, type: openai, default: true}, {id: b, type: gemini, enabled: false}, {id: c, type: recorded, file: examples/three_drafts.jsonl}]\n")
	status, out, errs := engineRun(t, "--check-config", "--config", path)
	const waits = "no client in this engine: its runs wait for a runner elsewhere\n"
	if line := "a         openai    enabled, default  none  " + waits; status != exitOK || !strings.Contains(out, line) || strings.Count(out, waits) != 1 {
		t.Errorf("status %d %s; want one line %q in\n%s", status, errs, line, out)
	}
}

func TestCheckConfig_WithoutAFile(t *testing.T) {
	status, out, _ := engineRun(t, "--check-config")
	if status != exitOK || !strings.Contains(out, `"sample"`) {
		t.Errorf("status %d, %s", status, out)
	}
}

func TestSettings_FlagWinsOverVariableOverFile(t *testing.T) {
	path := write(t, "replicas: 9\n") // out of bounds, as every file is read
	if status, _, _ := engineRun(t, "--check-config", "--config", path, "--replicas", "1"); status != exitUsage {
		t.Error("a file with an error was used")
	}
	path = write(t, "layout: sharded\n") // good in a file, refused by the engine
	for _, c := range []struct {
		name, variable string
		args           []string
		status         int
	}{
		{"file", "", nil, exitUsage},
		{"variable over file", "per-session", nil, exitOK},
		{"flag over file", "", []string{"--layout=per-session"}, exitOK},
		{"flag over variable", "sharded", []string{"--layout=per-session"}, exitOK},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.variable != "" {
				t.Setenv("CULM_LAYOUT", c.variable)
			}
			t.Setenv("CULM_CONFIG", path)
			if status, _, errs := engineRun(t, append(c.args, "--check-config")...); status != c.status {
				t.Errorf("status %d, want %d: %s", status, c.status, errs)
			}
		})
	}
}

// TestSettings_AreTheFlags: what the file can hold are the flags, but for those
// that make no sense in a file.
func TestSettings_AreTheFlags(t *testing.T) {
	var names []string
	for _, f := range reflect.VisibleFields(reflect.TypeFor[flags]()) {
		name := f.Tag.Get("name")
		if name == "" {
			name = kebab(f.Name)
		}
		if f.IsExported() && !slices.Contains([]string{"config", "check-config", "version"}, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if got := config.SettingNames(); !slices.Equal(got, names) {
		t.Errorf("settings %v, flags %v", got, names)
	}
}

func kebab(name string) string {
	var b strings.Builder
	for i, c := range name {
		if 'A' <= c && c <= 'Z' && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(c)
	}
	return strings.ToLower(b.String())
}
