//! Expires overdue holds, in one statement.

use sqlx::{PgConnection, Row};
use transcript_core::Timestamp;

use crate::{
    codec::small,
    error::DbResult,
    postgres::database::{PgDatabase, WriteTx},
};

/// Numbers that the statement reserves for its entries: more than the shares of that many holds.
const NUMBERS: usize = 1 << 14;

/// Locks the holds first, then their pools, in one global order.
///
/// Holds that are locked by others are being settled or extended: they are skipped.
const EXPIRE: &str = "WITH overdue AS (
        SELECT id, memo, expires_at, wallets, share_legs, share_buckets, share_amounts FROM ledger_holds
        WHERE state = 'open' AND expires_at <= $1 ORDER BY expires_at, id LIMIT $2 FOR UPDATE SKIP LOCKED
    ), shares AS (
        SELECT o.id, o.memo, o.wallets[s.leg] AS wallet, s.bucket, s.amount,
            row_number() OVER (ORDER BY o.expires_at, o.id, s.place) AS place
        FROM overdue o, unnest(o.share_legs, o.share_buckets, o.share_amounts) WITH ORDINALITY
            s (leg, bucket, amount, place)
    ), sums AS (
        SELECT wallet, bucket, sum(amount)::BIGINT AS amount FROM shares GROUP BY wallet, bucket
    ), locked AS (
        SELECT p.wallet, p.bucket, p.last_entry, p.cap FROM ledger_pools p
        WHERE (p.wallet, p.bucket) IN (SELECT wallet, bucket FROM sums)
        ORDER BY p.wallet, p.bucket FOR UPDATE
    ), first AS (
        SELECT greatest($3, coalesce(max(last_entry) + 1, 0)) AS number FROM locked
    ), stored AS (
        UPDATE ledger_pools p SET version = p.version + 1, held = p.held - s.amount,
            last_entry = first.number + (SELECT count(*) FROM shares)
        FROM sums s, first WHERE p.wallet = s.wallet AND p.bucket = s.bucket
        RETURNING 1
    ), entries AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT s.wallet, first.number + s.place, $1, s.bucket, l.cap, 'expired', s.amount, 0, s.id, s.memo
        FROM first, shares s JOIN locked l ON l.wallet = s.wallet AND l.bucket = s.bucket WHERE s.amount > 0
    ), ended AS (
        UPDATE ledger_holds h SET state = 'expired' FROM overdue o WHERE h.id = o.id RETURNING 1
    ), opened AS (
        DELETE FROM ledger_open WHERE hold IN (SELECT id FROM overdue)
    )
    SELECT (SELECT count(*) FROM ended)
    WHERE 1 / (CASE WHEN (SELECT count(*) FROM stored) = (SELECT count(*) FROM sums) THEN 1 ELSE 0 END) = 1";

/// Expires overdue holds.
pub(super) struct ExpireHoldsTx {
    pub(super) now: Timestamp,
    pub(super) limit: u32,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for ExpireHoldsTx {
    type Outcome = u32;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<u32> {
        let now = self.now.as_millis();
        let expire = sqlx::query(EXPIRE).bind(now).bind(i64::from(self.limit));
        let row = expire.bind(self.numbers.numbers(now, NUMBERS)).fetch_one(db).await?;
        Ok(small(row.try_get(0)?)?)
    }
}
