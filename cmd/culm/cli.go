package main

import (
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"culm/bus"
)

const description = `Drive, watch and audit agent sessions that a culm engine keeps.

Start an engine first (go run ./cmd/engine). Then, for a session of three
repetitions:

  culm session create demo --mode auto
  culm loop start demo "Improve the text: the next draft, please." --iterations 3 --follow
  culm audit demo

Exit status: 0 all is well; 1 refused, failed or, with --follow, not finished,
and findings of an audit; 2 bad arguments.`

// globals are the flags of every command.
type globals struct {
	NATS    string        `name:"nats" env:"CULM_NATS" default:"nats://127.0.0.1:4222" placeholder:"URL" help:"NATS server, or several separated by commas."`
	Creds   string        `env:"CULM_CREDS" type:"existingfile" placeholder:"FILE" help:"NATS credentials."`
	Prefix  string        `env:"CULM_PREFIX" default:"agent" placeholder:"TOKEN" help:"First token of all subjects."`
	Actor   string        `env:"CULM_ACTOR" default:"${actor}" placeholder:"TOKEN" help:"Who speaks; by default your user name (${default})."`
	JSON    bool          `name:"json" help:"Print JSON, one document a line, for programs; a refusal is an object with error, told in words on standard error."`
	Timeout time.Duration `env:"CULM_TIMEOUT" default:"10s" placeholder:"DURATION" help:"How long to wait for an answer (${default})."`
	NoColor bool          `help:"Never colour the output; the variable NO_COLOR does the same."`
}

// cli is the whole command line.
type cli struct {
	globals     `embed:"" group:"For every command:"`
	ShowVersion versionFlag `name:"version" help:"Print the version."`

	Session struct {
		Create sessionCreate `cmd:"" help:"Create a session."`
		List   sessionList   `cmd:"" help:"List the sessions, the latest active first."`
		Show   sessionShow   `cmd:"" help:"Show a session: settings, run, loop and what waits for a person."`
		Close  sessionClose  `cmd:"" help:"Close a session for good; what is stored stays readable."`
		Delete sessionDelete `cmd:"" help:"Delete a session and all that is stored of it."`
	} `cmd:"" help:"Create, list, show, close and delete sessions."`
	Send send `cmd:"" help:"Store a message of yours in a session, without a run."`
	Run  run  `cmd:"" help:"Ask for a run: the model answers, tools included, until it is done."`
	Loop struct {
		Start    loopStart    `cmd:"" help:"Repeat one prompt a counted number of times."`
		Stop     loopStop     `cmd:"" help:"Stop the loop after the round that is under way."`
		Status   loopStatus   `cmd:"" help:"Show how far the loop is."`
		Continue loopContinue `cmd:"" help:"Go on with a loop that is blocked: interrupted, or ended by a call that waited."`
		Abandon  loopAbandon  `cmd:"" help:"Leave a blocked loop as it ended, and free the session."`
	} `cmd:"" help:"Start, stop and follow counted loops."`
	Cancel cancel `cmd:"" help:"Cancel the run: nothing more of it will start."`
	Resume resume `cmd:"" help:"Ask for a run of what is pending: an unanswered message, a decided call."`

	Pending pending `cmd:"" help:"Show everything that waits for a person, oldest first."`
	Approve approve `cmd:"" help:"Let a waiting call run, exactly as it is shown."`
	Deny    deny    `cmd:"" help:"Refuse a waiting call; the model is told."`
	Answer  answer  `cmd:"" help:"Answer a question of the agent."`
	Resolve resolve `cmd:"" help:"Say how a call ended whose outcome was lost."`
	Mode    mode    `cmd:"" help:"Set the permission mode of a session, or its plan mode."`
	Policy  struct {
		List   policyList   `cmd:"" help:"Show the mode and the rules of the installation."`
		Add    policyAdd    `cmd:"" help:"Add a rule."`
		Remove policyRemove `cmd:"" help:"Remove a rule."`
		Mode   policyMode   `cmd:"" help:"Set the mode of the installation."`
		Test   policyTest   `cmd:"" help:"Tell what would happen to a call, and by which rule; nothing happens."`
	} `cmd:"" help:"Rules for all sessions: what may run, what never, what is always asked about."`

	Watch watch  `cmd:"" help:"Show events as they happen, without a gap."`
	Log   logCmd `cmd:"" help:"Show the stored events of a session."`
	State state  `cmd:"" help:"Show the state that the stored events add up to."`
	Audit audit  `cmd:"" help:"Check that nothing stored was changed, lost, doubled or moved."`

	Search search     `cmd:"" help:"Find messages of all sessions by their words."`
	Usage  tokenUsage `cmd:"" help:"Show the tokens that models used, by session, model or day."`
	Page   page       `cmd:"" help:"Print the address of the engine's web page."`

	Demo       demo       `cmd:"" help:"Run a loop on an engine of its own in a temporary folder, and audit it."`
	Help       help       `cmd:"" help:"Show help about a command."`
	Version    version    `cmd:"" help:"Print the version."`
	Completion completion `cmd:"" help:"Print a completion script for a shell."`
}

func options(a *app) []kong.Option {
	return []kong.Option{
		kong.Name("culm"), kong.Description(description),
		kong.Vars{"actor": defaultActor()},
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoAppDescFormat: true, WrapUpperBound: 100}),
		kong.Writers(a.out, a.errOut), kong.Bind(a),
		kong.Exit(func(code int) { panic(exit(code)) }),
	}
}

// check refuses what no subject can carry, before anything is sent.
func (g *globals) check() error {
	g.NoColor = g.NoColor || os.Getenv("NO_COLOR") != ""
	if _, err := bus.NewSubjects(g.Prefix); err != nil {
		return fmt.Errorf("--prefix: %w", err)
	}
	if err := checkToken("--actor", g.Actor); err != nil {
		return err
	}
	if bus.ReservedToken(g.Actor) {
		return fmt.Errorf("--actor %s: names that begin with _ are the engine's own", g.Actor)
	}
	if g.Timeout <= 0 {
		return fmt.Errorf("--timeout %s: must be more than 0", g.Timeout)
	}
	return nil
}

func checkToken(what, s string) error {
	if !bus.ValidToken(s) {
		return fmt.Errorf("%s %q: 1 to 64 letters, digits, _ and - are allowed", what, s)
	}
	return nil
}

// sessionName is an argument that names a session.
type sessionName string

// Validate is called by the parser.
func (s sessionName) Validate() error { return checkToken("session", string(s)) }

// defaultActor turns the name of the user into a token.
func defaultActor() string {
	name := os.Getenv("USER")
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	return toToken(name[strings.LastIndexByte(name, '\\')+1:])
}

func toToken(name string) string {
	clean := strings.Map(func(r rune) rune {
		if bus.ValidToken(string(r)) {
			return r
		}
		return '-'
	}, name)
	clean = strings.Trim(clean, "_-")
	if len(clean) > 64 {
		clean = clean[:64]
	}
	if clean == "" {
		return "user"
	}
	return clean
}
