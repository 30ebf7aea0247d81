//go:build race

package blackbox

// raceArgs build the binaries as the tests were built.
var raceArgs = []string{"-race"}
