-- What is taken of each rate limit; see window.rs.
CREATE TABLE limits (
    bucket TEXT PRIMARY KEY,
    ends_at INTEGER NOT NULL, -- when nothing of it counts any more
    taken TEXT NOT NULL -- JSON: [[moment, how many], ...], the oldest first
) STRICT, WITHOUT ROWID;

CREATE INDEX limits_by_end ON limits (ends_at);

-- What an Idempotency-Key was answered with.
CREATE TABLE replies (
    key TEXT PRIMARY KEY,
    fingerprint BLOB NOT NULL,
    holder TEXT NOT NULL,
    lease_until INTEGER NOT NULL,
    keep_until INTEGER NOT NULL,
    status INTEGER, -- none while it is worked on, as the two that follow
    headers TEXT, -- JSON: [[name, value], ...]
    body BLOB
) STRICT, WITHOUT ROWID;

CREATE INDEX replies_by_end ON replies (keep_until);

CREATE TABLE outbox (
    seq INTEGER PRIMARY KEY, -- grows: the order in which mails were queued
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    recipient TEXT, -- none once it is done: the address is not needed any more
    attempts INTEGER NOT NULL,
    due_at INTEGER -- when it is due, or its lease ends; none once it is done
) STRICT;

CREATE INDEX outbox_by_due ON outbox (due_at, seq) WHERE due_at IS NOT NULL;

CREATE TABLE orders (
    id TEXT PRIMARY KEY,
    version INTEGER NOT NULL,
    account TEXT NOT NULL,
    item_kind TEXT NOT NULL CHECK (item_kind IN ('pack', 'plan')),
    item TEXT NOT NULL, -- the name of the pack or plan
    credits INTEGER NOT NULL,
    amount_minor INTEGER NOT NULL,
    currency TEXT NOT NULL,
    state TEXT NOT NULL,
    payment TEXT,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
