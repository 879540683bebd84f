CREATE TABLE admin_tokens (
    name TEXT COLLATE "C" PRIMARY KEY, -- who has it; never used twice
    digest BYTEA NOT NULL UNIQUE, -- SHA-256 of the whole token
    created_at BIGINT NOT NULL,
    revoked_at BIGINT
);

CREATE TABLE audit_log (
    id TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL UNIQUE, -- the oldest entry first
    at BIGINT NOT NULL, -- when the operation began
    operator TEXT NOT NULL, -- the name of a token, or the user of the system
    interface TEXT NOT NULL, -- api or command
    operation TEXT NOT NULL,
    subject TEXT, -- the id of a key, an account or a video
    detail TEXT,
    ended_at BIGINT, -- none while it runs, or if its end was not recorded
    result TEXT
);
