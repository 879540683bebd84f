CREATE TABLE admin_tokens (
    name TEXT PRIMARY KEY, -- who has it; never used twice
    digest BLOB NOT NULL UNIQUE, -- SHA-256 of the whole token
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE audit_log (
    seq INTEGER PRIMARY KEY, -- grows: the oldest entry first
    id TEXT NOT NULL UNIQUE,
    at INTEGER NOT NULL, -- when the operation began
    operator TEXT NOT NULL, -- the name of a token, or the user of the system
    interface TEXT NOT NULL, -- api or command
    operation TEXT NOT NULL,
    subject TEXT, -- the id of a key, an account or a video
    detail TEXT,
    ended_at INTEGER, -- none while it runs, or if its end was not recorded
    result TEXT
) STRICT;
