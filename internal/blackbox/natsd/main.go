// Command natsd is a NATS server with JetStream for tests, a process of its own
// so that it can be stopped and killed. It prints "nats: URL" and runs until
// SIGTERM.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "natsd:", err)
		os.Exit(1)
	}
}

func run() error {
	dir := flag.String("data", "", "folder of the streams")
	port := flag.Int("port", server.RANDOM_PORT, "port on the loopback, -1 for a free one")
	payload := flag.Int("max-payload", 1<<20, "greatest message in bytes")
	always := flag.Bool("sync-always", false, "sync each write before it is acknowledged")
	flag.Parse()
	ns, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: *port, NoLog: true, NoSigs: true, DisableJetStreamBanner: true,
		JetStream: true, StoreDir: *dir, JetStreamMaxStore: 1 << 40, SyncAlways: *always, MaxPayload: int32(*payload), //nolint:gosec // a test's own flag
	})
	if err != nil {
		return err
	}
	go ns.Start()
	if !ns.ReadyForConnections(time.Minute) {
		return fmt.Errorf("not ready on port %d", *port)
	}
	fmt.Println("nats:", ns.ClientURL())
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	<-ctx.Done()
	ns.Shutdown()
	ns.WaitForShutdown()
	return nil
}
