-- "VbS1": marks this file as ours, so that no other database is ever taken for it.
PRAGMA application_id = 1449284401;

CREATE TABLE schema_version (
    version INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    applied_at INTEGER NOT NULL -- milliseconds since 1970-01-01T00:00:00Z, as every time here
) STRICT;

-- How far the index is built from the archive.
CREATE TABLE search_state (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    generation INTEGER NOT NULL,
    state TEXT NOT NULL -- JSON
) STRICT;

-- The indexed state of each video. A deleted video keeps its row, so that a slower indexer does not bring it back.
CREATE TABLE search_videos (
    video TEXT PRIMARY KEY, -- platform/id
    change INTEGER NOT NULL, -- number of the newest change that is indexed
    generation INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX search_videos_by_generation ON search_videos (generation);

-- The indexed transcripts.
CREATE TABLE search_documents (
    id INTEGER PRIMARY KEY, -- the rows of `terms` have the ids from 64 times this number on
    video TEXT NOT NULL,
    wish TEXT NOT NULL, -- the selector by which the archive returns the transcript
    language TEXT NOT NULL,
    date INTEGER NOT NULL,
    digest TEXT NOT NULL, -- of what the terms are made from
    term_rows INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX search_documents_of_video ON search_documents (video, wish);

-- Without content: the archive has the texts.
CREATE VIRTUAL TABLE terms USING fts5 (
    title, channel, words, extras, facets,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, 'row');
