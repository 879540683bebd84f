-- The vectors of an embedding model (see vectors.rs), by which chat finds passages. In a table of its own, because no
-- response reads them. Lost or damaged ones are computed again.
CREATE TABLE vectors (
    video TEXT COLLATE "C" NOT NULL,
    transcript BIGINT NOT NULL,
    texts_sha256 BYTEA NOT NULL, -- of the model and the embedded texts
    bytes BYTEA NOT NULL,
    PRIMARY KEY (video, transcript),
    FOREIGN KEY (video, transcript) REFERENCES transcripts (video, id) ON DELETE CASCADE
);
