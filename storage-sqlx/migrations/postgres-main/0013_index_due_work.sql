-- Jobs with an item or a page to claim, in their turn: a claim does not read past paused jobs.
CREATE INDEX IF NOT EXISTS jobs_to_claim ON jobs (turn, id)
    WHERE due_at IS NOT NULL AND status IN ('queued', 'running', 'cancelled');
CREATE INDEX IF NOT EXISTS jobs_to_list ON jobs (turn, id) WHERE due_at IS NOT NULL AND status = 'listing';
