// Package natstest runs NATS servers for tests: one, one that is restarted on
// the same data, and a cluster of three.
package natstest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// startTimeout is long because the race detector and other tests share the
// processors.
const startTimeout = 3 * time.Minute

// Ports are below those that a system gives to who asks for any, and to outgoing
// connections.
const firstPort, portCount = 20000, 12000

// lastPort counts the ports of this process, from any of them on.
var lastPort atomic.Uint32

func init() { lastPort.Store(rand.Uint32N(portCount)) } //nolint:gosec // spreads processes

// Port is a free port of the loopback that nobody is given meanwhile who asks for
// any: a server can go and come back under it.
func Port(t testing.TB) int {
	t.Helper()
	for range portCount {
		port := firstPort + int(lastPort.Add(1)%portCount)
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
		if err != nil {
			continue
		}
		_ = l.Close()
		return port
	}
	t.Fatal("no port is free")
	return 0
}

// Server is a server with JetStream in a folder of the test's own.
type Server struct {
	*server.Server
	opts server.Options
}

// Start runs a server on a free port of the loopback; it ends with the test.
// change, which may be nil, adapts its options.
func Start(t testing.TB, change func(*server.Options)) *Server {
	t.Helper()
	opts := server.Options{
		Host: "127.0.0.1", Port: Port(t), NoLog: true, NoSigs: true,
		DisableJetStreamBanner: true, JetStream: true, StoreDir: t.TempDir(),
		JetStreamMaxStore: 1 << 40,
	}
	if change != nil {
		change(&opts)
	}
	s := &Server{opts: opts}
	s.run(t)
	t.Cleanup(func() { s.Stop() })
	return s
}

func (s *Server) run(t testing.TB) {
	t.Helper()
	opts := s.opts
	ns, err := server.NewServer(&opts)
	if err != nil {
		t.Fatalf("nats server: %v", err)
	}
	go ns.Start()
	if !ns.ReadyForConnections(startTimeout) {
		ns.Shutdown()
		t.Fatalf("nats server not ready after %s", startTimeout)
	}
	s.Server = ns
}

// Stop ends the server and waits for that.
func (s *Server) Stop() {
	s.Shutdown()
	s.WaitForShutdown()
}

// Restart runs the server again on the same port and data; it is stopped
// first if it runs.
func (s *Server) Restart(t testing.TB) {
	t.Helper()
	s.Stop()
	s.run(t)
}

// Connect opens a connection that keeps reconnecting until the test ends.
func (s *Server) Connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	return connect(t, s.ClientURL(), opts)
}

func connect(t testing.TB, urls string, opts []nats.Option) *nats.Conn {
	t.Helper()
	opts = append([]nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ReconnectBufSize(-1), nats.Timeout(startTimeout / 4),
	}, opts...)
	nc, err := nats.Connect(urls, opts...)
	if err != nil {
		t.Fatalf("connect: %v", err)
	}
	t.Cleanup(nc.Close)
	return nc
}

// Cluster is three servers that replicate streams.
type Cluster struct {
	Servers []*Server
}

// StartCluster runs three servers and waits until they agree on a leader.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	const size = 3
	var ports [size]int
	routes := make([]*url.URL, size)
	for i := range ports {
		ports[i] = Port(t)
		routes[i] = &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", ports[i])}
	}
	c := &Cluster{Servers: make([]*Server, size)}
	for i, port := range ports {
		c.Servers[i] = Start(t, func(o *server.Options) {
			o.ServerName = fmt.Sprintf("n%d", i)
			o.Cluster = server.ClusterOpts{Name: "test", Host: "127.0.0.1", Port: port}
			o.Routes = routes
		})
	}
	c.awaitLeader(t)
	return c
}

func (c *Cluster) awaitLeader(t testing.TB) {
	t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, s := range c.Servers {
			if s.JetStreamIsLeader() && len(s.JetStreamClusterPeers()) == len(c.Servers) && s.JetStreamIsCurrent() {
				return
			}
		}
	}
	t.Fatalf("no leader after %s", startTimeout)
}

// Leader is the server that leads the stream of the global account, once one does.
func (c *Cluster) Leader(t testing.TB, stream string) *Server {
	t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		for _, s := range c.Servers {
			if s.Running() && s.JetStreamIsStreamLeader(server.DEFAULT_GLOBAL_ACCOUNT, stream) {
				return s
			}
		}
	}
	t.Fatalf("no leader of %s after %s", stream, startTimeout)
	return nil
}

// Connect opens a connection that knows all servers.
func (c *Cluster) Connect(t testing.TB, opts ...nats.Option) *nats.Conn {
	t.Helper()
	urls := make([]string, len(c.Servers))
	for i, s := range c.Servers {
		urls[i] = s.ClientURL()
	}
	return connect(t, strings.Join(urls, ","), opts)
}
