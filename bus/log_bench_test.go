package bus

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// payload400 is as large as a plain event.
var payload400 = bytes.Repeat([]byte("x"), 400)

// BenchmarkAppend compares an append with the bare request it is made of and
// with the client library's publish, one session after the other.
func BenchmarkAppend(b *testing.B) {
	type appender func(b *testing.B, nc *nats.Conn, l *JetStreamLog, session string) func(seq uint64) error
	ways := []struct {
		name string
		make appender
	}{
		{"log", func(b *testing.B, _ *nats.Conn, l *JetStreamLog, session string) func(uint64) error {
			return func(seq uint64) error { return l.Append(b.Context(), session, seq, noted, payload400) }
		}},
		{"raw request", func(b *testing.B, nc *nats.Conn, l *JetStreamLog, session string) func(uint64) error {
			subject := l.opts.Subjects.Log(session, noted)
			return func(seq uint64) error {
				_, err := nc.RequestMsgWithContext(b.Context(), &nats.Msg{
					Subject: subject, Data: payload400,
					Header: nats.Header{headerExpectedSeq: {strconv.FormatUint(seq, 10)}},
				})
				return err
			}
		}},
		{"library publish", func(b *testing.B, _ *nats.Conn, l *JetStreamLog, session string) func(uint64) error {
			subject := l.opts.Subjects.Log(session, noted)
			return func(seq uint64) error {
				_, err := l.js.Publish(b.Context(), subject, payload400, jetstream.WithExpectLastSequence(seq))
				return err
			}
		}},
	}
	for _, sessions := range []int{1, 16, 64} {
		for _, way := range ways {
			b.Run(fmt.Sprintf("%d sessions/%s", sessions, way.name), func(b *testing.B) {
				s := startServer(b, ServerOptions{Sync: SyncNone})
				nc := connectTo(b, s)
				l, err := NewJetStreamLog(b.Context(), nc, LogOptions{})
				if err != nil {
					b.Fatal(err)
				}
				writers := make([]func(uint64) error, sessions)
				for i := range writers {
					session := fmt.Sprintf("s%d", i)
					if _, err := l.Create(b.Context(), session); err != nil {
						b.Fatal(err)
					}
					writers[i] = way.make(b, nc, l, session)
				}
				b.ReportAllocs()
				appendAll(b, writers)
			})
		}
	}
}

// appendAll lets each writer append in its own goroutine, b.N in all.
func appendAll(b *testing.B, writers []func(uint64) error) {
	var left atomic.Int64
	left.Store(int64(b.N))
	times := make([][]time.Duration, len(writers))
	var wg sync.WaitGroup
	b.ResetTimer()
	for i, write := range writers {
		wg.Go(func() {
			for seq := uint64(0); left.Add(-1) >= 0; seq++ {
				began := time.Now()
				if err := write(seq); err != nil {
					b.Error(err)
					return
				}
				times[i] = append(times[i], time.Since(began))
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	all := slices.Concat(times...)
	slices.Sort(all)
	if len(all) > 0 {
		b.ReportMetric(float64(len(all))/b.Elapsed().Seconds(), "appends/s")
		b.ReportMetric(float64(all[len(all)/2].Microseconds()), "p50-us")
		b.ReportMetric(float64(all[len(all)*99/100].Microseconds()), "p99-us")
	}
}

// BenchmarkAppendDurable is an append and the wait until it is on disk.
func BenchmarkAppendDurable(b *testing.B) {
	modes := []SyncMode{SyncAlways}
	if haveSyncfs {
		modes = append(modes, SyncGroup)
	}
	for _, mode := range modes {
		for _, sessions := range []int{1, 16, 64} {
			b.Run(fmt.Sprintf("%s/%d sessions", mode, sessions), func(b *testing.B) {
				s := startServer(b, ServerOptions{Sync: mode})
				l := embeddedLog(b, s)
				barrier := NewSyncBarrier(func() error { return nil })
				if mode == SyncGroup {
					var err error
					if barrier, err = NewSyncfsBarrier(s.StoreDir()); err != nil {
						b.Fatal(err)
					}
				}
				defer barrier.Close()
				writers := make([]func(uint64) error, sessions)
				for i := range writers {
					session := fmt.Sprintf("s%d", i)
					if _, err := l.Create(b.Context(), session); err != nil {
						b.Fatal(err)
					}
					synced := make(chan error, 1)
					writers[i] = func(seq uint64) error {
						if err := l.Append(b.Context(), session, seq, noted, payload400); err != nil {
							return err
						}
						barrier.Then(barrier.Mark(), func(err error) { synced <- err })
						return <-synced
					}
				}
				appendAll(b, writers)
			})
		}
	}
}

// BenchmarkRead reads a session of n events from its beginning.
func BenchmarkRead(b *testing.B) {
	for _, n := range []uint64{1, 10, 16, 32, 100, 10_000} {
		b.Run(strconv.FormatUint(n, 10), func(b *testing.B) {
			s := startServer(b, ServerOptions{Sync: SyncNone})
			l := embeddedLog(b, s)
			if _, err := l.Create(b.Context(), "s"); err != nil {
				b.Fatal(err)
			}
			for seq := range n {
				if err := l.Append(b.Context(), "s", seq, noted, payload400); err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				for _, err := range l.Read(b.Context(), "s", 0, 0) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
