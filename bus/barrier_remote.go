package bus

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"culm/events"
)

// barrierSubject is where the engine that holds an embedded server answers
// other engines; the answer is "ok <boot>" after a sync that began after the
// request came in, or "failed <reason>".
func barrierSubject(s Subjects) string { return "_culm." + s.Prefix() + ".barrier" }

// ServeBarrier lets engines that use this engine's embedded server wait for
// its disk. b is NopBarrier where the server does not sync in groups. It
// returns a function that ends it.
func ServeBarrier(nc *nats.Conn, subjects Subjects, b events.Barrier) (stop func() error, err error) {
	boot := bootID()
	sub, err := nc.Subscribe(barrierSubject(subjects), func(m *nats.Msg) {
		b.Then(b.Mark(), func(err error) {
			answer := "ok " + boot
			if err != nil {
				answer = "failed " + err.Error()
			}
			if isBarrierClosed(err) {
				return // not a failure of the disk: the next engine answers
			}
			// An error means that the connection is gone; the other asks again.
			_ = m.Respond([]byte(answer))
		})
	})
	if err != nil {
		return nil, fmt.Errorf("serve barrier: %w", err)
	}
	if err := nc.Flush(); err != nil {
		return nil, fmt.Errorf("serve barrier: %w", err)
	}
	return sub.Unsubscribe, nil
}

// bootID changes when the machine has been down, so that whatever was in its
// page cache may be lost; it stays when only a process was killed. Where the
// system does not tell, each process counts as a boot.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if id := strings.TrimSpace(string(b)); err == nil && id != "" {
		return id
	}
	return rand.Text()
}

// remoteWait is how long a remote barrier is asked, and asked again, before
// what waits for it becomes unavailable.
const remoteWait = 10 * time.Second

// errNoBarrier: nobody answers barrier requests here.
var errNoBarrier = errors.New("the server is embedded in an engine with --sync group, and no engine with this --prefix " +
	"answers for its disk: it has another prefix, or has not started yet")

// RemoteBarrier is an events.Barrier that asks the engine that holds the
// embedded server: at most one request is under way, and all tickets that wait
// when it is sent share it.
type RemoteBarrier struct {
	*SyncBarrier
	cancel context.CancelFunc
}

// DialBarrier returns the barrier of the server that nc is connected to: a
// *RemoteBarrier if it is an embedded server with group sync, else NopBarrier.
// The caller closes a *RemoteBarrier.
func DialBarrier(ctx context.Context, nc *nats.Conn, subjects Subjects) (events.Barrier, error) {
	// The name tells even while the engine there has not begun to answer.
	expects := nc.ConnectedServerName() == serverNamePrefix+string(SyncGroup)
	ask := &remoteSync{req: nc, subject: barrierSubject(subjects)}
	for {
		boot, err := ask.once(ctx)
		switch {
		case err == nil:
			ask.boot = boot
			return newRemoteBarrier(ask), nil
		case errors.Is(err, nats.ErrNoResponders) && !expects:
			return NopBarrier{}, nil
		case ctx.Err() != nil:
			return nil, fmt.Errorf("%w: %w: %w", events.ErrUnavailable, errNoBarrier, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func newRemoteBarrier(ask *remoteSync) *RemoteBarrier {
	ctx, cancel := context.WithCancel(context.Background())
	return &RemoteBarrier{
		SyncBarrier: NewSyncBarrier(func() error { return ask.sync(ctx) }),
		cancel:      cancel,
	}
}

// Close ends the barrier; what waits gets ErrUnavailable.
func (b *RemoteBarrier) Close() error {
	b.cancel()
	return b.SyncBarrier.Close()
}

// remoteSync is the sync function of a RemoteBarrier.
type remoteSync struct {
	req     requester
	subject string
	boot    string // of the machine that answered first
}

// sync returns once the other engine has answered a request sent after the
// call. An answer of another boot is a failure: what this engine has been
// acknowledged before may be lost.
func (r *remoteSync) sync(ctx context.Context) error {
	end := time.Now().Add(remoteWait)
	for {
		boot, err := r.once(ctx)
		switch {
		case err == nil && boot == r.boot:
			return nil
		case err == nil:
			return errors.New("the server's machine was restarted: what it had acknowledged may be lost")
		case errors.Is(err, errRemoteFailed):
			return err
		case ctx.Err() != nil, time.Now().After(end):
			return fmt.Errorf("%w: %w", errUnanswered, err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(50 * time.Millisecond):
		}
	}
}

var errRemoteFailed = errors.New("the engine that holds the server can not sync")

// once asks one time and returns the boot id of the machine that answered.
func (r *remoteSync) once(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	answer, err := r.req.RequestMsgWithContext(ctx, &nats.Msg{Subject: r.subject})
	if err != nil {
		return "", err
	}
	boot, ok := strings.CutPrefix(string(answer.Data), "ok ")
	if !ok {
		return "", fmt.Errorf("%w: %.200s", errRemoteFailed, answer.Data)
	}
	return boot, nil
}
