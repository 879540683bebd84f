ALTER TABLE job_items ADD COLUMN interruptions INTEGER NOT NULL DEFAULT 0; -- claims in a row that ended with their lease
ALTER TABLE job_lists ADD COLUMN open_claims INTEGER NOT NULL DEFAULT 0; -- in a row; the last one may be running
