package engine

import (
	"context"
	"path/filepath"
	"slices"
	"strings"

	"culm/events"
	"culm/projection"
)

// shorter is a session whose log ends before an event that the views have seen,
// or that has lost events by the store's own count.
type shorter struct {
	session string
	seen    events.Head
	last    uint64 // of the log; 0: there is no log
	lost    uint64 // events that the store cannot give any more
}

// shorterLogs compares what the views have seen with what the log lists. The log
// of a new life begins above the former one, so it is not taken for a shorter
// one. A session without a log may have been deleted: that is for buried to say,
// which returns the last sequence of a deleted life.
func shorterLogs(seen map[string]events.Head, infos []events.Info, buried func(session string) (uint64, error)) ([]shorter, error) {
	var out []shorter
	listed := map[string]bool{}
	for _, info := range infos {
		listed[info.Session] = true
		if h := seen[info.Session]; info.Lost > 0 || info.FirstSeq <= h.Seq && info.LastSeq < h.Seq {
			out = append(out, shorter{info.Session, h, info.LastSeq, info.Lost})
		}
	}
	for session, h := range seen {
		if listed[session] {
			continue
		}
		last, err := buried(session)
		if err != nil {
			return nil, err
		}
		if last < h.Seq {
			out = append(out, shorter{session, h, 0, 0})
		}
	}
	slices.SortFunc(out, func(a, b shorter) int { return strings.Compare(a.session, b.session) })
	return out, nil
}

// maxTold bounds the sessions that are named in the log.
const maxTold = 50

// tellShorter looks, before the views follow the log and while the database is
// this process's own, for what the log has lost since they were written. nats-server cuts a stream off where it cannot read its
// file, and nothing in what is left tells that from a shorter history.
func (e *engine) tellShorter(ctx context.Context) {
	found, err := e.findShorter(ctx)
	if err != nil {
		if ctx.Err() == nil {
			e.log.Warn("not known whether logs are shorter than the views have seen them", "err", err)
		}
		return
	}
	e.metrics.ShorterLogs(len(found))
	for i, s := range found {
		if i == maxTold {
			e.log.Error("and more", "sessions", len(found)-maxTold)
			return
		}
		if s.lost > 0 {
			e.log.Error("the store has lost events of a session, which is refused as malformed_state: its stream was damaged; culm audit says which, and a copy of the stream brings them back",
				"session", s.session, "ends", s.last, "lost", s.lost)
			continue
		}
		e.log.Error("the log of a session is shorter than its views have seen: its stream was damaged, lost or restored, or, with --sync group, a power cut took events that nobody was answered; culm audit --head tells",
			"session", s.session, "ends", s.last, "seen", s.seen.Seq, "head", s.seen.Hash)
	}
}

func (e *engine) findShorter(ctx context.Context) ([]shorter, error) {
	seen, err := projection.Heads(ctx, filepath.Join(e.cfg.Data, viewsFile))
	if err != nil {
		return nil, err
	}
	infos, err := e.sessions.Sessions(ctx)
	if err != nil {
		return nil, err
	}
	return shorterLogs(seen, infos, func(session string) (uint64, error) { return e.sessions.Buried(ctx, session) })
}
