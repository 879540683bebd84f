-- The balances. They can always be recomputed from the entries.
CREATE TABLE ledger_pools (
    wallet TEXT COLLATE "C" NOT NULL,
    bucket TEXT COLLATE "C" NOT NULL, -- the name of an allowance's bucket; empty for purchased credits
    number BIGINT NOT NULL, -- the pools of a wallet in the order of their first use
    version BIGINT NOT NULL, -- counts the changes of the row, from 1
    last_entry BIGINT NOT NULL, -- the number of its newest entry
    cap BIGINT NOT NULL, -- an allowance's limit, as it was last seen; 0 for purchased credits
    spent BIGINT NOT NULL CHECK (spent >= 0),
    held BIGINT NOT NULL CHECK (held >= 0),
    granted BIGINT NOT NULL CHECK (granted >= 0),
    PRIMARY KEY (wallet, bucket),
    -- What was bought can never be overdrawn, whatever a defect elsewhere may ask for.
    CHECK (bucket <> '' OR spent + held <= granted)
);

-- The legs of a hold and the shares that they hold of pools, in their order, as lists side by side.
CREATE TABLE ledger_holds (
    id TEXT COLLATE "C" PRIMARY KEY,
    state TEXT NOT NULL CHECK (state IN ('open', 'closed', 'expired')),
    expires_at BIGINT NOT NULL, -- milliseconds since 1970-01-01T00:00:00Z, as every moment here
    memo TEXT NOT NULL,
    wallets TEXT[] NOT NULL, -- of each leg
    amounts BIGINT[] NOT NULL,
    spent BIGINT[] NOT NULL, -- what was spent of each leg, once the hold is closed
    share_legs BIGINT[] NOT NULL, -- of each share: the place of its leg, from 1
    share_buckets TEXT[] NOT NULL,
    share_caps BIGINT[] NOT NULL,
    share_amounts BIGINT[] NOT NULL
);

CREATE INDEX ledger_holds_overdue ON ledger_holds (expires_at, id) WHERE state = 'open';

-- The wallets of the holds that are open, to find the overdue ones of a wallet.
CREATE TABLE ledger_open (
    hold TEXT COLLATE "C" NOT NULL,
    wallet TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (hold, wallet)
);

CREATE INDEX ledger_open_of_wallet ON ledger_open (wallet, expires_at);

-- Numbered within each wallet, so that no counter is shared by all.
CREATE TABLE ledger_entries (
    wallet TEXT COLLATE "C" NOT NULL,
    seq BIGINT NOT NULL,
    at BIGINT NOT NULL,
    bucket TEXT COLLATE "C" NOT NULL,
    cap BIGINT NOT NULL,
    kind TEXT NOT NULL CHECK (kind IN ('held', 'spent', 'returned', 'expired', 'granted', 'revoked')),
    amount BIGINT NOT NULL CHECK (amount >= 0),
    shortfall BIGINT NOT NULL CHECK (shortfall >= 0), -- of a revocation; else 0
    cause TEXT NOT NULL, -- the id of the hold, grant or revocation
    memo TEXT NOT NULL,
    PRIMARY KEY (wallet, seq)
);

-- What a wallet has spent of its purchased credits since a moment, without reading its other entries.
CREATE INDEX ledger_entries_purchases_spent ON ledger_entries (wallet, at, amount)
    WHERE bucket = '' AND kind = 'spent';

-- Grants and revocations: both draw their ids from the same names.
CREATE TABLE ledger_transfers (
    id TEXT COLLATE "C" PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('grant', 'revocation')),
    wallet TEXT COLLATE "C" NOT NULL,
    of_grant TEXT COLLATE "C" NOT NULL, -- the grant that a revocation takes back; a grant's own id
    amount BIGINT NOT NULL CHECK (amount > 0),
    taken BIGINT NOT NULL CHECK (taken >= 0), -- of a grant: what its revocations took, together
    shortfall BIGINT NOT NULL CHECK (shortfall >= 0) -- of a grant: what they fell short of, together
);

CREATE TABLE accounts (
    id TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL UNIQUE, -- the oldest account first
    version BIGINT NOT NULL,
    email TEXT COLLATE "C" UNIQUE, -- none once the account is erased
    wallet TEXT NOT NULL,
    plan TEXT NOT NULL,
    anchor BIGINT NOT NULL,
    customer TEXT COLLATE "C",
    subscription TEXT,
    blocked BOOLEAN NOT NULL,
    -- What was sold with the stretch of a plan that ends at `paid_through`; none where nothing was paid.
    paid_from BIGINT,
    paid_through BIGINT,
    paid_credits BIGINT, -- what the stretch gives in all
    paid_monthly_credits BIGINT, -- what a whole month of the plan gives
    paid_anchor_before BIGINT, -- what the months were counted from before
    erased_at BIGINT
);

CREATE UNIQUE INDEX accounts_by_customer ON accounts (customer) WHERE customer IS NOT NULL;

-- The keys of both surfaces, so that one look-up authenticates either. Never a key itself.
CREATE TABLE keys (
    digest BYTEA PRIMARY KEY, -- SHA-256 of the whole key
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    seq BIGINT NOT NULL, -- the oldest key first
    hint TEXT NOT NULL, -- the key's first characters
    created_at BIGINT NOT NULL,
    revoked_at BIGINT, -- when it was revoked, rotated away or replaced
    account TEXT COLLATE "C" REFERENCES accounts (id), -- of a key of Surface B; none for Surface A
    wallet TEXT, -- of a key of Surface A, with what follows
    label TEXT,
    email TEXT,
    subject TEXT COLLATE "C",
    entitled_until BIGINT,
    CHECK ((account IS NULL) <> (wallet IS NULL))
);

CREATE UNIQUE INDEX keys_of_lookups ON keys (seq) WHERE account IS NULL;
CREATE INDEX keys_of_account ON keys (account) WHERE account IS NOT NULL;
CREATE INDEX keys_of_subject ON keys (subject, entitled_until) WHERE subject IS NOT NULL AND revoked_at IS NULL;

CREATE TABLE tokens (
    digest BYTEA PRIMARY KEY, -- SHA-256 of the token
    email TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    used_at BIGINT, -- when it was redeemed, or made void by another of its address
    key TEXT COLLATE "C", -- the id of the key that it was redeemed for
    first BOOLEAN -- whether that made the account
);

CREATE INDEX tokens_of_email ON tokens (email);
CREATE INDEX tokens_by_end ON tokens (expires_at);

CREATE TABLE secrets (
    name TEXT COLLATE "C" PRIMARY KEY,
    value BYTEA NOT NULL
);

-- What is taken of each rate limit; see window.rs.
CREATE TABLE limits (
    bucket TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL, -- counts the changes of the row, from 1
    ends_at BIGINT NOT NULL, -- when nothing of it counts any more
    taken TEXT NOT NULL
) WITH (fillfactor = 50); -- it changes with every request

CREATE INDEX limits_by_end ON limits (ends_at);

-- What an Idempotency-Key was answered with.
CREATE TABLE replies (
    key TEXT COLLATE "C" PRIMARY KEY,
    fingerprint BYTEA NOT NULL,
    holder TEXT NOT NULL,
    lease_until BIGINT NOT NULL,
    keep_until BIGINT NOT NULL,
    status BIGINT, -- none while it is worked on, as the two that follow
    headers TEXT, -- JSON: [[name, value], ...]
    body BYTEA
);

CREATE INDEX replies_by_end ON replies (keep_until);

CREATE TABLE outbox (
    id TEXT COLLATE "C" PRIMARY KEY,
    seq BIGINT NOT NULL, -- the order in which mails were queued
    kind TEXT NOT NULL,
    recipient TEXT COLLATE "C", -- none once it is done: the address is not needed any more
    attempts BIGINT NOT NULL,
    due_at BIGINT, -- when it is due, or its lease ends; none once it is done
    done_at BIGINT -- about when it was done; none before
);

CREATE INDEX outbox_by_due ON outbox (due_at, seq) WHERE due_at IS NOT NULL;
CREATE INDEX outbox_by_end ON outbox (done_at) WHERE done_at IS NOT NULL;

CREATE TABLE orders (
    id TEXT COLLATE "C" PRIMARY KEY,
    version BIGINT NOT NULL,
    account TEXT COLLATE "C" NOT NULL,
    item_kind TEXT NOT NULL CHECK (item_kind IN ('pack', 'plan')),
    item TEXT NOT NULL, -- the name of the pack or plan
    credits BIGINT NOT NULL,
    amount_minor BIGINT NOT NULL,
    currency TEXT NOT NULL,
    state TEXT NOT NULL,
    payment TEXT,
    created_at BIGINT NOT NULL,
    taken_back TEXT NOT NULL -- JSON: how many of its credits were to be taken back in all, after each refund
);

CREATE INDEX orders_unsettled ON orders (created_at, id) WHERE state = 'open';
CREATE INDEX orders_of_account ON orders (account, created_at, id);

-- Whose turn it is with what one server at a time does.
CREATE TABLE turns (
    name TEXT COLLATE "C" PRIMARY KEY,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL
);
