// Package events says what happened and how it is spelled.
//
// An [Event] is one fact of one session: an envelope (who, when, where in the
// session) around typed [Data]. Its stored form is one CloudEvents 1.0 JSON
// object; the same bytes are stored, hashed, published and replayed.
//
// The duties of a writer:
//
//  1. Take the session's [Head] (last sequence, last hash, last id).
//  2. Build the event with Seq = Head.Seq+1, Prevhash = Head.Hash, an ID that
//     sorts after Head.ID ([NextID]), and the session's birth.
//  3. [Encode] it once; append exactly those bytes with expected sequence
//     Head.Seq; move the head on with [Head.Next].
//
// The duties of a reader:
//
//  1. Read the stored bytes in order of sequence.
//  2. Check each against the head with [Head.Check] (session, birth, sequence, hash).
//  3. [Decode]; on [ErrUnknownEvent] stop, unless the event says it is
//     ignorable: an unknown fact may change what every later one means.
//
// The contract of an event's bytes is docs/contract.md, "Events"; the catalogue
// of all types is docs/events.md, generated from the registry in this package.
package events

//go:generate go test . -run "^TestCatalogue|^TestGolden" -update
