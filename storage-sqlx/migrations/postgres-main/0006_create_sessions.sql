CREATE TABLE sessions (
    digest BYTEA PRIMARY KEY, -- SHA-256 of the token
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    account TEXT COLLATE "C" NOT NULL,
    device TEXT NOT NULL, -- the label of the browser
    created_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL
);

CREATE INDEX sessions_of_account ON sessions (account, last_seen_at);
CREATE INDEX sessions_by_end ON sessions (expires_at);

CREATE TABLE sign_in_links (
    digest BYTEA PRIMARY KEY, -- SHA-256 of the token
    account TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    used_for BYTEA -- the digest of the session that it was redeemed for
);

CREATE INDEX sign_in_links_of_account ON sign_in_links (account);
CREATE INDEX sign_in_links_by_end ON sign_in_links (expires_at);

ALTER TABLE orders ADD COLUMN returned_minor BIGINT NOT NULL DEFAULT 0; -- the refunded amount; 0 also if it was not recorded
