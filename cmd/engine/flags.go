package main

import (
	"log/slog"
	"time"

	"github.com/alecthomas/kong"

	"culm/internal/config"
	"culm/internal/engine"
	"culm/internal/version"
)

const description = `culm engine: commands in over NATS, one event each out, kept in JetStream.

Without arguments it embeds a NATS server on 127.0.0.1:4222, keeps its data in
./data and prints "nats: URL" and "ready" on standard output; the log goes to
standard error. SIGTERM and SIGINT stop it gracefully.

Every flag can also be set by its CULM_ variable or in the file of --config;
a flag wins over a variable, a variable over the file.

Exit status: 0 stopped gracefully, 1 failed, 2 bad arguments.`

// flags are the engine's settings; names are those of the configuration file.
type flags struct {
	NATS        string        `name:"nats" env:"CULM_NATS" placeholder:"URL" help:"Use this NATS server or cluster instead of embedding one."`
	Listen      string        `env:"CULM_LISTEN" default:"127.0.0.1:4222" placeholder:"HOST:PORT" help:"Address of the embedded server; port 0 picks a free one (${default})."`
	Data        string        `env:"CULM_DATA" default:"./data" placeholder:"DIR" help:"Folder of the embedded server's data, and, whichever server is used, of the views and the page's token (${default})."`
	Sync        string        `env:"CULM_SYNC" placeholder:"MODE" help:"When an answer of the embedded server is on disk: group (one shared sync for all that wait, the default), always (a sync for each append), none (for tests: survives a kill, not a power cut)."`
	Prefix      string        `env:"CULM_PREFIX" default:"agent" placeholder:"TOKENS" help:"Prefix of all subjects (${default})."`
	Lease       time.Duration `env:"CULM_LEASE" default:"15s" placeholder:"DURATION" help:"How long a run lives without a word from its runner, 1s to 24h (${default})."`
	Replicas    int           `env:"CULM_REPLICAS" default:"1" placeholder:"N" help:"Copies of every stream in a cluster, 1 to 5 (${default})."`
	Layout      string        `env:"CULM_LAYOUT" default:"per-session" placeholder:"LAYOUT" help:"per-session: a stream for each session (${default}). sharded is not served yet."`
	NoRunner    bool          `env:"CULM_NO_RUNNER" help:"Leave all runs to runners elsewhere."`
	NoProjector bool          `env:"CULM_NO_PROJECTOR" help:"Without views, and so without queries and page."`
	HTTP        string        `name:"http" env:"CULM_HTTP" default:"127.0.0.1:8280" placeholder:"ADDR" help:"Address of the page, the API, health and metrics, off for none (${default})."`
	HTTPHosts   []string      `name:"http-hosts" env:"CULM_HTTP_HOSTS" placeholder:"NAMES" help:"Names under which the page may be asked, besides those of this machine itself; separated by commas."`
	HTTPTokens  string        `name:"http-tokens" env:"CULM_HTTP_TOKENS" placeholder:"FILE" help:"Lines \"actor token\": who may decide on the page. Without it one token is made and kept; culm page shows it."`
	HTTPActor   string        `name:"http-actor" env:"CULM_HTTP_ACTOR" placeholder:"ACTOR" help:"Actor of the token that is made (the user's name)."`
	Sessions    int           `env:"CULM_SESSIONS" default:"64" placeholder:"N" help:"Sessions that the built-in runner drives at once, 1 to 100000 (${default})."`
	LogLevel    slog.Level    `env:"CULM_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`
	Config      string        `env:"CULM_CONFIG" placeholder:"FILE" help:"YAML file with these settings, providers, permissions and more."`
	CheckConfig bool          `name:"check-config" help:"Check the configuration, print which provider each name and role gets, and exit: 0 it is good, 2 it is not."`
	Version     bool          `help:"Print the version and exit."`

	helped      bool
	listenGiven bool // on the command line itself
}

// BeforeReset notes that help was asked for; kong has printed it.
func (f *flags) BeforeReset(k *kong.Kong, ctx *kong.Context) error {
	for _, p := range ctx.Path {
		f.helped = f.helped || p.Flag != nil && p.Flag.Name == "help"
	}
	return nil
}

// note keeps what the values alone do not tell.
func (f *flags) note(ctx *kong.Context) {
	for _, p := range ctx.Path {
		f.listenGiven = f.listenGiven || p.Flag != nil && p.Flag.Name == "listen" && !p.Resolved
	}
}

func (f *flags) config(rules config.Rules, log *slog.Logger) engine.Config {
	return engine.Config{
		NATS: f.NATS, Listen: f.Listen, ListenGiven: f.listenGiven, Data: f.Data, Prefix: f.Prefix, Lease: f.Lease, Replicas: f.Replicas, Layout: f.Layout,
		Sync: f.Sync, NoRunner: f.NoRunner, NoProjector: f.NoProjector, HTTP: f.HTTP, HTTPHosts: f.HTTPHosts, HTTPTokens: f.HTTPTokens, HTTPActor: f.HTTPActor, Sessions: f.Sessions, Rules: rules, Version: version.String(), Logger: log,
	}
}
