package web

import "culm/projection"

// StatusOf tells a projector's figures as the page shows them; err is why they
// could not be read.
func StatusOf(st projection.Stats, err error, version string) Status {
	out := Status{Version: version, Ready: err == nil && st.Ready}
	for _, view := range st.Views {
		out.BehindEvents = max(out.BehindEvents, view.LagEvents)
		out.BehindSeconds = max(out.BehindSeconds, view.Lag.Seconds())
		if view.Rebuilding {
			out.Rebuilding = append(out.Rebuilding, view.Name)
		}
	}
	return out
}

// GaugesOf tells a projector's figures as the metrics have them.
func GaugesOf(st projection.Stats) Gauges {
	g := Gauges{WaitingItems: int64(st.Waiting), OldestWaiting: st.OldestWaiting.Seconds(), SessionsByStatus: map[string]int64{}}
	for _, view := range st.Views {
		g.Lag = append(g.Lag, ViewLag{View: view.Name, Events: view.LagEvents, Seconds: view.Lag.Seconds()})
	}
	for status, n := range st.Sessions {
		g.SessionsByStatus[status] = int64(n)
	}
	return g
}
