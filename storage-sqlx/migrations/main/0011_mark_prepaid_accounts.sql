-- Until when an account may have a prepaid delivery: only its charges look for one.
ALTER TABLE accounts ADD COLUMN prepaid_until INTEGER;
