-- What a wallet has spent of its purchased credits since a moment, without reading its other entries.
CREATE INDEX ledger_entries_purchases_spent ON ledger_entries (wallet, at, amount)
    WHERE bucket = '' AND kind = 'spent';
