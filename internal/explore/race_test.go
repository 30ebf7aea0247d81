//go:build race

package explore

// raceEnabled says that the race detector slows everything down.
const raceEnabled = true
