package bus

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
)

// logCapture is a logger whose lines a test counts.
type logCapture struct {
	*slog.Logger
	mu  sync.Mutex
	buf bytes.Buffer
}

func startLogCapture() *logCapture {
	c := &logCapture{}
	c.Logger = slog.New(slog.NewTextHandler(c, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return c
}

func (c *logCapture) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.buf.Write(b)
}

func (c *logCapture) count(text string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Count(c.buf.String(), text)
}
