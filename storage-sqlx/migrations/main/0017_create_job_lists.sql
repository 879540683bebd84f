ALTER TABLE jobs ADD COLUMN list TEXT; -- the address of the list whose videos are its items
ALTER TABLE jobs ADD COLUMN list_limit INTEGER; -- the largest number of items
ALTER TABLE jobs ADD COLUMN list_since INTEGER; -- videos published before it are left out
ALTER TABLE jobs ADD COLUMN list_open INTEGER; -- 1 while pages of the list are still to be read, then 0
ALTER TABLE jobs ADD COLUMN reason TEXT; -- why the list could not be read, as the message
ALTER TABLE jobs ADD COLUMN message TEXT;

-- How far a list was read. A list without a row was not begun, or is closed.
CREATE TABLE job_lists (
    job TEXT PRIMARY KEY,
    position TEXT, -- of the next page; none: the beginning
    claims INTEGER NOT NULL, -- the last one is valid
    attempts INTEGER NOT NULL, -- at the next page
    failing_since INTEGER
) STRICT, WITHOUT ROWID;
