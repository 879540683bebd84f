-- "VbM1": marks this file as ours, so that no other database is ever taken for it.
PRAGMA application_id = 1449282865;

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL -- milliseconds since 1970-01-01T00:00:00Z, as every moment here
) STRICT;

-- The balances. They can always be recomputed from the entries.
CREATE TABLE ledger_pools (
    id INTEGER PRIMARY KEY, -- grows: the pools of a wallet in the order of their first use
    wallet TEXT NOT NULL,
    bucket TEXT NOT NULL, -- the name of an allowance's bucket; empty for purchased credits
    cap INTEGER NOT NULL, -- an allowance's limit, as it was last seen; 0 for purchased credits
    spent INTEGER NOT NULL CHECK (spent >= 0),
    held INTEGER NOT NULL CHECK (held >= 0),
    granted INTEGER NOT NULL CHECK (granted >= 0),
    UNIQUE (wallet, bucket),
    -- What was bought can never be overdrawn, whatever a defect elsewhere may ask for.
    CHECK (bucket <> '' OR spent + held <= granted)
) STRICT;

CREATE TABLE ledger_holds (
    id TEXT PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'expired')),
    expires_at INTEGER NOT NULL,
    memo TEXT NOT NULL,
    -- JSON, in the order of the legs: [{wallet, amount, spent, shares: [{bucket, cap, amount}]}].
    -- A hold is always read and written whole, so its legs are no rows of their own.
    legs TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_holds_overdue ON ledger_holds (expires_at, id) WHERE state = 'open';

-- The wallets of the holds that are open, to find the overdue ones of a wallet.
CREATE TABLE ledger_open (
    hold TEXT NOT NULL,
    wallet TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (hold, wallet)
) STRICT, WITHOUT ROWID;

CREATE INDEX ledger_open_of_wallet ON ledger_open (wallet, expires_at);

CREATE TABLE ledger_entries (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    at INTEGER NOT NULL,
    wallet TEXT NOT NULL,
    bucket TEXT NOT NULL,
    cap INTEGER NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('held', 'spent', 'returned', 'expired', 'granted', 'revoked')),
    amount INTEGER NOT NULL CHECK (amount >= 0),
    shortfall INTEGER NOT NULL CHECK (shortfall >= 0), -- of a revocation; else 0
    cause TEXT NOT NULL, -- the id of the hold, grant or revocation
    memo TEXT NOT NULL
) STRICT;

CREATE INDEX ledger_entries_of_wallet ON ledger_entries (wallet);

CREATE TRIGGER ledger_entries_never_change BEFORE UPDATE ON ledger_entries
BEGIN
    SELECT RAISE(ABORT, 'entries are never changed');
END;

CREATE TRIGGER ledger_entries_never_go BEFORE DELETE ON ledger_entries
BEGIN
    SELECT RAISE(ABORT, 'entries are never deleted');
END;

-- Replacing a row would delete it without a word to the trigger above.
CREATE TRIGGER ledger_entries_are_never_replaced BEFORE INSERT ON ledger_entries
WHEN EXISTS (SELECT 1 FROM ledger_entries WHERE seq = NEW.seq)
BEGIN
    SELECT RAISE(ABORT, 'entries are never replaced');
END;

-- Grants and revocations: both draw their ids from the same names.
CREATE TABLE ledger_transfers (
    id TEXT PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'revocation')),
    wallet TEXT NOT NULL,
    of_grant TEXT NOT NULL, -- the grant that a revocation takes back; a grant's own id
    amount INTEGER NOT NULL CHECK (amount > 0),
    taken INTEGER NOT NULL CHECK (taken >= 0), -- of a grant: what its revocations took, together
    shortfall INTEGER NOT NULL CHECK (shortfall >= 0) -- of a grant: what they fell short of, together
) STRICT, WITHOUT ROWID;
