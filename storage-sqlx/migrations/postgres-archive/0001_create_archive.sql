-- The tracks that a video is known to have, archived or not.
CREATE TABLE tracks (
    video TEXT COLLATE "C" NOT NULL, -- platform/id, as everywhere here
    id BIGINT NOT NULL, -- the tracks of a video in the order in which they became known
    language TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C",
    original BOOLEAN NOT NULL,
    PRIMARY KEY (video, id)
);

-- Every revision that was ever kept.
CREATE TABLE transcripts (
    video TEXT COLLATE "C" NOT NULL,
    id BIGINT NOT NULL,
    track BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    parser_version BIGINT NOT NULL,
    stored_at BIGINT NOT NULL, -- milliseconds since 1970-01-01T00:00:00Z, as every moment here
    content_sha256 BYTEA NOT NULL CHECK (length(content_sha256) = 32),
    body_bytes BIGINT NOT NULL, -- of its body as it is stored
    PRIMARY KEY (video, id),
    FOREIGN KEY (video, track) REFERENCES tracks (video, id)
);

CREATE INDEX transcripts_of_track ON transcripts (video, track, revision);

-- Transcripts as they are sent (see body.rs).
CREATE TABLE bodies (
    video TEXT COLLATE "C" NOT NULL,
    transcript BIGINT NOT NULL,
    content_sha256 BYTEA NOT NULL CHECK (length(content_sha256) = 32), -- as in `transcripts`
    source TEXT NOT NULL, -- the supplier
    length BIGINT NOT NULL, -- of the segments before compression, in bytes
    checksum BIGINT NOT NULL, -- a CRC-32 over the video and all columns here but `about`
    about TEXT NOT NULL, -- JSON: the transcript without source and segments
    segments BYTEA NOT NULL, -- the JSON list in an answer as one zstd frame
    PRIMARY KEY (video, transcript),
    FOREIGN KEY (video, transcript) REFERENCES transcripts (video, id) ON DELETE CASCADE
);

-- Which transcript answers a wish: the newest one that was kept for it.
CREATE TABLE wishes (
    video TEXT COLLATE "C" NOT NULL,
    wish TEXT COLLATE "C" NOT NULL, -- `default`, or a language tag
    transcript BIGINT NOT NULL,
    PRIMARY KEY (video, wish),
    FOREIGN KEY (video, transcript) REFERENCES transcripts (video, id)
);

CREATE TABLE absences (
    video TEXT COLLATE "C" NOT NULL,
    wish TEXT COLLATE "C" NOT NULL,
    reason TEXT NOT NULL,
    message TEXT NOT NULL,
    asked TEXT NOT NULL, -- JSON: the names of the suppliers that were asked
    until BIGINT NOT NULL,
    PRIMARY KEY (video, wish)
);

CREATE INDEX absences_by_end ON absences (until);

CREATE TABLE leases (
    video TEXT COLLATE "C" NOT NULL,
    wish TEXT COLLATE "C" NOT NULL,
    holder TEXT NOT NULL,
    until BIGINT NOT NULL,
    PRIMARY KEY (video, wish)
);

CREATE INDEX leases_by_end ON leases (until);

CREATE TABLE links (
    address TEXT COLLATE "C" PRIMARY KEY,
    video TEXT NOT NULL
);

CREATE TABLE withdrawals (
    video TEXT COLLATE "C" PRIMARY KEY,
    at BIGINT NOT NULL
);

-- Counts what makes an answer that was given before untrue: see `Archive::changes`.
CREATE TABLE changes (
    only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
    count BIGINT NOT NULL
);

INSERT INTO changes (only_row, count) VALUES (1, 0);
