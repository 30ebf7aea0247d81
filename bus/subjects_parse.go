package bus

import "strings"

// CommandsAll, LaterAll, LogAll, EventsAll, DeltasAll, ReadsAll and QueriesAll
// are the wildcards over everything of their kind, malformed rests included.
func (s Subjects) CommandsAll() string { return s.join(kindCmd, ">") }

// LaterAll: see CommandsAll.
func (s Subjects) LaterAll() string { return s.join(kindLater, ">") }

// LogAll: see CommandsAll.
func (s Subjects) LogAll() string { return s.join(kindLog, ">") }

// EventsAll: see CommandsAll.
func (s Subjects) EventsAll() string { return s.join(kindEvent, ">") }

// DeltasAll: see CommandsAll.
func (s Subjects) DeltasAll() string { return s.join(kindDelta, ">") }

// ReadsAll: see CommandsAll.
func (s Subjects) ReadsAll() string { return s.join(kindRead, ">") }

// QueriesAll: see CommandsAll.
func (s Subjects) QueriesAll() string { return s.join(kindQuery, ">") }

// SessionLog is the wildcard over the stored events of one session.
func (s Subjects) SessionLog(session string) string { return s.join(kindLog, session+".>") }

// SessionEvents is the wildcard over the live events of one session.
func (s Subjects) SessionEvents(session string) string { return s.join(kindEvent, session+".>") }

// SessionDeltas is the wildcard over what the runs of one session stream.
func (s Subjects) SessionDeltas(session string) string { return s.join(kindDelta, session+".*") }

// SessionLater is the wildcard over the queued commands of one session.
func (s Subjects) SessionLater(session string) string { return s.join(kindLater, "*."+session+".>") }

// ParseEvent takes apart <p>.event.<session>.<noun>.<past>; ok says that all
// tokens are valid, as with the others. Reserved tokens are valid here.
func (s Subjects) ParseEvent(subject string) (session, eventType string, ok bool) {
	rest, ok := s.rest(kindEvent, subject)
	session, eventType, _ = strings.Cut(rest, ".")
	return session, eventType, ok && ValidToken(session) && ValidName(eventType)
}

// ParseDelta takes apart <p>.delta.<session>.<run>.
func (s Subjects) ParseDelta(subject string) (session, run string, ok bool) {
	return s.parsePair(kindDelta, subject)
}

// ParseRead takes apart <p>.read.<session>.
func (s Subjects) ParseRead(subject string) (session string, ok bool) {
	session, ok = s.rest(kindRead, subject)
	return session, ok && ValidToken(session)
}

// ParseQuery takes apart <p>.query.<view>.<verb>.
func (s Subjects) ParseQuery(subject string) (view, verb string, ok bool) {
	return s.parsePair(kindQuery, subject)
}

// split cuts an addressed subject without judging its tokens: the name is all
// that follows the session, missing parts are "".
func (s Subjects) split(k kind, subject string) (actor, session, name string) {
	rest, _ := s.rest(k, subject)
	actor, rest, _ = strings.Cut(rest, ".")
	session, name, _ = strings.Cut(rest, ".")
	return actor, session, name
}

func (s Subjects) parsePair(k kind, subject string) (first, second string, ok bool) {
	rest, ok := s.rest(k, subject)
	first, second, _ = strings.Cut(rest, ".")
	return first, second, ok && ValidToken(first) && ValidToken(second)
}
