CREATE TABLE runs (
    session           TEXT NOT NULL,
    run_id            TEXT NOT NULL,
    status            TEXT NOT NULL,
    cause             TEXT NOT NULL,
    runner            TEXT NOT NULL,
    fence             INTEGER NOT NULL,
    cancel_requested  INTEGER NOT NULL,
    requested_by      TEXT NOT NULL,
    requested_seq     INTEGER NOT NULL,
    requested_at      INTEGER NOT NULL,
    started_at        INTEGER NOT NULL,
    ended_seq         INTEGER NOT NULL,
    ended_at          INTEGER NOT NULL,
    reason            TEXT NOT NULL,
    error_code        TEXT NOT NULL,
    error_message     TEXT NOT NULL,
    provider          TEXT NOT NULL,
    model             TEXT NOT NULL,
    rounds            INTEGER NOT NULL,
    prompt_tokens     INTEGER NOT NULL,
    completion_tokens INTEGER NOT NULL,
    total_tokens      INTEGER NOT NULL,
    loop_generation   TEXT NOT NULL,
    successor         TEXT NOT NULL,
    PRIMARY KEY (session, run_id)
) WITHOUT ROWID;
CREATE INDEX runs_requested ON runs (requested_at, session, run_id);
CREATE INDEX runs_status ON runs (status, requested_at, session, run_id);
CREATE INDEX runs_session ON runs (session, requested_at, run_id);
