// Package engine wires the parts of one engine process together: embedded
// server or connection, log, rules, front door, work queue, runner, health.
package engine

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"culm/bus"
	"culm/internal/config"
	"culm/projection/web"
	"culm/provider"
	"culm/tool"
)

// Config is what an engine process is told. The zero value with Data set is an
// engine that answers on a free loopback port.
type Config struct {
	NATS     string        // URL of an existing server or cluster; "" embeds one
	Listen   string        // host:port of the embedded server
	Data     string        // folder of its data, and of the views and the page's token
	Prefix   string        // of all subjects, default agent
	Lease    time.Duration // of a run, default 15 s
	Replicas int           // of every stream, default 1
	Layout   string        // per-session (default)
	Sync     string        // group, always or none: embedded server only
	NoRunner bool
	// ListenGiven says that somebody asked for Listen: with NATS, where nothing
	// would listen there, that is refused.
	ListenGiven bool
	// NoProjector leaves out the views, and with them the page.
	NoProjector bool
	HTTP        string   // address of health, metrics and page; "off" or "" for none
	HTTPHosts   []string // names, besides loopback's, under which the page may be asked
	HTTPTokens  string   // file of the page's tokens; "" mints one and keeps it in the data folder
	HTTPActor   string   // actor of the minted token, default the user of the process
	// Rules are what decisions rest on: providers, defaults of the roles,
	// permissions, gold. Without a provider it is the built-in sample.
	Rules config.Rules
	// Live are provider instances that the program brings along, besides those
	// of Rules; with any, the built-in sample is left out.
	Live map[string]provider.Provider
	// Tools run what the models of Live ask for; nil: no tool is there.
	Tools tool.Tools
	// RunnerName is the token of the built-in runner; "" mints one.
	RunnerName string
	Sessions   int // sessions that the built-in runner drives at once, default 64
	Version    string
	Logger     *slog.Logger
}

// ErrUsage: the configuration is wrong; the process exits with status 2.
var ErrUsage = errors.New("usage")

func usage(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUsage, fmt.Sprintf(format, args...))
}

const defaultLease = 15 * time.Second

// Check says whether Run would start with c, as far as that can be said without
// starting anything. Its errors wrap ErrUsage.
func (c Config) Check() error { return c.complete() }

// complete fills in defaults and checks everything that can be checked before
// anything is started.
func (c *Config) complete() error {
	if c.Prefix == "" {
		c.Prefix = "agent"
	}
	if c.Lease == 0 {
		c.Lease = defaultLease
	}
	if c.Replicas == 0 {
		c.Replicas = 1
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if _, err := bus.NewSubjects(c.Prefix); err != nil {
		return usage("--prefix: %v", err)
	}
	switch {
	case c.Layout == "sharded":
		return usage("--layout sharded is not served by this engine; per-session is")
	case c.Layout != "" && c.Layout != "per-session":
		return usage("--layout %q is unknown; per-session is served", c.Layout)
	case c.Lease < config.MinLease || c.Lease > config.MaxLease:
		return usage("--lease is %s, allowed are %s to %gh", c.Lease, config.MinLease, config.MaxLease.Hours())
	case c.Replicas < 1 || c.Replicas > 5:
		return usage("--replicas is %d, allowed are 1 to 5", c.Replicas)
	case c.Sessions < 0:
		return usage("--sessions is %d, at least 1 is needed", c.Sessions)
	case c.NATS == "" && c.Replicas > 1:
		return usage("--replicas %d needs a cluster: name it with --nats", c.Replicas)
	case c.HTTPActor != "" && (!bus.ValidToken(c.HTTPActor) || bus.ReservedToken(c.HTTPActor)):
		return usage("--http-actor %q is no actor", c.HTTPActor)
	case c.RunnerName != "" && !bus.ValidToken(c.RunnerName):
		return usage("runner name %q is no token", c.RunnerName)
	}
	if c.HTTP != "" {
		if p := config.SettingProblem("http", c.HTTP); p != "" {
			return usage("--http %q %s", c.HTTP, p)
		}
	}
	if c.HTTPTokens != "" && c.httpAddress() != "" && !c.NoProjector { // else nobody reads it
		if err := web.CheckTokens(c.HTTPTokens); err != nil {
			return usage("--http-tokens: %v", err)
		}
	}
	if err := c.checkServer(); err != nil {
		return err
	}
	if err := c.Rules.Check(); err != nil {
		return usage("%v", err)
	}
	return nil
}

func (c *Config) checkServer() error {
	if c.NATS != "" {
		if p := config.SettingProblem("nats", c.NATS); p != "" {
			return usage("--nats %s", p)
		}
		if c.Sync != "" {
			return usage("--sync is the embedded server's; a server of its own is told by its own configuration")
		}
		if c.ListenGiven {
			return usage("--listen %s is the address of an embedded server, but --nats or CULM_NATS names %s to use instead: leave one of them out (env -u CULM_NATS engine … embeds a server)", c.Listen, bus.Redact(c.NATS))
		}
		return nil
	}
	if c.Listen == "" {
		c.Listen = "127.0.0.1:0"
	}
	if p := config.SettingProblem("listen", c.Listen); p != "" {
		return usage("--listen %q %s", c.Listen, p)
	}
	if c.Data == "" {
		return usage("--data is empty")
	}
	switch bus.SyncMode(c.Sync) {
	case bus.SyncGroup:
		if bus.DefaultSync() != bus.SyncGroup {
			return usage("--sync group is not there on this system; always is")
		}
		return nil
	case "", bus.SyncAlways, bus.SyncNone:
		return nil
	}
	return usage("--sync %q is unknown; group, always and none are served", c.Sync)
}

func (c *Config) httpAddress() string {
	if strings.EqualFold(c.HTTP, "off") {
		return ""
	}
	return c.HTTP
}
