CREATE TABLE usage (
    session    TEXT NOT NULL,
    day        TEXT NOT NULL, -- UTC, 2006-01-02, of the answer
    provider   TEXT NOT NULL,
    model      TEXT NOT NULL,
    rounds     INTEGER NOT NULL,
    prompt     INTEGER NOT NULL,
    completion INTEGER NOT NULL,
    total      INTEGER NOT NULL,
    PRIMARY KEY (session, day, provider, model)
) WITHOUT ROWID;
