package policy

import (
	"strings"
	"testing"

	"culm/events"
)

// The table of docs/permissions.md#effective-mode, cell by cell.
const modeTable = `
plan               plan         plan   plan
default            default      bypass auto
accept_edits       accept_edits bypass auto
dont_ask           dont_ask     bypass auto
bypass_permissions bypass       bypass auto
auto               auto         bypass auto
`

func TestEffectiveMode_EveryCell(t *testing.T) {
	t.Parallel()
	cells := 0
	for line := range strings.Lines(strings.TrimSpace(modeTable)) {
		f := strings.Fields(line)
		for i, requested := range RequestedModes() {
			for _, plan := range []bool{false, true} {
				want := f[i+1]
				if plan {
					want = ModePlan
				}
				if got := EffectiveMode(f[0], requested, plan); got != want {
					t.Errorf("configured %s, requested %s, plan %v: %s, want %s", f[0], requested, plan, got, want)
				}
				flags := events.ReplayFlags{
					Bypass: want == ModeBypass, AutoApprove: requested == ModeAuto || want == ModeAuto, PlanReadOnly: want == ModePlan,
				}
				if got := Flags(f[0], requested, plan); got != flags {
					t.Errorf("flags of configured %s, requested %s, plan %v: %+v, want %+v", f[0], requested, plan, got, flags)
				}
				cells++
			}
		}
	}
	if want := len(ConfiguredModes()) * len(RequestedModes()) * 2; cells != want {
		t.Errorf("%d cells, want %d", cells, want)
	}
}

// What a stored mode means at a replay.
func TestFlags_StoredModesAtReplay(t *testing.T) {
	t.Parallel()
	for mode, want := range map[string]events.ReplayFlags{
		ModeAuto:    {AutoApprove: true},
		ModeBypass:  {Bypass: true},
		ModeDefault: {},
	} {
		if got := Flags(ModeDefault, mode, false); got != want {
			t.Errorf("%s: %+v, want %+v", mode, got, want)
		}
	}
	if got, want := Flags(ModeDefault, ModeAuto, true), (events.ReplayFlags{AutoApprove: true, PlanReadOnly: true}); got != want {
		t.Errorf("plan and auto: %+v, want %+v", got, want)
	}
}

func TestEffectiveMode_OfTextThatIsNoModeIsDefault(t *testing.T) {
	t.Parallel()
	for _, c := range []string{"", "AUTO", "x", "Bypass"} {
		for _, r := range []string{"", "AUTO", "plan", "dont_ask"} {
			if got := EffectiveMode(c, r, false); got != ModeDefault {
				t.Errorf("configured %q, requested %q: %s", c, r, got)
			}
		}
	}
}

func TestCheckMode(t *testing.T) {
	t.Parallel()
	for _, m := range append(ConfiguredModes(), "", ModeBypass) {
		if err := CheckMode(m); err != nil {
			t.Errorf("%q: %v", m, err)
		}
	}
	for _, m := range []string{"Auto", "off", " default"} {
		if err := CheckMode(m); err == nil || err.(*FieldError).Field != "mode" {
			t.Errorf("%q: %v", m, err)
		}
	}
}

func TestEffectiveRisk(t *testing.T) {
	t.Parallel()
	for _, permissionType := range append(Types(), "something_else") {
		for _, stated := range []string{"", RiskLow, RiskMedium, RiskHigh, "nonsense"} {
			base := TypeRisk(permissionType)
			reading := Request{Type: permissionType, Risk: stated}
			want := stated
			switch stated {
			case "":
				want = base
			case "nonsense":
				want = RiskHigh
			}
			if got := reading.EffectiveRisk(); got != want {
				t.Errorf("reading %s stated %q: %s, want %s", permissionType, stated, got, want)
			}
			changing := reading
			changing.Mutating = true
			if RiskLess(want, base) {
				want = base
			}
			if got := changing.EffectiveRisk(); got != want {
				t.Errorf("mutating %s stated %q: %s, want %s", permissionType, stated, got, want)
			}
		}
	}
}

func TestTypeRisk(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"read": "low", "write_file": "medium", "execute_command": "high", "git_write": "high", "http_request": "medium",
		"delete_operation": "high", "terminal_session": "high", "browser_interaction": "high",
	}
	for _, permissionType := range Types() {
		if got := TypeRisk(permissionType); got != want[permissionType] {
			t.Errorf("%s: %s", permissionType, got)
		}
	}
	if len(want) != len(Types()) || TypeRisk("other") != RiskHigh || KnownType("other") {
		t.Error("a type that is not known counts as high")
	}
}

func TestMutates(t *testing.T) {
	t.Parallel()
	yes, no := true, false
	for _, c := range []struct {
		tool, permissionType string
		stated               *bool
		mutates, readsOnly   bool
	}{
		{"Read", "", nil, false, true},
		{"READ", Read, nil, false, true},
		{"grep", "", &no, false, true},
		{"ExitPlanMode", "", nil, false, true},
		{"WebFetch", HTTPRequest, &no, false, true},
		{"Read", "", &yes, true, false},
		{"Read", WriteFile, &no, true, false}, // the type says that it writes
		{"Write", "", nil, true, false},
		{"Write", "", &no, true, false}, // a known tool is not talked out of it
		{"NotebookEdit", Read, &no, true, false},
		{"x", DeleteOperation, &no, true, false},
		{"x", GitWrite, &no, true, false},
		{"x", TerminalSession, &no, true, false},
		{"x", BrowserInteraction, &no, true, false},
		{"", "", nil, true, false},
		{"Reader", "", nil, true, false},
		{"Read ", "", nil, true, false},
		{"lookup", Read, &no, false, false}, // believed outside of plan mode only
		{"Bash", ExecuteCommand, &no, false, false},
	} {
		if got := Mutates(c.tool, c.permissionType, c.stated); got != c.mutates {
			t.Errorf("%q %s: mutates %v", c.tool, c.permissionType, got)
		}
		if got := ReadsOnly(c.tool, c.permissionType, c.stated); got != c.readsOnly {
			t.Errorf("%q %s: reads only %v", c.tool, c.permissionType, got)
		}
	}
}

// The plan overlay stops a call of low risk, too, if it may change the world.
func TestEvaluate_PlanStopsWhatMayChangeTheWorld(t *testing.T) {
	t.Parallel()
	for mutating, want := range map[bool]string{true: Deny, false: Allow} {
		v := Evaluate(Input{Session: Session{RequestedMode: ModeAuto, Plan: true}, Request: Request{Type: Read, Resource: "x", Mutating: mutating}, Now: noon})
		if v.Decision != want || mutating && v.Step != StepPlan {
			t.Errorf("mutating %v: %+v", mutating, v)
		}
	}
}
