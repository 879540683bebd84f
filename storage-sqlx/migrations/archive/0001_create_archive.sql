-- "VbA1": marks this file as ours, so that no other database is ever taken for it.
PRAGMA application_id = 1449279793;

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL -- milliseconds since 1970-01-01T00:00:00Z, as every moment here
) STRICT;

-- The tracks that a video is known to have, archived or not.
CREATE TABLE tracks (
    id INTEGER PRIMARY KEY, -- grows: the tracks of a video in the order in which they became known
    video TEXT NOT NULL, -- platform/id, as everywhere here
    language TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT,
    original INTEGER NOT NULL
) STRICT;

CREATE INDEX tracks_of_video ON tracks (video);

-- Every revision that was ever kept.
CREATE TABLE transcripts (
    id INTEGER PRIMARY KEY,
    video TEXT NOT NULL,
    track INTEGER NOT NULL REFERENCES tracks (id),
    revision INTEGER NOT NULL,
    parser_version INTEGER NOT NULL,
    stored_at INTEGER NOT NULL,
    content_sha256 BLOB NOT NULL CHECK (length(content_sha256) = 32),
    body_length INTEGER NOT NULL, -- of the body before compression, in bytes
    body_bytes INTEGER NOT NULL, -- of the body as it is stored
    body BLOB NOT NULL -- see body.rs; last, so that the columns before it are read without it
) STRICT;

-- Covers what pages and figures need, so that they never touch a body.
CREATE INDEX transcripts_of_video ON transcripts (video, track, revision, stored_at, body_bytes);

-- Which transcript answers a wish: the newest one that was kept for it.
CREATE TABLE wishes (
    video TEXT NOT NULL,
    wish TEXT NOT NULL, -- `default`, or a language tag
    transcript INTEGER NOT NULL REFERENCES transcripts (id),
    PRIMARY KEY (video, wish)
) STRICT, WITHOUT ROWID;

CREATE INDEX wishes_of_transcript ON wishes (transcript);

CREATE TABLE absences (
    video TEXT NOT NULL,
    wish TEXT NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    asked TEXT NOT NULL, -- JSON: the names of the suppliers that were asked
    until INTEGER NOT NULL,
    PRIMARY KEY (video, wish)
) STRICT, WITHOUT ROWID;

CREATE TABLE leases (
    video TEXT NOT NULL,
    wish TEXT NOT NULL,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL,
    PRIMARY KEY (video, wish)
) STRICT, WITHOUT ROWID;

CREATE TABLE links (
    address TEXT PRIMARY KEY,
    video TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE withdrawals (
    video TEXT PRIMARY KEY,
    at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
