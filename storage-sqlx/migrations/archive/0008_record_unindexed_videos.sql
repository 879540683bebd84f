-- Videos that changed since a search index read them. The indexer deletes the rows. Triggers, so that programs of every
-- version record what they change.
CREATE TABLE unindexed_videos (
    change INTEGER PRIMARY KEY AUTOINCREMENT, -- never used again, so that a later change has a higher number
    video TEXT NOT NULL UNIQUE
) STRICT;

CREATE TRIGGER unindexed_added_wish AFTER INSERT ON wishes
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;

CREATE TRIGGER unindexed_replaced_wish AFTER UPDATE ON wishes
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;

CREATE TRIGGER unindexed_deleted_wish AFTER DELETE ON wishes
    BEGIN DELETE FROM unindexed_videos WHERE video = OLD.video;
        INSERT INTO unindexed_videos (video) VALUES (OLD.video); END;

CREATE TRIGGER unindexed_withdrawal AFTER INSERT ON withdrawals
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;

CREATE TRIGGER unindexed_restoration AFTER DELETE ON withdrawals
    BEGIN DELETE FROM unindexed_videos WHERE video = OLD.video;
        INSERT INTO unindexed_videos (video) VALUES (OLD.video); END;

CREATE TRIGGER unindexed_added_details AFTER INSERT ON details
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;

CREATE TRIGGER unindexed_changed_details AFTER UPDATE ON details
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;
