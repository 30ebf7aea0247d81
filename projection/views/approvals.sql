CREATE TABLE approvals (
    session         TEXT NOT NULL,
    message_id      TEXT NOT NULL, -- of the waiting result
    since_seq       INTEGER NOT NULL, -- of the event since which it waits
    since_at        INTEGER NOT NULL,
    kind            TEXT NOT NULL, -- approval, question or unknown
    tool_call_id    TEXT NOT NULL,
    name            TEXT NOT NULL,
    answer_id       TEXT NOT NULL,
    idx             INTEGER NOT NULL,
    run_id          TEXT NOT NULL,
    generation      TEXT NOT NULL,
    question        TEXT NOT NULL, -- JSON object
    request         TEXT NOT NULL, -- JSON object, or empty
    digest          TEXT NOT NULL,
    started_seq     INTEGER NOT NULL, -- of an unknown call
    expires_at      INTEGER NOT NULL,
    status          TEXT NOT NULL, -- pending or decided
    decision        TEXT NOT NULL,
    decided_by      TEXT NOT NULL,
    decided_seq     INTEGER NOT NULL,
    decided_at      INTEGER NOT NULL,
    note            TEXT NOT NULL,
    answer          TEXT NOT NULL,
    matcher         TEXT NOT NULL, -- JSON object, or empty
    successor       TEXT NOT NULL, -- run that the decision requested
    PRIMARY KEY (session, message_id, since_seq)
);
CREATE INDEX approvals_pending ON approvals (since_at, session, since_seq, message_id) WHERE status = 'pending';
CREATE INDEX approvals_decided ON approvals (decided_at, session, since_seq, message_id) WHERE status = 'decided';
CREATE INDEX approvals_since ON approvals (since_at, session, since_seq, message_id);
