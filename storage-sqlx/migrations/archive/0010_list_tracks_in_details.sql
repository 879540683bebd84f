-- The tracks of a video as one JSON list (see details.rs), so that a response reads one row of `details` in place of the
-- rows of `tracks` and of an index. Triggers, so that programs of every version keep it up to date. Null in a row of an
-- earlier version until a track of the video changes: filling it would rewrite each row.
ALTER TABLE details ADD COLUMN tracks TEXT;

-- Each track as one text: language, kind, 0 or 1 for the original, and its name, if it has one.
CREATE VIEW track_texts AS
    SELECT video, id, language || ' ' || kind || ' ' || original || coalesce(' ' || name, '') AS track FROM tracks;

CREATE TRIGGER list_tracks AFTER INSERT ON details
    BEGIN UPDATE details SET tracks = (SELECT json_group_array(track) FROM
        (SELECT track FROM track_texts WHERE video = NEW.video ORDER BY id)) WHERE video = NEW.video; END;

CREATE TRIGGER list_added_track AFTER INSERT ON tracks
    BEGIN UPDATE details SET tracks = (SELECT json_group_array(track) FROM
        (SELECT track FROM track_texts WHERE video = NEW.video ORDER BY id)) WHERE video = NEW.video; END;

CREATE TRIGGER list_changed_track AFTER UPDATE ON tracks
    BEGIN UPDATE details SET tracks = (SELECT json_group_array(track) FROM
        (SELECT track FROM track_texts WHERE video = NEW.video ORDER BY id)) WHERE video = NEW.video; END;

CREATE TRIGGER unlist_deleted_track AFTER DELETE ON tracks
    BEGIN UPDATE details SET tracks = (SELECT json_group_array(track) FROM
        (SELECT track FROM track_texts WHERE video = OLD.video ORDER BY id)) WHERE video = OLD.video; END;

-- The list of tracks is not indexed for search.
DROP TRIGGER unindexed_changed_details;
CREATE TRIGGER unindexed_changed_details AFTER UPDATE OF metadata ON details
    BEGIN DELETE FROM unindexed_videos WHERE video = NEW.video;
        INSERT INTO unindexed_videos (video) VALUES (NEW.video); END;
