package engine

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"
)

// serveHealth answers /healthz (the process can do its work) and /readyz (it
// takes commands) until ctx ends.
func (e *engine) serveHealth(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { report(w, e.healthy()) })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		err := e.healthy()
		if err == nil && !e.ready.Load() {
			err = errors.New("starting or stopping")
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
