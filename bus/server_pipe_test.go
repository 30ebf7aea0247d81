package bus

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"testing"
	"time"
)

// TestPipe_Order: what is written comes out as it was written, and what was
// written before the end comes out although it is closed.
func TestPipe_Order(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	p := newPipe(ours)
	read := make(chan []byte, 1)
	go func() {
		all, err := io.ReadAll(theirs)
		if err != nil {
			t.Error(err)
		}
		read <- all
	}()
	var want []byte
	for n := range 5000 {
		line := []byte(strconv.Itoa(n) + "\n")
		want = append(want, line...)
		if wrote, err := p.Write(line); wrote != len(line) || err != nil {
			t.Fatalf("%d, %v", wrote, err)
		}
		clear(line) // the writer uses its buffer again
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	if got := awaitValue(t, read); !bytes.Equal(got, want) {
		t.Errorf("%d bytes came out of %d", len(got), len(want))
	}
	if _, err := p.Write([]byte("x")); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Write after Close: %v", err)
	}
}

// TestPipe_NobodyReads: a writer waits for room until its deadline, and goes on
// when there is some; Close does not wait for ever.
func TestPipe_NobodyReads(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	p := newPipe(ours)
	block := make([]byte, pipeRoom)
	if _, err := p.Write(block); err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(io.Discard, theirs, 1); err != nil { // so this block is on its way,
		t.Fatal(err)
	}
	if _, err := p.Write(block); err != nil { // and this one waits
		t.Fatal(err)
	}
	if err := p.SetWriteDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := p.Write([]byte("x")); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("without room: %d, %v", n, err)
	}
	if err := p.SetWriteDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() {
		_, err := p.Write([]byte("x"))
		wrote <- err
	}()
	if _, err := io.CopyN(io.Discard, theirs, pipeRoom); err != nil {
		t.Fatal(err)
	}
	if err := awaitValue(t, wrote); err != nil {
		t.Errorf("with room again: %v", err)
	}
	closed := make(chan error, 1)
	go func() { closed <- p.Close() }()
	if err := awaitValue(t, closed); err != nil {
		t.Error(err)
	}
}

// TestPipe_ServerGone: a writer learns that nobody reads any more.
func TestPipe_ServerGone(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	p := newPipe(ours)
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	awaitValue(t, p.done)
	if _, err := p.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("%v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}
