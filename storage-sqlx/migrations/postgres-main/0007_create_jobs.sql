CREATE TABLE jobs (
    id TEXT COLLATE "C" PRIMARY KEY,
    account TEXT COLLATE "C" NOT NULL,
    status TEXT NOT NULL,
    language TEXT, -- the language tag of the request
    pause_reason TEXT,
    total BIGINT NOT NULL, -- items, as the four that follow; the others are queued
    running BIGINT NOT NULL,
    done BIGINT NOT NULL,
    failed BIGINT NOT NULL,
    skipped BIGINT NOT NULL,
    spent BIGINT NOT NULL, -- credits
    created_at BIGINT NOT NULL,
    ended_at BIGINT,
    due_at BIGINT, -- when an item may be due, or a pause is checked; none if there is nothing to do
    turn BIGINT NOT NULL -- of the due jobs the smallest is next; equal for the jobs of an account
);

CREATE INDEX jobs_by_turn ON jobs (turn, id) WHERE due_at IS NOT NULL;
CREATE INDEX jobs_of_account ON jobs (account, created_at, id);
CREATE INDEX jobs_by_end ON jobs (ended_at) WHERE ended_at IS NOT NULL;

CREATE TABLE job_items (
    job TEXT COLLATE "C" NOT NULL,
    idx BIGINT NOT NULL, -- the position in the job, from 0
    status TEXT NOT NULL,
    url TEXT NOT NULL, -- as the caller sent it
    video TEXT COLLATE "C", -- none if the link names none
    due_at BIGINT, -- when it is due, or its lease ends; none once it has ended
    claims BIGINT NOT NULL, -- the last one is valid
    attempts BIGINT NOT NULL,
    reason TEXT, -- why it failed, as the message
    message TEXT,
    spent BIGINT NOT NULL,
    PRIMARY KEY (job, idx)
);

CREATE INDEX job_items_due ON job_items (job, idx, due_at) WHERE due_at IS NOT NULL;
