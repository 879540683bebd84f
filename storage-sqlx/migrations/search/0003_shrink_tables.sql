-- The documents of a video have ids that follow each other, so that none of them needs an index.
ALTER TABLE search_videos ADD COLUMN first_document INTEGER;
ALTER TABLE search_videos ADD COLUMN last_document INTEGER;
UPDATE search_videos SET
    first_document = (SELECT min(id) FROM search_documents d WHERE d.video = search_videos.video),
    last_document = (SELECT max(id) FROM search_documents d WHERE d.video = search_videos.video);
DROP INDEX search_documents_of_video;

-- An earlier program that has the file open would store documents without these ids. It stores nothing in an earlier
-- generation, and does not continue a build of a later format.
UPDATE search_state SET
    generation = generation + 1,
    state = json_set(state, '$.generation', generation + 1, '$.format', 7, '$.cursor', NULL, '$.tracks', 0,
        '$.is_complete', json('false'))
WHERE json_valid(state);

-- The indexer merges the parts of `terms` when it has indexed all changes: two of a size are enough. A query looks each
-- word up in every part.
INSERT INTO terms (terms, rank) VALUES ('usermerge', 2);
