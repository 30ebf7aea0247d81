CREATE TABLE loops (
    session              TEXT NOT NULL,
    generation           TEXT NOT NULL,
    revision             INTEGER NOT NULL,
    status               TEXT NOT NULL,
    reason               TEXT NOT NULL,
    owner                TEXT NOT NULL,
    objective            TEXT NOT NULL,
    on_park              TEXT NOT NULL,
    max_iterations       INTEGER NOT NULL,
    max_total_rounds     INTEGER NOT NULL,
    iterations_started   INTEGER NOT NULL,
    iterations_completed INTEGER NOT NULL,
    rounds_started       INTEGER NOT NULL,
    stop_requested       INTEGER NOT NULL,
    abandoned            INTEGER NOT NULL,
    started_seq          INTEGER NOT NULL,
    started_at           INTEGER NOT NULL,
    updated_seq          INTEGER NOT NULL,
    updated_at           INTEGER NOT NULL,
    PRIMARY KEY (session, generation)
);
CREATE INDEX loops_started ON loops (started_at, session, generation);
CREATE INDEX loops_status ON loops (status, started_at, session, generation);
CREATE INDEX loops_session ON loops (session, started_at, generation);
