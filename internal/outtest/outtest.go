// Package outtest takes what a program prints or logs, for tests that wait for
// words of it.
package outtest

import (
	"strings"
	"sync"
	"testing"
	"time"
)

// Output is an io.Writer of any number of goroutines. Make it with New.
type Output struct {
	patience time.Duration
	mu       sync.Mutex
	text     strings.Builder
	more     chan struct{} // closed when more is written
}

// New makes one whose Await waits that long.
func New(patience time.Duration) *Output {
	return &Output{patience: patience, more: make(chan struct{})}
}

// Write implements io.Writer.
func (o *Output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.more)
	o.more = make(chan struct{})
	return o.text.Write(b)
}

// String is all that was written so far.
func (o *Output) String() string {
	text, _ := o.now()
	return text
}

func (o *Output) now() (string, <-chan struct{}) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String(), o.more
}

// Await returns all that was written, once it has the words; without them the
// test ends.
func (o *Output) Await(t *testing.T, words string) string {
	t.Helper()
	for end := time.After(o.patience); ; {
		text, more := o.now()
		if strings.Contains(text, words) {
			return text
		}
		select {
		case <-more:
		case <-end:
			t.Fatalf("no %q in:\n%s", words, text)
		}
	}
}
