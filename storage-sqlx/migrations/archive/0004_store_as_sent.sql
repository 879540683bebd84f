-- Transcripts as they are sent (see body.rs). What was kept before this step stays in `transcripts.body` and is
-- read from there; what is kept since has an empty body there, so that no program takes one for the other.
-- In a table of its own, a row of `transcripts` is small, and an answer reads nothing but the row here.
CREATE TABLE bodies (
    transcript INTEGER PRIMARY KEY REFERENCES transcripts (id) ON DELETE CASCADE,
    content_sha256 BLOB NOT NULL CHECK (length(content_sha256) = 32), -- as in `transcripts`
    source TEXT NOT NULL, -- the supplier
    length INTEGER NOT NULL, -- of the segments before compression, in bytes
    checksum INTEGER NOT NULL, -- a CRC-32 over the video and all columns here but `about`
    about TEXT NOT NULL, -- JSON: the transcript without source and segments
    segments BLOB NOT NULL -- the JSON list in an answer as one zstd frame; last, see `transcripts.body`
) STRICT;
