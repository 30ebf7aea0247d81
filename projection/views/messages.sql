CREATE TABLE messages (
    id           INTEGER PRIMARY KEY, -- for the index of words
    session      TEXT NOT NULL,
    n            INTEGER NOT NULL,    -- place in the transcript, from 1
    message_id   TEXT NOT NULL,
    role         TEXT NOT NULL,
    origin       TEXT NOT NULL,
    content      TEXT NOT NULL,
    tool_calls   TEXT NOT NULL,       -- JSON array, or empty
    tool_call_id TEXT NOT NULL,
    success      INTEGER NOT NULL,    -- of a tool's result, -1 for other messages
    seq          INTEGER NOT NULL,    -- of the event that added it
    at           INTEGER NOT NULL,
    actor        TEXT NOT NULL,
    run_id       TEXT NOT NULL,
    UNIQUE (session, n)
);
CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, content = 'messages', content_rowid = 'id', tokenize = "unicode61 remove_diacritics 2"
);
CREATE TRIGGER messages_removed AFTER DELETE ON messages BEGIN
    INSERT INTO messages_fts (messages_fts, rowid, content) VALUES ('delete', old.id, old.content);
END;
