package engine

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"strings"

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
	o := web.Options{Healthy: e.healthy, Ready: e.takesCommands, Metrics: e.metrics, Hosts: e.cfg.HTTPHosts, Logger: e.log}
	var token string
	if e.views != nil {
		o.Query, o.Commands, o.Read, o.Log, o.Feed, o.Status = e.views, pageCommands{e.rules, e.subjects}, pageReads{e.rules}, e.sessions, e.feed(), e.views.status
		if o.Tokens, token, err = e.tokens(); err != nil {
			return nil, err
		}
		o.TokenForReads = !loopback(address)
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
		e.log.Info("page", "url", web.PageURL(l.Addr(), token))
	}
	return func(ctx context.Context) error { return s.Serve(ctx, l) }, nil
}

// tokens are those of the file, or one that is kept in the data folder and
// shown at the start.
func (e *engine) tokens() (t *web.Tokens, shown string, err error) {
	if e.cfg.HTTPTokens != "" {
		f, err := os.Open(e.cfg.HTTPTokens)
		if err != nil {
			return nil, "", usage("--http-tokens: %v", err)
		}
		defer f.Close()
		if t, err = web.ReadTokens(f); err != nil {
			return nil, "", usage("--http-tokens %s: %v", e.cfg.HTTPTokens, err)
		}
		return t, "", nil
	}
	if shown, err = web.KeptToken(filepath.Join(e.cfg.Data, tokenFile)); err != nil {
		return nil, "", err
	}
	t = &web.Tokens{}
	return t, shown, t.Add(e.pageActor(), shown)
}

// pageActor is who decides on the page where no file of tokens says so.
func (e *engine) pageActor() string {
	if e.cfg.HTTPActor != "" {
		return e.cfg.HTTPActor
	}
	if u, err := user.Current(); err == nil && bus.ValidToken(u.Username) && !bus.ReservedToken(u.Username) {
		return u.Username
	}
	return "page"
}

// loopback says that nobody but this machine reaches the address.
func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
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
