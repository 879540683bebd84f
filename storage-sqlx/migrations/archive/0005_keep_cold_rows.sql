-- Transcripts in the compact form (see cold/mod.rs): what `archive compact` takes out of `bodies`. A transcript is in
-- one of the two tables, or of the oldest form. In parts, since a page has room for one row of 9 KB to 16 KB, and
-- would leave the rest of itself empty; eight parts fill a page.
CREATE TABLE cold (
    id INTEGER PRIMARY KEY, -- the transcript's number times 65536, and that of the part from 0 on
    bytes BLOB NOT NULL
) STRICT;

-- A trigger, so that it also holds for what a program of an earlier version forgets.
CREATE TRIGGER forget_cold AFTER DELETE ON transcripts
    BEGIN DELETE FROM cold WHERE id BETWEEN OLD.id * 65536 AND OLD.id * 65536 + 65535; END;

-- What `archive stats` tells, kept by triggers: to count it would read the whole archive.
CREATE TABLE figures (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    videos INTEGER NOT NULL, -- with at least one transcript
    transcripts INTEGER NOT NULL,
    bytes INTEGER NOT NULL, -- of all `transcripts.body_bytes`
    compact INTEGER NOT NULL, -- transcripts in `cold`
    absences INTEGER NOT NULL,
    withdrawn INTEGER NOT NULL,
    links INTEGER NOT NULL
) STRICT;

INSERT INTO figures (only_row, videos, transcripts, bytes, compact, absences, withdrawn, links) SELECT 1,
    (SELECT count(DISTINCT video) FROM transcripts), (SELECT count(*) FROM transcripts),
    (SELECT coalesce(sum(body_bytes), 0) FROM transcripts), 0,
    (SELECT count(*) FROM absences), (SELECT count(*) FROM withdrawals), (SELECT count(*) FROM links);

CREATE TRIGGER count_transcript AFTER INSERT ON transcripts
    BEGIN UPDATE figures SET transcripts = transcripts + 1, bytes = bytes + NEW.body_bytes,
        videos = videos + NOT EXISTS (SELECT 1 FROM transcripts WHERE video = NEW.video AND id <> NEW.id)
        WHERE only_row = 1; END;

CREATE TRIGGER count_deleted_transcript AFTER DELETE ON transcripts
    BEGIN UPDATE figures SET transcripts = transcripts - 1, bytes = bytes - OLD.body_bytes,
        videos = videos - NOT EXISTS (SELECT 1 FROM transcripts WHERE video = OLD.video)
        WHERE only_row = 1; END;

CREATE TRIGGER count_bytes AFTER UPDATE OF body_bytes ON transcripts
    BEGIN UPDATE figures SET bytes = bytes + NEW.body_bytes - OLD.body_bytes WHERE only_row = 1; END;

CREATE TRIGGER count_cold AFTER INSERT ON cold WHEN NEW.id % 65536 = 0
    BEGIN UPDATE figures SET compact = compact + 1 WHERE only_row = 1; END;

CREATE TRIGGER count_deleted_cold AFTER DELETE ON cold WHEN OLD.id % 65536 = 0
    BEGIN UPDATE figures SET compact = compact - 1 WHERE only_row = 1; END;

CREATE TRIGGER count_absence AFTER INSERT ON absences
    BEGIN UPDATE figures SET absences = absences + 1 WHERE only_row = 1; END;

CREATE TRIGGER count_deleted_absence AFTER DELETE ON absences
    BEGIN UPDATE figures SET absences = absences - 1 WHERE only_row = 1; END;

CREATE TRIGGER count_withdrawn AFTER INSERT ON withdrawals
    BEGIN UPDATE figures SET withdrawn = withdrawn + 1 WHERE only_row = 1; END;

CREATE TRIGGER count_put_back AFTER DELETE ON withdrawals
    BEGIN UPDATE figures SET withdrawn = withdrawn - 1 WHERE only_row = 1; END;

CREATE TRIGGER count_link AFTER INSERT ON links
    BEGIN UPDATE figures SET links = links + 1 WHERE only_row = 1; END;
