-- Erasing an account takes all its keys; `keys_of_account` knows only those that live.
CREATE INDEX keys_ever_of_account ON keys (account) WHERE account IS NOT NULL;

-- A mail that is done stays for a while, so that its id is not queued again, and then goes.
ALTER TABLE outbox ADD COLUMN done_at INTEGER; -- about when it was done; none before
UPDATE outbox SET done_at = CAST(unixepoch('subsec') * 1000 AS INTEGER) WHERE due_at IS NULL;
CREATE INDEX outbox_by_end ON outbox (done_at) WHERE done_at IS NOT NULL;
