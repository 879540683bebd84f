-- Expiry, quota and requests of keys of the lookup API. A request writes none of them: counts are added in batches.
ALTER TABLE keys ADD COLUMN expires_at INTEGER;
ALTER TABLE keys ADD COLUMN quota INTEGER;
ALTER TABLE keys ADD COLUMN quota_period TEXT;
ALTER TABLE keys ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN last_request_at INTEGER;
ALTER TABLE keys ADD COLUMN day_start INTEGER;
ALTER TABLE keys ADD COLUMN day_requests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN month_start INTEGER;
ALTER TABLE keys ADD COLUMN month_requests INTEGER NOT NULL DEFAULT 0;
