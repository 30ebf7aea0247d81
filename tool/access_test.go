package tool_test

import (
	"testing"

	"culm/tool"
)

func TestMutates_OnlyTheKnownReadersDoNot(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{
		"Read": false, "read": false, "GREP": false, "WebFetch": false, "GetFileInfo": false, "ExitPlanMode": false,
		"Write": true, "Bash": true, "Task": true, "": true, "Read ": true, "Reader": true,
	} {
		if got := tool.Mutates(name); got != want {
			t.Errorf("Mutates(%q) = %v", name, got)
		}
	}
}

func TestAccessByName_UnknownIsHighRisk(t *testing.T) {
	t.Parallel()
	if a := tool.AccessByName("Teleport"); !a.Mutating || a.Risk != "high" || a.PermissionType == "" || a.Resource == "" {
		t.Errorf("access = %+v", a)
	}
	if a := tool.AccessByName("Read"); a.Mutating || a.Risk != "low" {
		t.Errorf("access = %+v", a)
	}
}
