package web

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"culm/events"
)

// MaxBody bounds the body of a command or a query, in bytes.
const MaxBody = 1 << 20

// Options are what a Server works with. Without a Query there is neither page
// nor API; with it, Read, Log and Feed are needed. Without Commands, or for
// whoever has no token, the page can look and not touch.
type Options struct {
	Query    Querier
	Commands Commands
	Read     Reader
	Log      Log
	Feed     events.Feed
	// Deltas are streamed to who asks for them; nil for none.
	Deltas Deltas
	// Gone brings the names of sessions that the views have dropped because the
	// log has them no more; a deletion leaves no event. nil never does.
	Gone Gone
	// Status is shown on the page; nil tells nothing but the version.
	Status func(ctx context.Context) Status
	// Healthy says whether the process can do its work, Ready whether it takes
	// requests; nil is always.
	Healthy, Ready func() error
	Metrics        *Metrics // nil for none
	Tokens         *Tokens
	// TokenForReads asks for a token for looking, too: for a listener that
	// others than this machine reach.
	TokenForReads bool
	// Hosts are the names, besides those of loopback, under which the server
	// may be asked: host names or addresses, without port.
	Hosts []string
	// Heartbeat is the pause after which a quiet event stream says something,
	// 10 s; WriteTimeout what a client may take for one write of it, 15 s;
	// MaxClients how many may follow at once, 256.
	Heartbeat    time.Duration
	WriteTimeout time.Duration
	MaxClients   int
	Logger       *slog.Logger
}

// Server answers over HTTP until the context of Serve ends.
type Server struct {
	opts    Options
	guard   guard
	hub     *hub
	heavy   chan struct{} // holds one for each request that reads a whole log
	clients atomic.Int64
	mux     *http.ServeMux
}

// maxHeavy is how many whole logs are read at once for the API.
const maxHeavy = 4

// New checks the options and builds the server.
func New(o Options) (*Server, error) {
	if o.Query != nil && (o.Read == nil || o.Log == nil || o.Feed == nil) {
		return nil, errors.New("web: a page needs reads, a log and a feed")
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	if o.Tokens == nil {
		o.Tokens = &Tokens{}
	}
	if o.Heartbeat == 0 {
		o.Heartbeat = 10 * time.Second
	}
	if o.WriteTimeout == 0 {
		o.WriteTimeout = writeTimeout
	}
	if o.MaxClients == 0 {
		o.MaxClients = 256
	}
	s := &Server{opts: o, heavy: make(chan struct{}, maxHeavy), mux: http.NewServeMux()}
	for _, h := range o.Hosts {
		if h = strings.ToLower(strings.TrimSpace(h)); h != "" {
			s.guard.hosts = append(s.guard.hosts, h)
		}
	}
	s.routes()
	if o.Query != nil {
		s.hub = newHub(o.Feed, o.Logger, time.Now())
	}
	return s, nil
}

// routes is the table of everything that is answered.
func (s *Server) routes() {
	s.mux.HandleFunc("GET /healthz", s.health)
	s.mux.HandleFunc("GET /readyz", s.readiness)
	if s.opts.Metrics != nil {
		s.mux.Handle("GET /metrics", s.opts.Metrics.handler())
	}
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		writeFault(w, refuse(codeNotFound, "there is no %.80q here, or not for %s", r.URL.Path, r.Method))
	})
	if s.opts.Query == nil {
		return
	}
	s.handle("GET /api/v1/status", s.status)
	s.handle("GET /api/v1/events", s.follow)
	s.handle("GET /api/v1/{view}/{verb}", s.queryGet)
	s.handle("POST /api/v1/{view}/{verb}", s.queryPost)
	s.handle("GET /api/v1/sessions/{session}/state", s.state)
	s.handle("GET /api/v1/sessions/{session}/events", s.rawEvents)
	s.handle("GET /api/v1/sessions/{session}/export", s.export)
	s.handle("GET /api/v1/sessions/{session}/audit", s.audit)
	s.handle("POST /api/v1/commands/{session}/{name}", s.command)
	s.page()
}

type actorKey struct{}

// actorOf is who sent the request, "" for nobody known.
func actorOf(ctx context.Context) string {
	actor, _ := ctx.Value(actorKey{}).(string)
	return actor
}

// requestTime bounds everything but the event stream and the export, which
// bound their writes one by one.
const requestTime = 65 * time.Second

// handle puts the guard and the token before a handler of the API, and spells
// its error.
func (s *Server) handle(pattern string, h func(http.ResponseWriter, *http.Request) error) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		err := s.guard.check(r)
		var actor string
		if err == nil {
			actor, err = s.opts.Tokens.of(r)
		}
		if err == nil && actor == "" && s.opts.TokenForReads {
			err = refuse(codeUnauthorized, "this server asks for a token; `culm page` prints the address with it")
		}
		if err == nil {
			_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(requestTime))
			err = h(w, r.WithContext(context.WithValue(r.Context(), actorKey{}, actor)))
		}
		if err != nil {
			writeFault(w, err)
		}
	})
}

// Handler is the server without a listener, for tests; the event stream needs
// Follow to run besides.
func (s *Server) Handler() http.Handler { return s.mux }

// Follow feeds the event streams until ctx ends. Serve does it by itself.
func (s *Server) Follow(ctx context.Context) {
	if s.hub == nil {
		return
	}
	go func() {
		for {
			select {
			case session := <-s.opts.Gone:
				s.hub.add(events.Record{Session: session, Type: goneType})
			case <-ctx.Done():
				return
			}
		}
	}()
	s.hub.run(ctx)
}

// Serve answers on the listener until ctx ends, and returns nil then; event
// streams end at once, other requests get a moment.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	followed := make(chan struct{})
	go func() { defer close(followed); s.Follow(ctx) }()
	srv := &http.Server{
		Handler: s.mux, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 32 << 10, ErrorLog: slog.NewLogLogger(s.opts.Logger.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, done := context.WithTimeout(context.Background(), 2*time.Second)
		defer done()
		if srv.Shutdown(grace) != nil {
			_ = srv.Close()
		}
	}()
	err := srv.Serve(l)
	cancel()
	<-stopped
	<-followed
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// PageURL is where the page is, with the token if there is one, for a listener's
// address. It is a secret of the person who started the process.
func PageURL(address net.Addr, token string) string {
	host, port, err := net.SplitHostPort(address.String())
	if err != nil {
		return "http://" + address.String() + "/"
	}
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "localhost"
	}
	page := "http://" + net.JoinHostPort(host, port) + "/"
	if token != "" {
		page += "#token=" + url.PathEscape(token)
	}
	return page
}

// health answers /healthz: the process can do its work.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) { report(w, s.opts.Healthy) }

// readiness answers /readyz: it takes requests.
func (s *Server) readiness(w http.ResponseWriter, _ *http.Request) {
	report(w, s.opts.Healthy, s.opts.Ready)
}

func report(w http.ResponseWriter, checks ...func() error) {
	secure(w.Header())
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	for _, check := range checks {
		if check == nil {
			continue
		}
		if err := check(); err != nil {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(err.Error() + "\n"))
			return
		}
	}
	_, _ = w.Write([]byte("ok\n"))
}
