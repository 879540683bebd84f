-- Jobs with an item or a page to claim, in their turn: a claim does not read past paused jobs.
CREATE INDEX jobs_to_claim ON jobs (turn, id)
    WHERE due_at IS NOT NULL AND status IN ('queued', 'running', 'cancelled');
CREATE INDEX jobs_to_list ON jobs (turn, id) WHERE due_at IS NOT NULL AND status = 'listing';

-- Events that were never leased, and the others, in the order in which they are leased.
CREATE INDEX job_events_new ON job_events (due_at, job, number)
    WHERE due_at IS NOT NULL AND attempts < 1;
CREATE INDEX job_events_again ON job_events (due_at, job, number)
    WHERE due_at IS NOT NULL AND attempts > 0;
