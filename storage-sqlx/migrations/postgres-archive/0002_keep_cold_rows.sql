-- Transcripts in the compact form (see cold/mod.rs): what `archive compact` takes out of `bodies`. A transcript is in
-- one of the two tables.
CREATE TABLE cold (
    video TEXT COLLATE "C" NOT NULL,
    transcript BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (video, transcript),
    FOREIGN KEY (video, transcript) REFERENCES transcripts (video, id) ON DELETE CASCADE
);

-- What `archive stats` tells, kept by the statements that change it: to count it would read the whole archive. Each adds
-- to a part by chance, so that servers which keep transcripts at the same time hardly meet; a figure is the sum of its
-- parts, each of which may be negative.
CREATE TABLE figures (
    part BIGINT PRIMARY KEY, -- from 0 to 63
    videos BIGINT NOT NULL, -- with at least one transcript
    transcripts BIGINT NOT NULL,
    bytes BIGINT NOT NULL, -- of all transcripts.body_bytes
    compact BIGINT NOT NULL, -- transcripts in the table cold
    links BIGINT NOT NULL
);

INSERT INTO figures (part, videos, transcripts, bytes, compact, links)
    SELECT part, 0, 0, 0, 0, 0 FROM generate_series(0, 63) part;

UPDATE figures SET videos = (SELECT count(DISTINCT video) FROM transcripts),
    transcripts = (SELECT count(*) FROM transcripts),
    bytes = (SELECT coalesce(sum(body_bytes), 0)::BIGINT FROM transcripts),
    links = (SELECT count(*) FROM links)
    WHERE part = 0;
