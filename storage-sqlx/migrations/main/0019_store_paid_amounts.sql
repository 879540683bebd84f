ALTER TABLE orders ADD COLUMN paid_minor INTEGER; -- what the buyer paid; none: the price
