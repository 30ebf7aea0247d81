package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"

	"culm/bus"
	"culm/internal/version"
	"culm/projection"
	"culm/projection/web"
)

type runCommand struct {
	HTTP       string   `name:"http" env:"CULM_HTTP" default:"127.0.0.1:8281" placeholder:"ADDR" help:"Address of the page, the API, health and metrics, off for none (${default})."`
	HTTPHosts  []string `name:"http-hosts" env:"CULM_HTTP_HOSTS" placeholder:"NAMES" help:"Names under which the page may be asked, besides those of this machine itself; separated by commas."`
	HTTPTokens string   `name:"http-tokens" env:"CULM_HTTP_TOKENS" placeholder:"FILE" help:"Lines \"actor token\": who may decide on the page. Without it one token is made and kept; culm page shows it."`
	HTTPActor  string   `name:"http-actor" env:"CULM_HTTP_ACTOR" placeholder:"ACTOR" help:"Actor of the token that is made (the user's name)."`
}

// drainTime bounds the end of queries that are under way.
const drainTime = 10 * time.Second

// Run keeps the views up to date until ctx ends.
func (r *runCommand) Run(ctx context.Context, p *process) error {
	if err := r.check(); err != nil {
		return err
	}
	c, err := p.connect(ctx)
	if err != nil {
		return err
	}
	defer c.nc.Close()
	gone := web.NewGone()
	id, err := c.log.ID(ctx)
	if err != nil {
		return err
	}
	views, err := projection.Open(ctx, projection.Options{
		File: p.DB, Log: c.log, LogID: id, Feed: bus.NewFeed(c.nc, c.log, bus.FeedOptions{Subjects: c.subjects, Logger: p.log}),
		MaxReply: int(c.nc.MaxPayload()) - bus.ReplyMargin, Gone: gone.Tell, Logger: p.log,
	})
	if errors.Is(err, projection.ErrOtherLog) {
		return fmt.Errorf("%w; choose another database with --db, or if the server was made anew, projector rebuild", err)
	}
	if err != nil {
		return err
	}
	service, err := bus.StartQueries(bus.QueriesOptions{
		Conn: c.nc, Subjects: c.subjects, Answer: views.Answer, Names: projection.Queries(), Version: version.String(), Logger: p.log,
	})
	if err != nil {
		return errors.Join(err, views.Close())
	}
	serve, err := r.startHTTP(ctx, p, c, views, gone)
	if err == nil {
		err = p.keepUp(ctx, views, serve)
	}
	drain, cancel := context.WithTimeout(context.Background(), drainTime)
	defer cancel()
	return errors.Join(err, service.Stop(drain), views.Close())
}

// keepUp runs the views and the page until ctx ends or one of them fails.
func (p *process) keepUp(ctx context.Context, views *projection.Projector, serve func(context.Context) error) error {
	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return serve(running) })
	g.Go(func() error { return p.sayReady(running, views) })
	g.Go(func() error {
		err := views.Run(running)
		if err == nil && ctx.Err() == nil {
			err = running.Err() // another part has failed
		}
		return err
	})
	return g.Wait()
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
