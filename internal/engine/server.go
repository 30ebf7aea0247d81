package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"culm/bus"
)

// startServer embeds a server or connects to one, and chooses how answers
// become durable.
func (e *engine) startServer(ctx context.Context) error {
	if e.cfg.NATS != "" {
		return e.connect(ctx)
	}
	server, err := bus.StartServer(bus.ServerOptions{
		DataDir: e.cfg.Data, Listen: e.cfg.Listen, Sync: bus.SyncMode(e.cfg.Sync), Logger: e.log,
	})
	if errors.Is(err, bus.ErrDataInUse) {
		return fmt.Errorf("%w; choose another with --data", err)
	}
	if err != nil {
		return err
	}
	e.server = server
	e.onStop(func(context.Context) error { return server.Close() })
	if e.nc, err = server.Connect(bus.EngineConnOptions()...); err != nil {
		return fmt.Errorf("connect to the embedded server: %w", err)
	}
	e.onStop(func(context.Context) error { e.nc.Close(); return nil })
	if err := e.checkPrefix(ctx); err != nil {
		return err
	}
	return e.embeddedBarrier()
}

// prefixTime bounds the look whose server it is.
const prefixTime = 10 * time.Second

// checkPrefix refuses a server whose sessions belong to another prefix, before
// anything is waited for that only engines with that prefix do.
func (e *engine) checkPrefix(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, prefixTime)
	defer cancel()
	js, err := jetstream.New(e.nc)
	if err != nil {
		return err
	}
	err = bus.CheckPrefix(ctx, js, e.subjects)
	if errors.Is(err, bus.ErrForeignStream) {
		return usage("--prefix %s: %v", e.subjects.Prefix(), err)
	}
	return err
}

// embeddedBarrier is the group sync of the embedded server, which other engines
// that use the server share. The other modes need none: the server syncs by
// itself, or nobody does.
func (e *engine) embeddedBarrier() error {
	mode := e.server.Sync()
	e.log.Info("embedded server", "url", e.server.URL(), "data", e.server.StoreDir(), "sync", string(mode))
	e.barrier = bus.NopBarrier{}
	if mode == bus.SyncGroup {
		b, err := bus.NewSyncfsBarrier(e.server.StoreDir())
		if err != nil {
			return fmt.Errorf("group sync: %w", err)
		}
		e.barrier, e.failed = b, b.Failed()
		e.onStop(func(context.Context) error { return b.Close() })
	}
	stop, err := bus.ServeBarrier(e.nc, e.subjects, e.barrier)
	if err != nil {
		return err
	}
	e.onStop(func(context.Context) error { return stop() })
	return nil
}

// barrierTime is how long the engine that embeds the server may take to say so.
const barrierTime = 10 * time.Second

// connect uses a server that somebody else runs, another engine's embedded one
// included.
func (e *engine) connect(ctx context.Context) error {
	nc, err := nats.Connect(e.cfg.NATS, append(bus.EngineConnOptions(), e.connectionLog()...)...)
	if err != nil {
		return fmt.Errorf("connect to %s, as --nats or CULM_NATS says: %w; without it the engine embeds a server", bus.Redact(e.cfg.NATS), bus.RedactError(err))
	}
	e.nc = nc
	e.onStop(func(context.Context) error { nc.Close(); return nil })
	if err := e.checkPrefix(ctx); err != nil {
		return err
	}
	dial, cancel := context.WithTimeout(ctx, barrierTime)
	defer cancel()
	if e.barrier, err = bus.DialBarrier(dial, nc, e.subjects); err != nil {
		return err
	}
	if b, ok := e.barrier.(*bus.RemoteBarrier); ok {
		e.failed = b.Failed()
		e.onStop(func(context.Context) error { return b.Close() })
		e.log.Info("server", "url", bus.Redact(nc.ConnectedUrl()), "sync", "group, by the engine that embeds it")
		return nil
	}
	e.log.Info("server", "url", bus.Redact(nc.ConnectedUrl()), "sync", "as the server is configured; sync_interval: always survives a power cut")
	return nil
}

// connectionLog tells the operator when the server goes and comes back.
func (e *engine) connectionLog() []nats.Option {
	return []nats.Option{
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err != nil { // else the connection was closed on purpose
				e.log.Warn("connection lost, trying to come back", "err", err)
			}
		}),
		nats.ReconnectHandler(func(nc *nats.Conn) { e.log.Info("connected again", "url", bus.Redact(nc.ConnectedUrl())) }),
	}
}
