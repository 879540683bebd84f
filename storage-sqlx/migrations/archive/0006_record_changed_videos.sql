-- Videos whose responses in shared caches may be outdated: withdrawn, restored, deleted or replaced. A server that
-- purges these caches deletes the rows. Triggers, so that programs of every version record what they change.
CREATE TABLE changed_videos (
    video TEXT PRIMARY KEY,
    change INTEGER NOT NULL -- the change counter at the newest change
) STRICT, WITHOUT ROWID;

CREATE INDEX changed_videos_in_order ON changed_videos (change);

CREATE TRIGGER record_replaced_transcript AFTER UPDATE ON wishes
    BEGIN INSERT INTO changed_videos (video, change) VALUES (NEW.video, (SELECT count FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

CREATE TRIGGER record_deleted_transcript AFTER DELETE ON wishes
    BEGIN INSERT INTO changed_videos (video, change) VALUES (OLD.video, (SELECT count FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

CREATE TRIGGER record_withdrawal AFTER INSERT ON withdrawals
    BEGIN INSERT INTO changed_videos (video, change) VALUES (NEW.video, (SELECT count FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

CREATE TRIGGER record_restoration AFTER DELETE ON withdrawals
    BEGIN INSERT INTO changed_videos (video, change) VALUES (OLD.video, (SELECT count FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;
