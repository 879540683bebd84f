//! Revokes credits, in one statement.

use sqlx::{PgConnection, Row};
use transcript_core::ledger::{RevokeOutcome, RevokeRequest};

use crate::{
    codec::{column, number},
    error::{DbResult, corrupt},
    postgres::{
        database::{PgDatabase, WriteTx},
        text::encode,
    },
};

/// Locks the grant first, then its pool.
///
/// The revocation's own id is read in the state at the start of the statement: if another transaction stores it in
/// between, the unique constraint ends this one, which then runs again.
///
/// `$3` are the requested credits; an entry is written even if none of them is available.
const REVOKE: &str = "WITH known AS (
        SELECT kind, of_grant, amount, taken, shortfall FROM ledger_transfers WHERE id = $1
    ), given AS (
        SELECT t.wallet, greatest(least($3, t.amount - t.taken - t.shortfall), 0) AS wanted
        FROM ledger_transfers t
        WHERE t.id = $2 AND t.kind = 'grant' AND NOT EXISTS (SELECT 1 FROM known) FOR UPDATE
    ), pool AS (
        SELECT p.wallet, p.last_entry, p.cap, p.granted - p.spent - p.held AS available FROM ledger_pools p
        WHERE p.wallet IN (SELECT wallet FROM given) AND p.bucket = '' FOR UPDATE
    ), go AS (
        SELECT g.wallet, least(g.wanted, coalesce(p.available, 0)) AS taken,
            g.wanted - least(g.wanted, coalesce(p.available, 0)) AS shortfall,
            coalesce(p.cap, 0) AS cap, greatest($4, coalesce(p.last_entry + 1, 0)) AS number
        FROM given g LEFT JOIN pool p ON p.wallet = g.wallet
    ), stored AS (
        UPDATE ledger_pools p SET version = p.version + 1, last_entry = go.number, granted = p.granted - go.taken
        FROM go WHERE p.wallet = go.wallet AND p.bucket = '' AND go.taken + go.shortfall > 0
        RETURNING 1
    ), entry AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT wallet, number, $5, '', cap, 'revoked', taken, shortfall, $1, $6 FROM go WHERE taken + shortfall > 0
    ), transfers AS (
        INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
        SELECT CASE WHEN which = 1 THEN $1 ELSE $2 END, CASE WHEN which = 1 THEN 'revocation' ELSE 'grant' END,
            go.wallet, $2, $3, go.taken, go.shortfall
        FROM go, (VALUES (1), (2)) w (which) ORDER BY which DESC
        ON CONFLICT (id) DO UPDATE SET taken = ledger_transfers.taken + excluded.taken,
            shortfall = ledger_transfers.shortfall + excluded.shortfall
        WHERE ledger_transfers.kind = 'grant' AND excluded.kind = 'grant'
        RETURNING 1
    )
    SELECT (SELECT kind FROM known), (SELECT of_grant FROM known), (SELECT amount FROM known),
        (SELECT taken FROM known), (SELECT shortfall FROM known), (SELECT taken FROM go), (SELECT shortfall FROM go)
    WHERE 1 / (CASE WHEN (SELECT count(*) FROM transfers) = 2 * (SELECT count(*) FROM go) THEN 1 ELSE 0 END) = 1";

/// Revokes purchased credits.
pub(super) struct RevokeTx {
    pub(super) request: RevokeRequest,
    pub(super) numbers: PgDatabase,
}

impl WriteTx for RevokeTx {
    type Outcome = RevokeOutcome;
    const IS_SINGLE_STATEMENT: bool = true;

    async fn run(&self, db: &mut PgConnection) -> DbResult<RevokeOutcome> {
        let RevokeRequest { id, grant, amount, now, memo } = &self.request;
        let (now, wanted) = (now.as_millis(), column(*amount)?);
        let revoke = sqlx::query(REVOKE).bind(encode(id.as_str())).bind(encode(grant.as_str())).bind(wanted);
        let revoke = revoke.bind(self.numbers.numbers(now, 1)).bind(now).bind(encode(memo));
        let row = revoke.fetch_optional(db).await?;
        let row = row.ok_or_else(|| corrupt("the database returned no row for a revocation"))?;
        let amounts = |taken: usize, shortfall: usize| -> DbResult<Option<(u64, u64)>> {
            let both = (row.try_get::<Option<i64>, _>(taken)?, row.try_get::<Option<i64>, _>(shortfall)?);
            Ok(match both {
                (Some(taken), Some(shortfall)) => Some((number(taken)?, number(shortfall)?)),
                _ => None,
            })
        };
        if let Some((taken, shortfall)) = amounts(3, 4)? {
            let is_same = row.try_get::<&str, _>(0)? == "revocation"
                && row.try_get::<String, _>(1)? == encode(grant.as_str())
                && row.try_get::<i64, _>(2)? == wanted;
            return Ok(if is_same {
                RevokeOutcome::Exists { taken, shortfall }
            } else {
                RevokeOutcome::Conflict
            });
        }
        Ok(match amounts(5, 6)? {
            Some((taken, shortfall)) => RevokeOutcome::Revoked { taken, shortfall },
            None => RevokeOutcome::GrantNotFound,
        })
    }
}
