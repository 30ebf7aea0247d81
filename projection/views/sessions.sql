CREATE TABLE sessions (
    session              TEXT PRIMARY KEY,
    birth                TEXT NOT NULL,
    kind                 TEXT NOT NULL,
    parent_session       TEXT NOT NULL,
    parent_call          TEXT NOT NULL,
    title                TEXT NOT NULL,
    provider             TEXT NOT NULL,
    model                TEXT NOT NULL,
    reasoning_effort     TEXT NOT NULL,
    workspace            TEXT NOT NULL,
    metadata             TEXT NOT NULL, -- JSON object, or empty
    mode                 TEXT NOT NULL,
    effective_mode       TEXT NOT NULL,
    plan                 INTEGER NOT NULL,
    read_only            INTEGER NOT NULL,
    no_human_approver    INTEGER NOT NULL,
    enforce_policy       INTEGER NOT NULL,
    closed               INTEGER NOT NULL,
    status               TEXT NOT NULL,
    created_at           INTEGER NOT NULL, -- this and all times: Unix nanoseconds, 0 for none
    updated_at           INTEGER NOT NULL,
    first_seq            INTEGER NOT NULL,
    seq                  INTEGER NOT NULL,
    last_type            TEXT NOT NULL,
    last_actor           TEXT NOT NULL,
    messages             INTEGER NOT NULL,
    answer_id            TEXT NOT NULL, -- message of the last answer, whose calls may still change
    run_id               TEXT NOT NULL, -- of the run that is requested, live or suspended
    run_status           TEXT NOT NULL,
    run_cause            TEXT NOT NULL,
    runner               TEXT NOT NULL,
    cancel_requested     INTEGER NOT NULL,
    round                INTEGER NOT NULL, -- the open or last one of the run, -1 for none
    loop_generation      TEXT NOT NULL,
    loop_status          TEXT NOT NULL,
    loop_reason          TEXT NOT NULL,
    iterations_started   INTEGER NOT NULL,
    iterations_completed INTEGER NOT NULL,
    max_iterations       INTEGER NOT NULL,
    rounds_started       INTEGER NOT NULL,
    max_total_rounds     INTEGER NOT NULL,
    waiting              INTEGER NOT NULL, -- items that wait for a person
    waiting_since        INTEGER NOT NULL, -- of the oldest
    prompt_tokens        INTEGER NOT NULL,
    completion_tokens    INTEGER NOT NULL,
    total_tokens         INTEGER NOT NULL,
    last_outcome         TEXT NOT NULL, -- how the last run ended
    last_error           TEXT NOT NULL,
    stuck_seq            INTEGER NOT NULL,
    stuck_reason         TEXT NOT NULL
);
CREATE INDEX sessions_updated ON sessions (updated_at, session);
CREATE INDEX sessions_status ON sessions (status, updated_at, session);
CREATE INDEX sessions_parent ON sessions (parent_session, updated_at, session) WHERE parent_session <> '';
CREATE INDEX sessions_kind ON sessions (kind, updated_at, session);
