-- Counts what makes an answer that was given before untrue: whoever keeps ready answers in memory asks for
-- this one number. The first transcript of a video makes no earlier transcript untrue, so it does not count,
-- and neither do leases, absences and links: a busy archive would otherwise never let an answer rest.
CREATE TABLE changes (
    only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
    count INTEGER NOT NULL
) STRICT;

INSERT INTO changes (only_row, count) VALUES (1, 0);

CREATE TRIGGER count_added_wish AFTER INSERT ON wishes
    WHEN EXISTS (SELECT 1 FROM wishes WHERE video = NEW.video AND transcript <> NEW.transcript)
    BEGIN UPDATE changes SET count = count + 1; END;

CREATE TRIGGER count_replaced_wish AFTER UPDATE ON wishes
    BEGIN UPDATE changes SET count = count + 1; END;

CREATE TRIGGER count_forgotten_wish AFTER DELETE ON wishes
    BEGIN UPDATE changes SET count = count + 1; END;

CREATE TRIGGER count_withdrawal AFTER INSERT ON withdrawals
    BEGIN UPDATE changes SET count = count + 1; END;

CREATE TRIGGER count_return AFTER DELETE ON withdrawals
    BEGIN UPDATE changes SET count = count + 1; END;
