-- The times of words (see words.rs). In a table of its own, because few requests read them; they stay here when the
-- transcript moves to `cold`. A transcript without words has no row.
CREATE TABLE words (
    transcript INTEGER PRIMARY KEY REFERENCES transcripts (id) ON DELETE CASCADE,
    bytes BLOB NOT NULL
) STRICT;

-- What is known of a video besides its transcripts and tracks.
CREATE TABLE details (
    video TEXT PRIMARY KEY,
    metadata TEXT NOT NULL -- JSON
) STRICT;

-- A trigger, so that it also holds for a video that a program of an earlier version deletes.
CREATE TRIGGER delete_details AFTER DELETE ON tracks
    WHEN NOT EXISTS (SELECT 1 FROM tracks WHERE video = OLD.video)
    BEGIN DELETE FROM details WHERE video = OLD.video; END;

-- A CRC-32 over `content_sha256` and `about`, since `checksum` does not cover `about`. Null in a row of an earlier
-- version: its header is checked by decoding the transcript. Filling it would rewrite every row, bodies included.
ALTER TABLE bodies ADD COLUMN about_checksum INTEGER;
