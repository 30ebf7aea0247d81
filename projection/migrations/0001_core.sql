-- What the projector knows of itself. "owner" is the token of the process that
-- may write; every transaction compares it.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

-- The version of each view as it stands here; 0 while it is being rebuilt.
CREATE TABLE views (
    name    TEXT PRIMARY KEY,
    version INTEGER NOT NULL
) WITHOUT ROWID;

-- Up to where each session is in the views. An event that could not be applied
-- is stuck_seq; seq then is the last one before it.
CREATE TABLE checkpoints (
    session      TEXT PRIMARY KEY,
    birth        TEXT NOT NULL,
    seq          INTEGER NOT NULL,
    hash         TEXT NOT NULL,
    event_id     TEXT NOT NULL,
    at           INTEGER NOT NULL,
    stuck_seq    INTEGER NOT NULL,
    stuck_code   TEXT NOT NULL,
    stuck_reason TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX checkpoints_stuck ON checkpoints (session) WHERE stuck_seq > 0;
