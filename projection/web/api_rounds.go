package web

import (
	"net/http"
	"time"

	"culm/events"
)

// maxRounds is how many rounds are told at most, the latest.
const maxRounds = 2000

// roundFigure is one round as the plots need it.
type roundFigure struct {
	Seq        uint64 `json:"seq"` // of the event that ended it, or began it
	Run        string `json:"run"`
	Round      uint32 `json:"round"` // 0-based, of the run
	Iteration  uint32 `json:"iteration,omitzero"`
	Status     string `json:"status"` // open, finished, failed or lost
	ElapsedMS  int64  `json:"elapsed_ms,omitzero"`
	Prompt     uint64 `json:"prompt"`
	Completion uint64 `json:"completion"`
	Total      uint64 `json:"total"`
	ToolCalls  int    `json:"tool_calls"`

	began time.Time
}

// rounds answers the figures of the session's rounds, from its log.
func (s *Server) rounds(w http.ResponseWriter, r *http.Request) error {
	session, err := sessionOf(r)
	if err != nil {
		return err
	}
	release, err := s.takeHeavy()
	if err != nil {
		return err
	}
	defer release()
	last, err := s.opts.Log.Last(r.Context(), session)
	if err != nil {
		return err
	}
	p := roundPlot{}
	for record, err := range s.opts.Log.Read(r.Context(), session, 0, last) {
		if err != nil {
			return err
		}
		if e, err := events.Decode(record.Payload); err == nil {
			p.add(&e)
		}
	}
	left := max(0, len(p.list)-maxRounds)
	writeJSON(w, http.StatusOK, struct {
		OK       bool           `json:"ok"`
		Session  string         `json:"session"`
		Sequence uint64         `json:"sequence"`
		Earlier  int            `json:"earlier"` // rounds left out before the first
		Items    []*roundFigure `json:"items"`
	}{true, session, last, left, append([]*roundFigure{}, p.list[left:]...)})
	return nil
}

// roundPlot collects rounds from events in order.
type roundPlot struct {
	list []*roundFigure
	open *roundFigure
}

func (p *roundPlot) add(e *events.Event) {
	switch d := e.Data.(type) {
	case events.RoundStarted:
		p.begin(e, d.RunID, d.Round, d.Iteration)
	case events.RoundFinished:
		if f := p.end(e, "finished"); f != nil {
			f.ToolCalls = len(d.Message.ToolCalls)
			if u := d.Usage; u != nil {
				f.Prompt, f.Completion, f.Total = u.Prompt, u.Completion, u.Total
			}
		}
		if d.Next != nil && d.Next.Admitted {
			p.begin(e, d.RunID, d.Next.Round, d.Next.Iteration)
		}
	case events.RoundFailed:
		p.end(e, "failed")
	case events.RunFinished, events.RunInterrupted, events.RunRefused, events.SessionClosed:
		p.end(e, "lost")
	}
}

func (p *roundPlot) begin(e *events.Event, run string, round, iteration uint32) {
	p.open = &roundFigure{Seq: e.Seq, Run: run, Round: round, Iteration: iteration, Status: "open", began: e.Time}
	p.list = append(p.list, p.open)
}

// end closes the open round; nil where none is open.
func (p *roundPlot) end(e *events.Event, status string) *roundFigure {
	f := p.open
	p.open = nil
	if f != nil {
		f.Seq, f.Status, f.ElapsedMS = e.Seq, status, max(0, e.Time.Sub(f.began).Milliseconds())
	}
	return f
}
