-- Expiry, quota and requests of keys of the lookup API. A request writes none of them: counts are added in batches.
ALTER TABLE keys ADD COLUMN expires_at BIGINT;
ALTER TABLE keys ADD COLUMN quota BIGINT;
ALTER TABLE keys ADD COLUMN quota_period TEXT;
ALTER TABLE keys ADD COLUMN requests BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN last_request_at BIGINT;
ALTER TABLE keys ADD COLUMN day_start BIGINT;
ALTER TABLE keys ADD COLUMN day_requests BIGINT NOT NULL DEFAULT 0;
ALTER TABLE keys ADD COLUMN month_start BIGINT;
ALTER TABLE keys ADD COLUMN month_requests BIGINT NOT NULL DEFAULT 0;
