package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// SyncMode says when an answer of the embedded server is on disk.
type SyncMode string

// The sync modes of an embedded server.
const (
	SyncGroup  SyncMode = "group"  // one shared sync for all answers that wait
	SyncAlways SyncMode = "always" // a sync for each append, by the server itself
	SyncNone   SyncMode = "none"   // for tests: survives a kill, not a power cut
)

// serverNamePrefix, with the sync mode after it, is the name of an embedded
// server: what a remote engine knows it by.
const serverNamePrefix = "culm-sync-"

// DefaultMaxPayload is the server's limit for one message, headers included.
const DefaultMaxPayload = 1 << 20

var (
	// ErrDataInUse: another engine runs on the same data folder.
	ErrDataInUse = errors.New("data folder is in use by another engine")
	// ErrPortInUse: something else listens on the address.
	ErrPortInUse = errors.New("address is in use")
)

// ServerOptions configure an embedded server.
type ServerOptions struct {
	DataDir    string   // made if missing; one engine at a time may use it
	Listen     string   // host:port for clients; port 0 picks a free one; "" is 127.0.0.1:0
	Sync       SyncMode // "" is DefaultSync()
	MaxPayload int32    // bytes; 0 is DefaultMaxPayload
	Logger     *slog.Logger
	// HealthInterval is the time between health checks; 0 is one second.
	HealthInterval time.Duration
	// StartTimeout bounds the wait until streams are recovered; 0 is ten
	// minutes (recovery of many streams takes long).
	StartTimeout time.Duration
}

// Server is an embedded NATS server with JetStream, its data folder locked for
// this process. Its methods are safe for concurrent use.
type Server struct {
	opts   ServerOptions
	log    *slog.Logger
	lock   *dirLock
	cancel context.CancelFunc
	done   chan struct{} // the health watch has ended
	health atomic.Pointer[error]
	fatal  atomic.Pointer[string]

	mu     sync.Mutex // serialises Close
	closed bool
	ns     atomic.Pointer[server.Server]
	addr   string // host:port; fixed after the first start
}

// StartServer runs a server and returns once it accepts connections and all
// streams are recovered. It returns ErrDataInUse, ErrPortInUse, ErrStreamDamaged,
// or what the server itself said. The server writes nothing to standard output and takes
// no signals.
func StartServer(opts ServerOptions) (*Server, error) {
	if err := opts.complete(); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	if err := os.MkdirAll(opts.DataDir, 0o750); err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	lock, err := lockDir(opts.DataDir)
	if err != nil {
		return nil, fmt.Errorf("embedded server: %w", err)
	}
	s := &Server{opts: opts, log: opts.Logger, lock: lock, done: make(chan struct{}), addr: opts.Listen}
	if err := raiseDescriptorLimit(); err != nil {
		s.log.Warn("descriptor limit not raised", "err", err)
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(fmt.Errorf("embedded server: %w", err), lock.release())
	}
	s.addr = s.ns.Load().Addr().String()
	ctx, cancel := context.WithCancel(context.Background())
	s.cancel = cancel
	go s.watch(ctx)
	return s, nil
}

func (o *ServerOptions) complete() error {
	if o.DataDir == "" {
		return errors.New("no data folder given")
	}
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	if o.Sync == "" {
		o.Sync = DefaultSync()
	}
	switch o.Sync {
	case SyncGroup, SyncAlways, SyncNone:
	default:
		return fmt.Errorf("unknown sync mode %q", o.Sync)
	}
	if o.Sync == SyncGroup && !haveSyncfs {
		return errors.New("sync mode group needs syncfs, which this system does not have: use always")
	}
	if o.MaxPayload == 0 {
		o.MaxPayload = DefaultMaxPayload
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.HealthInterval == 0 {
		o.HealthInterval = time.Second
	}
	if o.StartTimeout == 0 {
		o.StartTimeout = 10 * time.Minute
	}
	return nil
}

// DefaultSync is the sync mode of an engine that was not told one.
func DefaultSync() SyncMode {
	if haveSyncfs {
		return SyncGroup
	}
	return SyncAlways
}

// start runs a server on s.addr and waits for it.
func (s *Server) start() error {
	host, port, err := listenAddress(s.addr)
	if err != nil {
		return err
	}
	if err := finishStreams(s.StoreDir(), s.log); err != nil {
		return err
	}
	ns, err := server.NewServer(s.natsOptions(host, port))
	if err != nil {
		return err
	}
	s.fatal.Store(nil)
	ns.SetLoggerV2(serverLogger{log: s.log, fatal: &s.fatal}, false, false, false)
	go ns.Start()
	if err := s.awaitReady(ns); err != nil {
		ns.Shutdown()
		return err
	}
	s.ns.Store(ns)
	return nil
}

func (s *Server) natsOptions(host string, port int) *server.Options {
	return &server.Options{
		// The name tells clients of other engines that answers here wait for
		// a barrier (RemoteBarrier).
		ServerName: serverNamePrefix + string(s.opts.Sync),
		Host:       host, Port: port,
		NoLog: true, NoSigs: true, DisableJetStreamBanner: true,
		MaxPayload: s.opts.MaxPayload,
		JetStream:  true, StoreDir: s.opts.DataDir,
		// The disk is the only limit: a limit of the server's own would
		// disable JetStream at start-up figures that are long out of date.
		JetStreamMaxStore: 1 << 50,
		// Beyond the queue limit the server drops all waiting requests.
		JetStreamRequestQueueLimit: 100_000,
		JetStreamInfoQueueLimit:    100_000,
		SyncAlways:                 s.opts.Sync == SyncAlways,
	}
}

// awaitReady waits until ns accepts connections or said why it can not.
func (s *Server) awaitReady(ns *server.Server) error {
	for end := time.Now().Add(s.opts.StartTimeout); time.Now().Before(end); {
		if ns.ReadyForConnections(20*time.Millisecond) && ns.JetStreamEnabled() {
			return nil
		}
		if msg := s.fatal.Load(); msg != nil {
			return errors.New(*msg)
		}
	}
	return fmt.Errorf("not ready after %s", s.opts.StartTimeout)
}

// listenAddress takes host:port apart. For a fixed port it makes sure that it
// is free, since the server's own message for that is hard to act on.
func listenAddress(addr string) (string, int, error) {
	host, portText, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("listen address %q: %w", addr, err)
	}
	port, err := strconv.Atoi(portText)
	if err != nil || port < 0 || port > 65535 {
		return "", 0, fmt.Errorf("listen address %q: not a port: %q", addr, portText)
	}
	if port == 0 {
		return host, server.RANDOM_PORT, nil
	}
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", addr)
	switch {
	case isAddrInUse(err):
		return "", 0, fmt.Errorf("%w: %s (choose another with --listen, or use the running server with --nats)", ErrPortInUse, addr)
	case err != nil:
		return "", 0, fmt.Errorf("listen on %s: %w", addr, err)
	}
	if err := l.Close(); err != nil {
		return "", 0, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return host, port, nil
}

// URL is the address for clients, nats://host:port.
func (s *Server) URL() string { return "nats://" + s.addr }

// Sync is the mode the server runs in.
func (s *Server) Sync() SyncMode { return s.opts.Sync }

// StoreDir is the folder that holds the streams, which may be a mount of its
// own; a sync of its file system makes them durable.
func (s *Server) StoreDir() string {
	return filepath.Join(s.opts.DataDir, server.JetStreamStoreDir)
}

// closeTimeout bounds the graceful end; recovery does not need it to succeed.
const closeTimeout = 20 * time.Second

// Close ends the server gracefully, within 20 s, and gives the data folder
// free. It is idempotent.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.cancel()
	<-s.done
	if err := shutdown(s.ns.Swap(nil)); err != nil {
		// The server may still write: the lock stays until the process ends.
		return fmt.Errorf("embedded server: %w", err)
	}
	return s.lock.release()
}

func shutdown(ns *server.Server) error {
	if ns == nil {
		return nil
	}
	ended := make(chan struct{})
	go func() {
		ns.Shutdown()
		ns.WaitForShutdown()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-time.After(closeTimeout):
		return fmt.Errorf("not ended after %s", closeTimeout)
	}
}
