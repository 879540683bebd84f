-- JSON: how many of an order's credits were to be taken back in all, after each refund.
ALTER TABLE orders ADD COLUMN taken_back TEXT NOT NULL DEFAULT '[]';

-- The orders that nobody has paid yet, oldest first.
CREATE INDEX orders_unsettled ON orders (created_at, id) WHERE state = 'open';
