-- A charge that is held and spent in one step is one entry, of the kind 'charged'.

-- PostgreSQL reads the constraints of a table anew for each statement that writes to it. Those that guard balances stay
-- (ledger_pools); these only repeat how the program spells a name and that it counts without a sign, and whoever reads a
-- row, the audit first, refuses anything else. The holds go before the entries, as in the statements of servers that run
-- meanwhile.
ALTER TABLE ledger_holds DROP CONSTRAINT IF EXISTS ledger_holds_state_check;

-- What a wallet has spent of its purchased credits since a moment, without reading its other entries. Where these are many,
-- it is there already (docs/operations.md).
CREATE INDEX IF NOT EXISTS ledger_entries_spent_purchases ON ledger_entries (wallet, at, amount)
    WHERE bucket = '' AND kind IN ('spent', 'charged');
DROP INDEX ledger_entries_purchases_spent;

-- The second name is the one that CockroachDB gives it.
ALTER TABLE ledger_entries DROP CONSTRAINT IF EXISTS ledger_entries_kind_check,
    DROP CONSTRAINT IF EXISTS check_kind,
    DROP CONSTRAINT IF EXISTS ledger_entries_amount_check,
    DROP CONSTRAINT IF EXISTS ledger_entries_shortfall_check;
