package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/go-json-experiment/json"

	"culm/events"
	"culm/internal/show"
)

// recordOf makes a record of stored bytes that came without their place: the
// event's own word for session and sequence is taken, which the chain proves.
func recordOf(payload []byte) events.Record {
	var e struct {
		Subject string `json:"subject"`
		Seq     uint64 `json:"seq"`
		Type    string `json:"type"`
	}
	if err := json.Unmarshal(payload, &e); err != nil {
		return events.Record{Payload: payload}
	}
	return events.Record{Session: e.Subject, Seq: e.Seq, Type: e.Type, Payload: payload}
}

// readFile reads stored events, one a line, and sorts them by session in the
// order of their first appearance. A line that can not be placed stays where it
// is, in the session of the line before.
func (a *app) readFile(name string) ([]auditable, error) {
	in := a.in
	if name != "-" {
		f, err := os.Open(name)
		if err != nil {
			return nil, usage(err, nil)
		}
		defer f.Close()
		in = f
	}
	bySession := map[string][]events.Record{}
	var order []string
	last, placed := events.Record{Session: "unknown"}, false
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			r := recordOf(line)
			placed = placed || r.Session != ""
			if r.Session == "" {
				r.Session, r.Seq = last.Session, last.Seq+1
			}
			if _, ok := bySession[r.Session]; !ok {
				order = append(order, r.Session)
			}
			bySession[r.Session] = append(bySession[r.Session], r)
			last = r
		}
		if err != nil {
			break
		}
	}
	if !placed && len(order) > 0 {
		if name == "-" {
			name = "standard input"
		}
		return nil, fmt.Errorf("%s is no log: it has not one event, a line each, as culm log SESSION --json prints them", show.Clip(show.Clean(name), 200))
	}
	logs := make([]auditable, len(order))
	for i, s := range order {
		number(bySession[s])
		logs[i] = auditable{s, sequence(bySession[s])}
	}
	return logs, nil
}

// number gives the records of a file the sequences that a log would have stored
// them under: line by line, but passing over what is nowhere in the file.
func number(records []events.Record) {
	left := map[uint64]int{} // how often a sequence is still to come
	for _, r := range records {
		left[r.Seq]++
	}
	at := records[0].Seq
	for i := range records {
		r := &records[i]
		left[r.Seq]--
		if r.Seq > at && left[at] == 0 {
			at = r.Seq
		}
		r.Seq = at
		at++
	}
}

func sequence(records []events.Record) iter.Seq2[events.Record, error] {
	return func(yield func(events.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}
