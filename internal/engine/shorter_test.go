package engine

import (
	"fmt"
	"testing"

	"culm/events"
)

func TestShorterLogs(t *testing.T) {
	t.Parallel()
	seen := map[string]events.Head{"same": {Seq: 5}, "torn": {Seq: 5}, "longer": {Seq: 5}, "cut": {Seq: 5}, "again": {Seq: 5}, "deleted": {Seq: 5}, "lost": {Seq: 5}, "lost-in-its-second-life": {Seq: 12}}
	infos := []events.Info{
		{Session: "same", FirstSeq: 1, LastSeq: 5}, {Session: "longer", FirstSeq: 1, LastSeq: 9}, {Session: "cut", FirstSeq: 1, LastSeq: 4},
		{Session: "again", FirstSeq: 7, LastSeq: 7}, {Session: "new", FirstSeq: 1, LastSeq: 1},
		{Session: "torn", FirstSeq: 1, LastSeq: 5, Lost: 1},
	}
	graves := map[string]uint64{"deleted": 6, "lost-in-its-second-life": 8}
	got, err := shorterLogs(seen, infos, func(s string) (uint64, error) { return graves[s], nil })
	if want := "[{cut {5 } 4} {lost {5 } 0} {lost-in-its-second-life {12 } 0} {torn {5 } 5}]"; err != nil || brief(got) != want {
		t.Errorf("%s, %v; want %s", brief(got), err, want)
	}
	if _, err := shorterLogs(seen, infos, func(string) (uint64, error) { return 0, events.ErrUnavailable }); err == nil {
		t.Error("what could not be learned is no finding")
	}
}

func brief(list []shorter) string {
	out := "["
	for i, s := range list {
		if i > 0 {
			out += " "
		}
		out += fmt.Sprintf("{%s {%d } %d}", s.session, s.seen.Seq, s.last)
	}
	return out + "]"
}
