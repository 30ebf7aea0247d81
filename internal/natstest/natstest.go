// Package natstest runs NATS servers for tests: one, one that is restarted on
// the same data, and a cluster of three.
package natstest

import (
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const startTimeout = 30 * time.Second

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
		Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true,
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
	if addr, ok := ns.Addr().(*net.TCPAddr); ok {
		s.opts.Port = addr.Port
	}
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
		nats.ReconnectBufSize(-1),
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
	ports := freePorts(t, 3)
	routes := make([]*url.URL, len(ports))
	for i, port := range ports {
		routes[i] = &url.URL{Scheme: "nats", Host: fmt.Sprintf("127.0.0.1:%d", port)}
	}
	c := &Cluster{Servers: make([]*Server, len(ports))}
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

func freePorts(t testing.TB, n int) []int {
	t.Helper()
	ports := make([]int, n)
	for i := range ports {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		if addr, ok := l.Addr().(*net.TCPAddr); ok {
			ports[i] = addr.Port
		}
	}
	return ports
}
