-- The times of words (see words.rs). In a table of its own, because few requests read them; they stay here when the
-- transcript moves to `cold`. A transcript without words has no row.
CREATE TABLE words (
    video TEXT COLLATE "C" NOT NULL,
    transcript BIGINT NOT NULL,
    bytes BYTEA NOT NULL,
    PRIMARY KEY (video, transcript),
    FOREIGN KEY (video, transcript) REFERENCES transcripts (video, id) ON DELETE CASCADE
);

-- What is known of a video besides its transcripts and tracks.
CREATE TABLE details (
    video TEXT COLLATE "C" PRIMARY KEY,
    metadata TEXT NOT NULL -- JSON
);

-- A CRC-32 over `content_sha256` and `about`, since `checksum` does not cover `about`. Null in a row of an earlier
-- version: its header is checked by decoding the transcript. Filling it would rewrite every row within the timeout of
-- one statement, and servers of that version that still run add such rows.
ALTER TABLE bodies ADD COLUMN about_checksum BIGINT;
