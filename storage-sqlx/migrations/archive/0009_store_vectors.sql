-- The vectors of an embedding model (see vectors.rs), by which chat finds passages. In a table of its own, because no
-- response reads them. Lost or damaged ones are computed again.
CREATE TABLE vectors (
    transcript INTEGER PRIMARY KEY REFERENCES transcripts (id) ON DELETE CASCADE,
    texts_sha256 BLOB NOT NULL, -- of the model and the embedded texts
    bytes BLOB NOT NULL
) STRICT;
