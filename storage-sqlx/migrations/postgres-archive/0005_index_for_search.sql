-- Videos that changed since the search index read them. The indexer deletes the rows.
CREATE TABLE unindexed_videos (
    video TEXT COLLATE "C" PRIMARY KEY,
    change BIGINT GENERATED ALWAYS AS IDENTITY NOT NULL -- a later change has a higher number
);

CREATE INDEX unindexed_videos_in_order ON unindexed_videos (change);

-- How far the index is built from the archive.
CREATE TABLE search_state (
    only_row BIGINT PRIMARY KEY CHECK (only_row = 1),
    generation BIGINT NOT NULL,
    state TEXT NOT NULL -- JSON
);

-- The indexed state of each video. A deleted video keeps its row, so that a slower indexer does not bring it back.
CREATE TABLE search_videos (
    video TEXT COLLATE "C" PRIMARY KEY,
    change BIGINT NOT NULL, -- number of the newest change that is indexed
    generation BIGINT NOT NULL
);

CREATE INDEX search_videos_by_generation ON search_videos (generation);

-- The indexed transcripts.
CREATE TABLE search_documents (
    video TEXT COLLATE "C" NOT NULL,
    wish TEXT COLLATE "C" NOT NULL, -- the selector by which the archive returns the transcript
    language TEXT COLLATE "C" NOT NULL,
    date BIGINT NOT NULL,
    digest TEXT COLLATE "C" NOT NULL, -- of what the terms are made from
    PRIMARY KEY (video, wish)
);

-- Their terms: one row for some 3,000 words. Titles have weight A, channels B, texts C; other terms have no position.
CREATE TABLE search_terms (
    video TEXT COLLATE "C" NOT NULL,
    wish TEXT COLLATE "C" NOT NULL,
    number BIGINT NOT NULL,
    terms TSVECTOR NOT NULL,
    PRIMARY KEY (video, wish, number),
    FOREIGN KEY (video, wish) REFERENCES search_documents (video, wish) ON DELETE CASCADE
);

CREATE INDEX search_terms_by_term ON search_terms USING GIN (terms) WITH (fastupdate = off);
