-- A charge that is held and spent in one step is one entry, of the kind 'charged'.
--
-- No row changes, only what the table says of its rows. So that text is changed in place, as SQLite's documentation of
-- ALTER TABLE has it for constraints: to copy the entries would take minutes and twice their room where they are many.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, '''held'', ''spent'', ', '''held'', ''spent'', ''charged'', ')
    WHERE type = 'table' AND name = 'ledger_entries';
PRAGMA writable_schema = RESET;

-- What a wallet has spent of its purchased credits since a moment, without reading its other entries. That it is made anew
-- also has every open connection read the text above again.
DROP INDEX ledger_entries_purchases_spent;
CREATE INDEX ledger_entries_purchases_spent ON ledger_entries (wallet, at, amount)
    WHERE bucket = '' AND kind IN ('spent', 'charged');

-- A table whose text was another would refuse every charge from now on: then this step fails, and nothing has changed.
SELECT json(CASE WHEN instr(sql, '''spent'', ''charged'', ') > 0 THEN '1' ELSE 'the table is not as it was made' END)
    FROM sqlite_schema WHERE type = 'table' AND name = 'ledger_entries';
