ALTER TABLE orders ADD COLUMN paid_minor BIGINT; -- what the buyer paid; none: the price
