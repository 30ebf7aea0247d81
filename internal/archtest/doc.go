// Package archtest holds the import picture of ARCHITECTURE.md: which package
// may import which, where the libraries of the outside may appear, and what
// the pure packages must not call. Its test reads the sources of the whole
// module; .golangci.yml says the same to the linter.
package archtest
