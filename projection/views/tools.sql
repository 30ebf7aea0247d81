CREATE TABLE tools (
    session         TEXT NOT NULL,
    answer_id       TEXT NOT NULL, -- message of the answer that asked for the call
    idx             INTEGER NOT NULL,
    message_id      TEXT NOT NULL, -- of the result: the occurrence
    tool_call_id    TEXT NOT NULL,
    model_id        TEXT NOT NULL,
    name            TEXT NOT NULL,
    arguments       TEXT NOT NULL,
    run_id          TEXT NOT NULL,
    round           INTEGER NOT NULL,
    status          TEXT NOT NULL,
    outcome         TEXT NOT NULL,
    success         INTEGER NOT NULL,
    mutating        INTEGER NOT NULL,
    authorized      INTEGER NOT NULL,
    permission_type TEXT NOT NULL,
    resource        TEXT NOT NULL,
    verdict         TEXT NOT NULL,
    rule_id         TEXT NOT NULL,
    digest          TEXT NOT NULL,
    requested_seq   INTEGER NOT NULL,
    requested_at    INTEGER NOT NULL,
    started_seq     INTEGER NOT NULL,
    started_at      INTEGER NOT NULL,
    starts          INTEGER NOT NULL, -- replays included
    replaying       INTEGER NOT NULL,
    ended_seq       INTEGER NOT NULL,
    ended_at        INTEGER NOT NULL,
    ended_by        TEXT NOT NULL,
    elapsed_ms      INTEGER NOT NULL,
    result_bytes    INTEGER NOT NULL,
    error           TEXT NOT NULL,
    PRIMARY KEY (session, answer_id, idx)
);
CREATE INDEX tools_requested ON tools (requested_at, session, requested_seq, idx);
CREATE INDEX tools_status ON tools (status, requested_at, session, requested_seq, idx);
CREATE INDEX tools_session ON tools (session, requested_at, requested_seq, idx);
