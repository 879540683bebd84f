-- Videos whose responses in shared caches may be outdated: withdrawn, restored, deleted or replaced. A server that
-- purges these caches deletes the rows.
CREATE TABLE changed_videos (
    video TEXT COLLATE "C" PRIMARY KEY,
    change BIGINT NOT NULL -- the change counter at the newest change
);

CREATE INDEX changed_videos_in_order ON changed_videos (change);
