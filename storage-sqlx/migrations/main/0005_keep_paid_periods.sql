-- What was sold with the stretch of a plan that ends at `paid_through`; none where nothing was paid.
ALTER TABLE accounts ADD COLUMN paid_from INTEGER;
ALTER TABLE accounts ADD COLUMN paid_credits INTEGER; -- what the stretch gives in all
ALTER TABLE accounts ADD COLUMN paid_monthly_credits INTEGER; -- what a whole month of the plan gives
