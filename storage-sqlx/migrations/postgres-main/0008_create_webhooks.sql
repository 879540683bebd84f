ALTER TABLE jobs ADD COLUMN callback_url TEXT; -- where its events are sent
ALTER TABLE job_items ADD COLUMN failing_since BIGINT; -- when its first fetch failed

CREATE TABLE job_events (
    job TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL, -- in the job, from 1
    account TEXT COLLATE "C" NOT NULL,
    kind TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    attempts BIGINT NOT NULL, -- leases; the last one is valid
    leased BIGINT NOT NULL, -- 1 while an attempt is made
    due_at BIGINT, -- when it is due, or its lease ends; none once it is sent or given up
    PRIMARY KEY (job, number)
);

CREATE INDEX job_events_due ON job_events (due_at) WHERE due_at IS NOT NULL;
CREATE INDEX job_events_leased ON job_events (account, due_at) WHERE leased = 1;

CREATE TABLE job_event_attempts (
    event TEXT COLLATE "C" NOT NULL, -- job/number
    attempt BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    status BIGINT, -- of the response
    error TEXT, -- why it failed; none if the receiver accepted the event
    next_at BIGINT,
    PRIMARY KEY (event, attempt)
);

-- An account without a row has the first generation.
CREATE TABLE webhook_secrets (
    account TEXT COLLATE "C" PRIMARY KEY,
    generation BIGINT NOT NULL,
    rotated_at BIGINT NOT NULL
);
