package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"

	"culm/aggregate"
	"culm/bus"
	"culm/events"
	"culm/projection/web"
)

// tokenFile holds the page's token in the data folder, so that an open page can
// go on after a restart.
const tokenFile = "page-token"

// startHTTP listens for health, metrics and, with views, the page; the returned
// function serves until its context ends. Nothing is done without an address.
func (e *engine) startHTTP() (serve func(context.Context) error, err error) {
	address := e.cfg.httpAddress()
	if address == "" {
		return func(context.Context) error { return nil }, nil
	}
	o := web.Options{Healthy: e.healthy, Ready: e.takesCommands, Metrics: e.metrics, Logger: e.log}
	if e.views != nil {
		o.Query, o.Commands, o.Read, o.Log, o.Feed, o.Status = e.views, pageCommands{e.rules, e.subjects}, pageReads{e.rules}, e.sessions, e.feed(), e.views.status
		o.Deltas, o.Gone = bus.NewDeltas(e.nc, e.subjects), e.views.gone
		access := web.Access{Hosts: e.cfg.HTTPHosts, TokensFile: e.cfg.HTTPTokens, KeepIn: filepath.Join(e.cfg.Data, tokenFile), Actor: e.cfg.HTTPActor}
		if err = access.Apply(&o, address); err != nil {
			if e.cfg.HTTPTokens != "" {
				return nil, usage("--http-tokens: %v", err)
			}
			return nil, err
		}
	}
	s, err := web.New(o)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", address) //nolint:noctx // bound for the life of the process
	if err != nil {
		return nil, fmt.Errorf("health and page on %s: %w; choose another with --http, or --http off", address, err)
	}
	e.onStop(func(context.Context) error { _ = l.Close(); return nil })
	e.log.Info("health", "url", "http://"+l.Addr().String()+"/healthz")
	if e.views != nil {
		e.log.Info("page", "url", web.PageURL(l.Addr(), ""), "with_token", "culm page --http "+l.Addr().String()+" --data "+e.cfg.Data)
	}
	return func(ctx context.Context) error { return s.Serve(ctx, l) }, nil
}

// healthy says whether the server can be reached and can write.
func (e *engine) healthy() error {
	if e.server != nil {
		if err := e.server.Healthy(); err != nil {
			return err
		}
	}
	if !e.nc.IsConnected() {
		return errors.New("no connection to the NATS server")
	}
	return nil
}

func (e *engine) takesCommands() error {
	if !e.ready.Load() {
		return errors.New("starting or stopping")
	}
	return nil
}

// pageCommands gives the page's commands to the rules, as the bus would.
type pageCommands struct {
	rules    aggregate.Service
	subjects bus.Subjects
}

// Do implements web.Commands.
func (c pageCommands) Do(ctx context.Context, r aggregate.Request) (aggregate.Reply, error) {
	r.Digest = events.CommandDigest(c.subjects.Command(r.Actor, r.Session, r.Name), r.Body)
	out := make(chan aggregate.Reply, 1)
	c.rules.Handle(ctx, r, func(reply aggregate.Reply) { out <- reply })
	select {
	case reply := <-out:
		return reply, nil
	case <-ctx.Done():
		return aggregate.Reply{}, ctx.Err()
	}
}

// pageReads answers the page's reads.
type pageReads struct{ rules aggregate.Service }

// Read implements web.Reader.
func (c pageReads) Read(ctx context.Context, session string, q aggregate.ReadQuery) (aggregate.ReadReply, error) {
	out := make(chan aggregate.ReadReply, 1)
	c.rules.Read(ctx, session, q, func(reply aggregate.ReadReply) { out <- reply })
	select {
	case reply := <-out:
		return reply, nil
	case <-ctx.Done():
		return aggregate.ReadReply{}, ctx.Err()
	}
}
