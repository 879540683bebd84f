//! What takes credits back, in one statement.

use sqlx::{PgConnection, Row};
use transcript_core::ledger::{Revoke, RevokeOutcome};

use crate::{
    codec::{column, number},
    error::{Work, corrupt},
    postgres::{
        database::{Change, Database},
        text::own,
    },
};

/// The grant is locked first, then its pool. What is known of the revocation's own id is of the statement's beginning:
/// where another one of the same id has stored it meanwhile, its uniqueness ends this one, which then is made anew.
///
/// `$3` are the credits that are wanted; an entry is made also where none of them is there.
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

/// Credits to take back.
pub(super) struct Revoking {
    pub(super) ask: Revoke,
    pub(super) numbers: Database,
}

impl Change for Revoking {
    type Outcome = RevokeOutcome;
    const IS_STEP: bool = true;

    async fn make(&self, db: &mut PgConnection) -> Work<RevokeOutcome> {
        let Revoke { id, grant, amount, now, memo } = &self.ask;
        let (now, wanted) = (now.as_millis(), column(*amount)?);
        let revoke = sqlx::query(REVOKE).bind(own(id.as_str())).bind(own(grant.as_str())).bind(wanted);
        let revoke = revoke.bind(self.numbers.numbers(now, 1)).bind(now).bind(own(memo));
        let row = revoke.fetch_optional(db).await?;
        let row = row.ok_or_else(|| corrupt("a revocation says nothing"))?;
        let figures = |taken: usize, shortfall: usize| -> Work<Option<(u64, u64)>> {
            let both = (row.try_get::<Option<i64>, _>(taken)?, row.try_get::<Option<i64>, _>(shortfall)?);
            Ok(match both {
                (Some(taken), Some(shortfall)) => Some((number(taken)?, number(shortfall)?)),
                _ => None,
            })
        };
        if let Some((taken, shortfall)) = figures(3, 4)? {
            let is_same = row.try_get::<&str, _>(0)? == "revocation"
                && row.try_get::<String, _>(1)? == own(grant.as_str())
                && row.try_get::<i64, _>(2)? == wanted;
            return Ok(if is_same {
                RevokeOutcome::Known { taken, shortfall }
            } else {
                RevokeOutcome::Conflict
            });
        }
        Ok(match figures(5, 6)? {
            Some((taken, shortfall)) => RevokeOutcome::Revoked { taken, shortfall },
            None => RevokeOutcome::UnknownGrant,
        })
    }
}
