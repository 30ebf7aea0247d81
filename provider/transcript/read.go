package transcript

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Open reads the file at path; see Read.
func Open(path string, limits Limits) (*Recording, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open recording: %w", err)
	}
	defer func() { _ = f.Close() }() // only read
	r, err := Read(f, limits)
	if err != nil {
		return nil, fmt.Errorf("read recording %s: %w", filepath.Base(path), err)
	}
	return r, nil
}

// Read reads one recording to its end. It returns ErrTooLarge, ErrNothing
// (naming the first finding, if there is one), or the error of src.
func Read(src io.Reader, limits Limits) (*Recording, error) {
	limits = limits.withDefaults()
	counted := &io.LimitedReader{R: src, N: limits.Bytes + 1}
	lines := bufio.NewReaderSize(counted, 64<<10)
	c := newConversation(limits)
	for {
		line, long, err := readLine(lines, limits.Line)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("line %d: %w", c.Lines+1, err)
		}
		if counted.N == 0 {
			return nil, fmt.Errorf("%w: more than %d bytes", ErrTooLarge, limits.Bytes)
		}
		end := err != nil
		if end && len(line) == 0 && !long {
			return c.close()
		}
		c.Lines++
		if long {
			c.find(c.Lines, TooLong, fmt.Sprintf("more than %d bytes", limits.Line))
		} else {
			c.line(line)
		}
		if end {
			return c.close()
		}
	}
}

// readLine reads up to the next line feed, which it leaves out. A line of more
// than limit bytes is read to its end, and long is true. err is io.EOF after
// the last line, which may have no line feed.
func readLine(r *bufio.Reader, limit int) (line []byte, long bool, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if n := len(part); n > 0 && part[n-1] == '\n' {
			part = part[:n-1]
		}
		if long = long || len(line)+len(part) > limit; !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		return line, long, err
	}
}
