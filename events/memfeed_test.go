package events_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"

	"culm/events"
)

// follow collects what Follow hands over until the test ends; read it after
// synctest.Wait only.
func follow(t *testing.T, m *events.Mem, opts events.FollowOptions) *[]string {
	got := &[]string{}
	go func() {
		err := m.Follow(t.Context(), opts, func(r events.Record) error {
			*got = append(*got, fmt.Sprintf("%s/%d=%s", r.Session, r.Seq, r.Payload))
			return nil
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("follow ended with %v", err)
		}
	}()
	return got
}

func TestMem_FollowFillsAndGoesLive(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name    string
		opts    events.FollowOptions
		backlog []string
		want    []string
	}{
		{
			name: "what is new", want: []string{"a/3=live", "c/1=new"},
		}, {
			name: "all", opts: events.FollowOptions{All: true},
			backlog: []string{"a/1=x", "a/2=y", "b/1=z"}, want: []string{"a/1=x", "a/2=y", "b/1=z", "a/3=live", "c/1=new"},
		}, {
			name: "from a sequence", opts: events.FollowOptions{From: map[string]uint64{"a": 1}},
			backlog: []string{"a/2=y"}, want: []string{"a/2=y", "a/3=live", "c/1=new"},
		}, {
			name: "from a sequence and all others", opts: events.FollowOptions{From: map[string]uint64{"a": 1}, All: true},
			backlog: []string{"a/2=y", "b/1=z"}, want: []string{"a/2=y", "b/1=z", "a/3=live", "c/1=new"},
		}, {
			name: "one session", opts: events.FollowOptions{Session: "a", All: true},
			backlog: []string{"a/1=x", "a/2=y"}, want: []string{"a/1=x", "a/2=y", "a/3=live"},
		}, {
			name: "from beyond the end", opts: events.FollowOptions{From: map[string]uint64{"a": 3}},
			want: []string{"c/1=new"},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := newMem(t, "a", "b")
				mustAppend(t, m, "a", 0, "x")
				mustAppend(t, m, "b", 0, "z")
				mustAppend(t, m, "a", 1, "y")
				caughtUp := 0
				tt.opts.CaughtUp = func() { caughtUp++ }
				got := follow(t, m, tt.opts)
				synctest.Wait()
				if !slices.Equal(*got, tt.backlog) || caughtUp != 1 {
					t.Errorf("backlog %q, want %q; caught up %d times", *got, tt.backlog, caughtUp)
				}
				mustAppend(t, m, "a", 2, "live")
				if _, err := m.Create(t.Context(), "c"); err != nil {
					t.Fatal(err)
				}
				mustAppend(t, m, "c", 0, "new")
				synctest.Wait()
				if !slices.Equal(*got, tt.want) {
					t.Errorf("got %q, want %q", *got, tt.want)
				}
			})
		})
	}
}

func TestMem_FollowSeesALostAcknowledgement(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMem(t, "s")
		got := follow(t, m, events.FollowOptions{})
		m.FailAppends(events.FailNth(1, events.FaultAfter))
		synctest.Wait()
		if err := m.Append(t.Context(), "s", 0, "x.y", []byte("a")); !errors.Is(err, events.ErrUnavailable) {
			t.Fatal(err)
		}
		mustAppend(t, m, "s", 0, "a")
		synctest.Wait()
		wantRecords(t, *got, "s/1=a")
	})
}

func TestMem_FollowEndsWithItsHandler(t *testing.T) {
	t.Parallel()
	m := newMem(t, "s")
	mustAppend(t, m, "s", 0, "a")
	mustAppend(t, m, "s", 1, "b")
	boom, calls := errors.New("boom"), 0
	err := m.Follow(t.Context(), events.FollowOptions{All: true}, func(events.Record) error { calls++; return boom })
	if !errors.Is(err, boom) || calls != 1 {
		t.Errorf("%v after %d calls", err, calls)
	}
}
