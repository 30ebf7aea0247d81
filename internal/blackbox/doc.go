// Package blackbox tests a culm engine from outside: as a process of its own,
// over NATS and by signals, against docs/contract.md. It holds tests only.
//
// TestMain builds the engine once into a temporary folder, with the race
// detector if the tests have it; $CULM_ENGINE names a ready binary instead.
// What is proven, by file:
//
//   - contract_*_test.go: commands, receipts, loops, parking, reads, feed,
//     limits and queued commands, beyond the shared conformance suite
//   - process_test.go: flags, exit statuses, what is said when a start fails
//   - restart_test.go, lease_test.go: stops, starts, and who may go on
//   - crash_test.go: an engine is killed again and again under load
//   - linear_test.go: two engines on one server answer as one
//   - disk_test.go: full disk, damaged stream, folder that takes no writes
//
// CULM_CRASH_ROUNDS sets the kills of the crash test (15), CULM_CRASH_SEED its
// seed (printed), CULM_LINEAR_SECONDS the time of each linearizability test.
package blackbox
