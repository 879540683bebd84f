-- What one account ordered, without reading everybody's orders.
CREATE INDEX orders_of_account ON orders (account, created_at, id);
