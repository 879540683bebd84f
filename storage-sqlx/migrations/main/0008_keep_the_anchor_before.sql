-- What the account's months were counted from before the paid stretch; none where it began with an older program.
ALTER TABLE accounts ADD COLUMN paid_anchor_before INTEGER;
