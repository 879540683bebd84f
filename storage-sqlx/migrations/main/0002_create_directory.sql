CREATE TABLE accounts (
    seq INTEGER PRIMARY KEY, -- grows: the oldest account first
    id TEXT NOT NULL UNIQUE,
    version INTEGER NOT NULL,
    email TEXT UNIQUE, -- none once the account is erased
    wallet TEXT NOT NULL,
    plan TEXT NOT NULL,
    anchor INTEGER NOT NULL,
    paid_through INTEGER,
    customer TEXT,
    subscription TEXT,
    blocked INTEGER NOT NULL,
    erased_at INTEGER
) STRICT;

CREATE UNIQUE INDEX accounts_by_customer ON accounts (customer) WHERE customer IS NOT NULL;

-- The keys of both surfaces, so that one look-up authenticates either. Never a key itself.
CREATE TABLE keys (
    seq INTEGER PRIMARY KEY, -- grows: the oldest key first
    id TEXT NOT NULL UNIQUE,
    digest BLOB NOT NULL UNIQUE, -- SHA-256 of the whole key
    hint TEXT NOT NULL, -- the key's first characters
    created_at INTEGER NOT NULL,
    revoked_at INTEGER, -- when it was revoked, rotated away or replaced
    account TEXT REFERENCES accounts (id), -- of a key of Surface B; none for Surface A
    wallet TEXT, -- of a key of Surface A, with what follows
    label TEXT,
    email TEXT,
    subject TEXT,
    entitled_until INTEGER,
    CHECK ((account IS NULL) <> (wallet IS NULL))
) STRICT;

CREATE INDEX keys_of_account ON keys (account) WHERE account IS NOT NULL AND revoked_at IS NULL;
CREATE INDEX keys_of_subject ON keys (subject, entitled_until) WHERE subject IS NOT NULL AND revoked_at IS NULL;

CREATE TABLE tokens (
    digest BLOB PRIMARY KEY, -- SHA-256 of the token
    email TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    used_at INTEGER, -- when it was redeemed, or made void by another of its address
    key TEXT, -- the id of the key that it was redeemed for
    first INTEGER -- whether that made the account
) STRICT, WITHOUT ROWID;

CREATE INDEX tokens_of_email ON tokens (email);
CREATE INDEX tokens_by_end ON tokens (expires_at);

CREATE TABLE secrets (
    name TEXT PRIMARY KEY,
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;
