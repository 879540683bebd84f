ALTER TABLE jobs ADD COLUMN callback_url TEXT; -- where its events are sent
ALTER TABLE job_items ADD COLUMN failing_since INTEGER; -- when its first fetch failed

CREATE TABLE job_events (
    job TEXT NOT NULL,
    number INTEGER NOT NULL, -- in the job, from 1
    account TEXT NOT NULL,
    kind TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    attempts INTEGER NOT NULL, -- leases; the last one is valid
    leased INTEGER NOT NULL, -- 1 while an attempt is made
    due_at INTEGER, -- when it is due, or its lease ends; none once it is sent or given up
    PRIMARY KEY (job, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX job_events_due ON job_events (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX job_events_leased ON job_events (account, due_at) WHERE leased = 1;

CREATE TABLE job_event_attempts (
    event TEXT NOT NULL, -- job/number
    attempt INTEGER NOT NULL,
    ended_at INTEGER NOT NULL,
    status INTEGER, -- of the response
    error TEXT, -- why it failed; none if the receiver accepted the event
    next_at INTEGER,
    PRIMARY KEY (event, attempt)
) STRICT, WITHOUT ROWID;

-- An account without a row has the first generation.
CREATE TABLE webhook_secrets (
    account TEXT PRIMARY KEY,
    generation INTEGER NOT NULL,
    rotated_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
