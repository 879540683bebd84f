-- The triggers of 0006 run before those that count the change (0003): a change had the number of the one before it, and
-- was deleted with that one.
DROP TRIGGER record_replaced_transcript;
CREATE TRIGGER record_replaced_transcript AFTER UPDATE ON wishes
    BEGIN INSERT INTO changed_videos (video, change) VALUES (NEW.video, (SELECT count + 1 FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

DROP TRIGGER record_deleted_transcript;
CREATE TRIGGER record_deleted_transcript AFTER DELETE ON wishes
    BEGIN INSERT INTO changed_videos (video, change) VALUES (OLD.video, (SELECT count + 1 FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

DROP TRIGGER record_withdrawal;
CREATE TRIGGER record_withdrawal AFTER INSERT ON withdrawals
    BEGIN INSERT INTO changed_videos (video, change) VALUES (NEW.video, (SELECT count + 1 FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;

DROP TRIGGER record_restoration;
CREATE TRIGGER record_restoration AFTER DELETE ON withdrawals
    BEGIN INSERT INTO changed_videos (video, change) VALUES (OLD.video, (SELECT count + 1 FROM changes))
        ON CONFLICT (video) DO UPDATE SET change = excluded.change; END;
