ALTER TABLE outbox ADD COLUMN language TEXT; -- the tag of the language of the mail; none: the service's first language
ALTER TABLE orders ADD COLUMN language TEXT; -- that of the receipt
