package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"culm/bus"
	"culm/projection"
)

type runCommand struct {
	HTTP string `name:"http" env:"CULM_HTTP" default:"127.0.0.1:8281" placeholder:"ADDR" help:"Address of /healthz and /readyz, off for none (${default})."`
}

// replyMargin is what an answer may need besides its content, in bytes.
const replyMargin = 4 << 10

// drainTime bounds the end of queries that are under way.
const drainTime = 10 * time.Second

// Run keeps the views up to date until ctx ends.
func (r *runCommand) Run(ctx context.Context, p *process) error {
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	views, err := projection.Open(ctx, projection.Options{
		File: p.DB, Log: c.log, Feed: bus.NewFeed(c.nc, c.log, bus.FeedOptions{Subjects: c.subjects, Logger: p.log}),
		MaxReply: int(c.nc.MaxPayload()) - replyMargin, Logger: p.log,
	})
	if err != nil {
		return err
	}
	service, err := views.Serve(projection.ServiceOptions{Conn: c.nc, Prefix: c.subjects.Prefix(), Version: version(), Logger: p.log})
	if err != nil {
		return errors.Join(err, views.Close())
	}
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return r.health(running, p, c, views) })
	g.Go(func() error { return p.sayReady(running, views) })
	g.Go(func() error {
		err := views.Run(running)
		if err == nil && ctx.Err() == nil {
			err = running.Err() // another part has failed
		}
		return err
	})
	err = g.Wait()
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return errors.Join(err, service.Stop(drain), views.Close())
}

func (p *process) sayReady(ctx context.Context, views *projection.Projector) error {
	select {
	case <-views.Ready():
		_, err := fmt.Fprintln(p.out, "ready")
		return err
	case <-ctx.Done():
		return nil
	}
}

// health answers /healthz and /readyz until ctx ends.
func (r *runCommand) health(ctx context.Context, p *process, c *connection, views *projection.Projector) error {
	if r.HTTP == "off" {
		return nil
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.HTTP)
	if err != nil {
		return fmt.Errorf("health on %s: %w; choose another with --http, or --http off", r.HTTP, err)
	}
	p.log.Info("health", "url", "http://"+l.Addr().String()+"/healthz")
	healthy := func() error {
		if !c.nc.IsConnected() {
			return errors.New("no connection to the NATS server")
		}
		return nil
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { report(w, healthy()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := healthy()
		select {
		case <-views.Ready():
		default:
			err = errors.Join(err, errors.New("catching up"))
		}
		report(w, err)
	})
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute}
	stop := context.AfterFunc(ctx, func() { _ = srv.Close() })
	defer stop()
	if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func report(w http.ResponseWriter, err error) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// redacted is a list of server URLs without passwords.
func redacted(urls string) string {
	parts := strings.Split(urls, ",")
	for i, part := range parts {
		if u, err := url.Parse(strings.TrimSpace(part)); err == nil {
			parts[i] = u.Redacted()
		}
	}
	return strings.Join(parts, ",")
}
