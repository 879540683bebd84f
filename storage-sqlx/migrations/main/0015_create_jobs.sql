CREATE TABLE jobs (
    id TEXT PRIMARY KEY,
    account TEXT NOT NULL,
    status TEXT NOT NULL,
    language TEXT, -- the language tag of the request
    pause_reason TEXT,
    total INTEGER NOT NULL, -- items, as the four that follow; the others are queued
    running INTEGER NOT NULL,
    done INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    spent INTEGER NOT NULL, -- credits
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    due_at INTEGER, -- when an item may be due, or a pause is checked; none if there is nothing to do
    turn INTEGER NOT NULL -- of the due jobs the smallest is next; equal for the jobs of an account
) STRICT, WITHOUT ROWID;

CREATE INDEX jobs_by_turn ON jobs (turn, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_of_account ON jobs (account, created_at, id);
CREATE INDEX jobs_by_end ON jobs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE job_items (
    job TEXT NOT NULL,
    idx INTEGER NOT NULL, -- the position in the job, from 0
    status TEXT NOT NULL,
    url TEXT NOT NULL, -- as the caller sent it
    video TEXT, -- none if the link names none
    due_at INTEGER, -- when it is due, or its lease ends; none once it has ended
    claims INTEGER NOT NULL, -- the last one is valid
    attempts INTEGER NOT NULL,
    reason TEXT, -- why it failed, as the message
    message TEXT,
    spent INTEGER NOT NULL,
    PRIMARY KEY (job, idx)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_items_due ON job_items (job, idx, due_at) WHERE due_at IS NOT NULL;
