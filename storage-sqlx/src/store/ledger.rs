//! The lists of the ledger, and the expiry of holds, in either database.

use transcript_core::{
    FailureLog, Page, PageRequest, Result, Timestamp,
    ids::WalletId,
    ledger::{
        Entry, Terms,
        rules::{bucket_name, kind_from_name, pool_from_row},
    },
};

use crate::{
    codec::{self, number},
    error::{DbError, DbResult},
    sql::{Database, Row, Session, Statement, WriteTx, sql, values},
};

pub(crate) const ENTRIES: &str = "SELECT seq, at, bucket, cap, kind, amount, shortfall, cause, memo
    FROM ledger_entries WHERE wallet = $1 AND seq > $2 ORDER BY seq LIMIT $3";
pub(crate) const RECENT_ENTRIES: &str = "SELECT seq, at, bucket, cap, kind, amount, shortfall, cause, memo
    FROM ledger_entries WHERE wallet = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3";

/// Logs an overdue hold that cannot be decoded. Each sweep reads it again.
pub(crate) fn log_unreadable_hold(hold: &str, error: &DbError) {
    static UNREADABLE: FailureLog = FailureLog::new();
    if let Some(rows) = UNREADABLE.failed() {
        tracing::error!(hold, ?error, rows, "overdue hold is unreadable");
    }
}

/// Open holds with an amount that end after `$1`.
macro_rules! holds_after {
    (sqlite) => {
        "state = 'open' AND expires_at > $1 AND EXISTS (
            SELECT 1 FROM json_each(legs) AS leg WHERE json_extract(leg.value, '$.amount') > 0
        )"
    };
    (postgres) => {
        "state = 'open' AND expires_at > $1 AND 0 < ANY (amounts)"
    };
}
/// A read, so that a sweep without such holds writes nothing.
const FIND_HOLD_ENDING_AFTER: Statement = sql! {
    sqlite: concat!("SELECT 1 FROM ledger_holds WHERE ", holds_after!(sqlite), " ORDER BY expires_at, id LIMIT 1"),
    postgres: concat!("SELECT 1 FROM ledger_holds WHERE ", holds_after!(postgres), " ORDER BY expires_at, id LIMIT 1"),
};
const SHORTEN_HOLDS: Statement = sql! {
    sqlite: concat!("UPDATE ledger_holds SET expires_at = $1 WHERE ", holds_after!(sqlite)),
    postgres: concat!("UPDATE ledger_holds SET expires_at = $1 WHERE ", holds_after!(postgres)),
};
/// Of the holds that [`SHORTEN_HOLDS`] has changed.
const SHORTEN_OPEN: &str = "UPDATE ledger_open SET expires_at = $1 WHERE expires_at > $1
    AND hold IN (SELECT id FROM ledger_holds WHERE state = 'open' AND expires_at = $1)";

/// The entries of a wallet, oldest first.
pub(crate) async fn entries<D: Database>(
    database: &D,
    wallet: &WalletId,
    page: &PageRequest,
) -> Result<Page<Entry>> {
    let after = codec::numbered(page.after.as_ref())?;
    list(database, ENTRIES.into(), wallet, after, page).await
}

/// The entries of a wallet, newest first.
pub(crate) async fn recent_entries<D: Database>(
    database: &D,
    wallet: &WalletId,
    page: &PageRequest,
) -> Result<Page<Entry>> {
    let before = codec::numbered_before(page.after.as_ref())?;
    list(database, RECENT_ENTRIES.into(), wallet, before, page).await
}

async fn list<D: Database>(
    database: &D,
    statement: Statement,
    wallet: &WalletId,
    bound: i64,
    page: &PageRequest,
) -> Result<Page<Entry>> {
    let keys = values![wallet.as_str(), bound, codec::one_more(page)];
    let found = database.find(statement, &keys, |row| entry(wallet, row)).await?;
    Ok(Page::cut(found, page, |entry| entry.seq.to_string()))
}

fn entry(wallet: &WalletId, row: &mut Row) -> DbResult<Entry> {
    let shortfall = number(row.take(6)?)?;
    Ok(Entry {
        seq: number(row.take(0)?)?,
        at: Timestamp::from_millis(row.take(1)?),
        wallet: wallet.clone(),
        pool: pool_from_row(row.take(2)?, number(row.take(3)?)?),
        kind: kind_from_name(row.get(4)?, shortfall)?,
        amount: number(row.take(5)?)?,
        cause: row.take(7)?,
        memo: row.take(8)?,
    })
}

/// Open holds with an amount end at this time, in milliseconds, at the latest.
struct ShortenHoldsTx {
    latest: i64,
}

impl WriteTx for ShortenHoldsTx {
    type Outcome = ();

    async fn run<S: Session>(&self, db: &mut S) -> DbResult<()> {
        db.execute(SHORTEN_HOLDS, &values![self.latest]).await?;
        db.execute(SHORTEN_OPEN, &values![self.latest]).await?;
        Ok(())
    }
}

/// Shortens the open holds with an amount that end after `latest`.
pub(crate) async fn shorten_holds<D: Database>(database: &D, latest: Timestamp) -> Result<()> {
    let latest = latest.as_millis();
    // As a list, so on another thread for a file: it reads all open holds of nothing that end later.
    if database.find(FIND_HOLD_ENDING_AFTER, &values![latest], |_| Ok(())).await?.is_empty() {
        return Ok(());
    }
    database.run(ShortenHoldsTx { latest }).await
}

/// The names of the buckets of these terms.
pub(crate) fn buckets(terms: &Terms) -> Vec<&str> {
    terms.pools.iter().map(bucket_name).collect()
}

/// Expires at most `limit` holds in transactions of at most `step`, so that other writes can run in between.
pub(crate) async fn expire_in_steps<F>(limit: u32, step: u32, expire: impl Fn(u32) -> F) -> Result<u32>
where
    F: Future<Output = Result<u32>>,
{
    let mut expired = 0;
    while expired < limit {
        let count = expire((limit - expired).min(step)).await?;
        expired += count;
        if count < step {
            break;
        }
    }
    Ok(expired)
}
