-- The index is built again from the archive: every table begins empty.
DROP TABLE vocabulary;
DROP TABLE terms;
DROP TABLE search_documents;
DROP INDEX search_videos_by_generation;
DELETE FROM search_videos;
DELETE FROM search_state;

-- The indexed transcripts. Only the meaning of their ids is new.
CREATE TABLE search_documents (
    id INTEGER PRIMARY KEY, -- of the first row of `terms`; further rows have the numbers that follow
    video TEXT NOT NULL,
    wish TEXT NOT NULL, -- the selector by which the archive returns the transcript
    language TEXT NOT NULL,
    date INTEGER NOT NULL,
    digest TEXT NOT NULL, -- of what the terms are made from
    term_rows INTEGER NOT NULL
) STRICT;

CREATE UNIQUE INDEX search_documents_of_video ON search_documents (video, wish);

-- Languages of which a transcript was indexed, without script and region: a query has stems of these only.
CREATE TABLE search_languages (
    language TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;

-- Without content: the archive has the texts. Each occurrence in the first column takes two bytes less than in others,
-- hence the stems follow the words there. They are part of no phrase.
CREATE VIRTUAL TABLE terms USING fts5 (
    words, title, channel, others, facets,
    content = '', contentless_delete = 1, tokenize = 'ascii'
);

CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, 'row');
