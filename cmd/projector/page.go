package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"

	"culm/aggregate"
	"culm/bus"
	"culm/internal/version"
	"culm/projection"
	"culm/projection/web"
)

// startHTTP listens for the page, its API, health and metrics; the returned
// function answers them until its context ends.
func (r *runCommand) startHTTP(ctx context.Context, p *process, c *connection, views *projection.Projector, gone web.Gone) (serve func(context.Context) error, err error) {
	if strings.EqualFold(r.HTTP, "off") {
		return func(context.Context) error { return nil }, nil
	}
	o, keepIn, err := r.page(p, c, views, gone)
	if err != nil {
		return nil, err
	}
	s, err := web.New(o)
	if err != nil {
		return nil, err
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", r.HTTP)
	if err != nil {
		return nil, fmt.Errorf("page and health on %s: %w; choose another with --http, or --http off", r.HTTP, err)
	}
	p.log.Info("health", "url", "http://"+l.Addr().String()+"/healthz")
	p.log.Info("page", "url", web.PageURL(l.Addr(), ""), "with_token", "culm page --http "+l.Addr().String()+" --file "+keepIn)
	return func(ctx context.Context) error { return s.Serve(ctx, l) }, nil
}

// page is what the page needs; keepIn is the file of the token that is made.
func (r *runCommand) page(p *process, c *connection, views *projection.Projector, gone web.Gone) (o web.Options, keepIn string, err error) {
	engines := overNATS{c}
	o = web.Options{
		Query: views, Commands: engines, Read: engines, Log: c.log,
		Feed:   bus.NewFeed(c.nc, c.log, bus.FeedOptions{Subjects: c.subjects, Logger: p.log}),
		Deltas: bus.NewDeltas(c.nc, c.subjects), Gone: gone,
		Status: func(ctx context.Context) web.Status {
			st, err := views.Stats(ctx)
			return web.StatusOf(st, err, version.String())
		},
		Metrics: web.NewMetrics(func(ctx context.Context) (web.Gauges, error) {
			st, err := views.Stats(ctx)
			return web.GaugesOf(st), err
		}),
		Healthy: c.healthy, Ready: caughtUp(views), Logger: p.log,
	}
	keepIn = p.DB + ".page-token"
	access := web.Access{Hosts: r.HTTPHosts, TokensFile: r.HTTPTokens, KeepIn: keepIn, Actor: r.HTTPActor}
	err = access.Apply(&o, r.HTTP)
	if err != nil && r.HTTPTokens != "" {
		return o, "", fmt.Errorf("%w: --http-tokens: %w", errUsage, err)
	}
	if err != nil {
		return o, "", fmt.Errorf("page: %w", err)
	}
	return o, keepIn, nil
}

func (c *connection) healthy() error {
	if !c.nc.IsConnected() {
		return errors.New("no connection to the NATS server")
	}
	return nil
}

func caughtUp(views *projection.Projector) func() error {
	return func() error {
		select {
		case <-views.Ready():
			return nil
		default:
			return errors.New("catching up")
		}
	}
}

// overNATS reaches the engines: the page's commands go out under the actor that
// its token names, which this connection must be allowed to speak for.
type overNATS struct{ c *connection }

// Do implements web.Commands.
func (n overNATS) Do(ctx context.Context, r aggregate.Request) (aggregate.Reply, error) {
	client, err := bus.NewClient(n.c.nc, n.c.subjects, r.Actor)
	if err != nil {
		return aggregate.Reply{}, err
	}
	opts := []bus.Option{bus.CommandID(r.ID)}
	if r.Expected != nil {
		opts = append(opts, bus.ExpectedSequence(*r.Expected))
	}
	if r.Traceparent != "" {
		opts = append(opts, bus.Traceparent(r.Traceparent))
	}
	return client.Do(ctx, r.Session, r.Name, r.Body, opts...)
}

// reader is who asks: reads need no name, the client wants one.
const reader = "projector"

// Read implements web.Reader.
func (n overNATS) Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	client, err := bus.NewClient(n.c.nc, n.c.subjects, reader)
	if err != nil {
		return aggregate.ReadReply{}, err
	}
	return client.Read(ctx, session, q)
}
