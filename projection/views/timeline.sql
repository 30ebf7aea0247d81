CREATE TABLE timeline (
    session      TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    event_id     TEXT NOT NULL,
    type         TEXT NOT NULL,
    actor        TEXT NOT NULL,
    command      TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    message_id   TEXT NOT NULL,
    bytes        INTEGER NOT NULL, -- of the stored event, which the log has
    text         TEXT NOT NULL,
    PRIMARY KEY (session, seq)
) WITHOUT ROWID;
