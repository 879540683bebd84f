CREATE TABLE sessions (
    digest BLOB PRIMARY KEY, -- SHA-256 of the token
    id TEXT NOT NULL UNIQUE,
    account TEXT NOT NULL,
    device TEXT NOT NULL, -- the label of the browser
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX sessions_of_account ON sessions (account, last_seen_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE sign_in_links (
    digest BLOB PRIMARY KEY, -- SHA-256 of the token
    account TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_for BLOB -- the digest of the session that it was redeemed for
) STRICT, WITHOUT ROWID;

CREATE INDEX sign_in_links_of_account ON sign_in_links (account);
CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);

ALTER TABLE orders ADD COLUMN returned_minor INTEGER NOT NULL DEFAULT 0; -- the refunded amount; 0 also if it was not recorded
