//! The ledger in SQLite: each row is read and written by its own statement.
//!
//! An operation loads its rows, the rules of the ledger decide on them ([`LedgerRows`]), and the changed rows are
//! stored.

use std::collections::BTreeSet;

use async_trait::async_trait;
use transcript_core::{
    Page, PageRequest, Result, Timestamp,
    ids::{HoldId, WalletId},
    ledger::{
        Balance, Entry, GrantOutcome, GrantRequest, HoldOutcome, HoldRequest, HoldState, Ledger,
        PeriodBalance, RevokeOutcome, RevokeRequest, SettleOutcome, SettleRequest, Terms,
        rules::{
            self, ExpireRequest, ExtendRequest, HoldRow, HoldRowState, HoldStep, LedgerRows, LedgerStep,
            PoolRow, RowKeys, TransferKind, TransferRow, kind_name,
        },
    },
};

use super::{SqliteStore, charges::SpendTx};
use crate::{
    codec::{self, column, number},
    error::{DbResult, corrupt},
    sql::{Database, Row, Session, WriteTx, values},
    store::{
        self,
        ledger::{buckets, expire_in_steps, log_unreadable_hold},
    },
};

/// Most overdue holds that one transaction expires.
const EXPIRE_MAX: u32 = 500;

const LOAD_HOLD: &str = "SELECT id, state, expires_at, memo, legs FROM ledger_holds WHERE id = ?1";
const LOAD_OVERDUE_OF_WALLET: &str = "SELECT h.id, h.state, h.expires_at, h.memo, h.legs
    FROM ledger_open o JOIN ledger_holds h ON h.id = o.hold
    WHERE o.wallet = ?1 AND o.expires_at <= ?2";
const LOAD_OVERDUE: &str = "SELECT id, state, expires_at, memo, legs FROM ledger_holds
    WHERE state = 'open' AND expires_at <= ?1 AND (expires_at, id) > (?3, ?4) ORDER BY expires_at, id LIMIT ?2";
const LOAD_TRANSFER: &str = "SELECT id, kind, wallet, of_grant, amount, taken, shortfall
    FROM ledger_transfers WHERE id = ?1";
const LOAD_POOL: &str =
    "SELECT cap, spent, held, granted FROM ledger_pools WHERE wallet = ?1 AND bucket = ?2";

const PUT_POOL: &str = "INSERT INTO ledger_pools (wallet, bucket, cap, spent, held, granted)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (wallet, bucket) DO UPDATE SET cap = excluded.cap, spent = excluded.spent,
        held = excluded.held, granted = excluded.granted";
const PUT_HOLD: &str =
    "INSERT INTO ledger_holds (id, state, expires_at, memo, legs) VALUES (?1, ?2, ?3, ?4, ?5)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,
        legs = excluded.legs";
const DELETE_OPEN: &str = "DELETE FROM ledger_open WHERE hold = ?1";
const ADD_OPEN: &str = "INSERT INTO ledger_open (hold, wallet, expires_at) VALUES (?1, ?2, ?3)";
const PUT_TRANSFER: &str =
    "INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
    ON CONFLICT (id) DO UPDATE SET taken = excluded.taken, shortfall = excluded.shortfall";
const ADD_ENTRY: &str = "INSERT INTO ledger_entries
    (at, wallet, bucket, cap, kind, amount, shortfall, cause, memo)
    VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

const POOLS: &str = "SELECT json_group_array(json_object('wallet', wallet, 'bucket', bucket, 'cap', cap,
        'spent', spent, 'held', held, 'granted', granted))
    FROM ledger_pools WHERE wallet = ?1 AND bucket IN (SELECT value FROM json_each(?2))";

/// The first column is that of [`POOLS`], so that both come from one state.
const POOLS_SINCE: &str = "SELECT
    (SELECT json_group_array(json_object('wallet', wallet, 'bucket', bucket, 'cap', cap,
            'spent', spent, 'held', held, 'granted', granted))
        FROM ledger_pools WHERE wallet = ?1 AND bucket IN (SELECT value FROM json_each(?2))),
    (SELECT coalesce(sum(amount), 0) FROM ledger_entries
        WHERE wallet = ?1 AND bucket = '' AND kind IN ('spent', 'charged') AND at >= ?3)";

/// A wallet that only entries or open holds with an amount name has lost its pools, and the audit must find it. So must
/// one of an open hold that is not stored.
const WALLETS: &str = "WITH named AS (
        SELECT wallet FROM ledger_pools WHERE wallet > ?1
        UNION SELECT wallet FROM ledger_entries WHERE wallet > ?1
        UNION SELECT o.wallet FROM ledger_open o WHERE o.wallet > ?1 AND (
            SELECT max(json_extract(leg.value, '$.amount')) FROM ledger_holds h, json_each(h.legs) AS leg
            WHERE h.id = o.hold AND json_extract(leg.value, '$.wallet') = o.wallet
        ) IS NOT 0
        ORDER BY wallet LIMIT ?2
    )
    SELECT named.wallet, json_group_array(json_object('wallet', p.wallet, 'bucket', bucket, 'cap', cap,
            'spent', spent, 'held', held, 'granted', granted) ORDER BY id) FILTER (WHERE id IS NOT NULL)
    FROM named LEFT JOIN ledger_pools p ON p.wallet = named.wallet
    GROUP BY named.wallet ORDER BY named.wallet";

/// Statements of every request, for the test of the query plans.
#[cfg(test)]
pub(super) const INDEXED_STATEMENTS: [&str; 14] = [
    LOAD_HOLD,
    LOAD_OVERDUE_OF_WALLET,
    LOAD_OVERDUE,
    LOAD_TRANSFER,
    LOAD_POOL,
    PUT_POOL,
    PUT_HOLD,
    DELETE_OPEN,
    ADD_OPEN,
    PUT_TRANSFER,
    ADD_ENTRY,
    POOLS,
    POOLS_SINCE,
    store::ledger::ENTRIES,
];

/// The rows of an operation.
struct LoadedRows {
    ledger: LedgerRows,
    /// Whether it needs holds that are stored already.
    has_holds: bool,
}

async fn load<S: Session>(db: &mut S, keys: &RowKeys<'_>) -> DbResult<LoadedRows> {
    let holds = load_holds(db, keys).await?;
    let mut transfers: Vec<TransferRow> = Vec::with_capacity(keys.transfers.len());
    for id in &keys.transfers {
        if transfers.iter().all(|row| row.id != *id)
            && let Some(mut row) = db.row(LOAD_TRANSFER, &values![*id]).await?
        {
            transfers.push(transfer(&mut row)?);
        }
    }
    let mut wanted: BTreeSet<(&str, &str)> = keys.pools.iter().copied().collect();
    for leg in holds.iter().filter(|hold| hold.state == HoldRowState::Open).flat_map(|hold| &hold.legs) {
        wanted.extend(leg.shares.iter().map(|share| (leg.wallet.as_str(), share.bucket.as_str())));
    }
    wanted.extend(transfers.iter().map(|row| (row.wallet.as_str(), "")));
    let mut pools = Vec::with_capacity(wanted.len());
    for (wallet, bucket) in wanted {
        if let Some(row) = db.row(LOAD_POOL, &values![wallet, bucket]).await? {
            let [cap, spent, held, granted] =
                [number(row.get(0)?)?, number(row.get(1)?)?, number(row.get(2)?)?, number(row.get(3)?)?];
            let (wallet, bucket) = (wallet.to_owned(), bucket.to_owned());
            pools.push(PoolRow { wallet, bucket, cap, spent, held, granted, touched: false });
        }
    }
    let has_holds = !holds.is_empty();
    Ok(LoadedRows { ledger: LedgerRows::new(pools, holds, transfers), has_holds })
}

/// Loads the named hold and the overdue ones, each once.
async fn load_holds<S: Session>(db: &mut S, keys: &RowKeys<'_>) -> DbResult<Vec<HoldRow>> {
    let mut rows: Vec<Row> = Vec::new();
    if let Some(id) = keys.hold {
        rows.extend(db.row(LOAD_HOLD, &values![id]).await?);
    }
    for wallet in &keys.wallets {
        rows.extend(db.rows(LOAD_OVERDUE_OF_WALLET, &values![*wallet, keys.now]).await?);
    }
    let mut holds = rows.iter_mut().map(hold).collect::<DbResult<Vec<_>>>()?;
    holds.extend(load_overdue(db, keys).await?);
    let mut ids = BTreeSet::new();
    holds.retain(|hold| ids.insert(hold.id.clone()));
    Ok(holds)
}

/// Loads overdue holds of any wallet.
///
/// One that cannot be decoded is logged, and the next one is loaded instead: it must not stop the expiry of others.
async fn load_overdue<S: Session>(db: &mut S, keys: &RowKeys<'_>) -> DbResult<Vec<HoldRow>> {
    let (mut holds, mut missing) = (Vec::new(), keys.limit);
    let (mut expires_at, mut id) = (i64::MIN, String::new());
    while missing > 0 {
        let rows = {
            let bounds = values![keys.now, missing, expires_at, &id];
            db.rows(LOAD_OVERDUE, &bounds).await?
        };
        missing = 0;
        for mut row in rows {
            (expires_at, id) = (row.get(2)?, row.get::<&str>(0)?.to_owned());
            match hold(&mut row) {
                Err(error) if error.is_damaged() => {
                    log_unreadable_hold(&id, &error);
                    missing += 1;
                }
                hold => holds.push(hold?),
            }
        }
    }
    Ok(holds)
}

async fn store<S: Session>(db: &mut S, loaded: &LoadedRows) -> DbResult<()> {
    let Some(changes) = loaded.ledger.changes() else { return Ok(()) };
    for PoolRow { wallet, bucket, cap, spent, held, granted, .. } in changes.pools {
        let [cap, spent, held, granted] = [column(*cap)?, column(*spent)?, column(*held)?, column(*granted)?];
        db.execute(PUT_POOL, &values![wallet, bucket, cap, spent, held, granted]).await?;
    }
    for hold in changes.holds {
        let HoldRow { id, state, expires_at, memo, legs, .. } = hold;
        db.execute(PUT_HOLD, &values![id, state.name(), *expires_at, memo, codec::json(legs)?]).await?;
        // A new hold has no rows to delete.
        if loaded.has_holds {
            db.execute(DELETE_OPEN, &values![id]).await?;
        }
        if *state == HoldRowState::Open {
            for leg in legs {
                db.execute(ADD_OPEN, &values![id, &leg.wallet, *expires_at]).await?;
            }
        }
    }
    for row in changes.transfers {
        let TransferRow { id, kind, wallet, of_grant, amount, taken, shortfall, .. } = row;
        let [amount, taken, shortfall] = [column(*amount)?, column(*taken)?, column(*shortfall)?];
        let row = values![id, kind.name(), wallet, of_grant, amount, taken, shortfall];
        db.execute(PUT_TRANSFER, &row).await?;
    }
    for entry in changes.entries {
        let [cap, amount, shortfall] = [column(entry.cap)?, column(entry.amount)?, column(entry.shortfall)?];
        let (wallet, bucket, cause) = (&entry.wallet, &entry.bucket, &entry.cause);
        let row = values![
            entry.at,
            wallet,
            bucket,
            cap,
            kind_name(entry.kind),
            amount,
            shortfall,
            cause,
            &entry.memo
        ];
        db.execute(ADD_ENTRY, &row).await?;
    }
    Ok(())
}

/// Applies a step to the rows that it needs, and stores the changed ones.
pub(super) async fn apply<D: Session, S: LedgerStep>(db: &mut D, step: &S) -> DbResult<S::Outcome> {
    let mut loaded = load(db, &step.keys()).await?;
    let outcome = step.apply(&mut loaded.ledger)?;
    // A rejected hold is stored too: it may have expired overdue holds of its wallets.
    store(db, &loaded).await?;
    Ok(outcome)
}

/// A step of the ledger.
struct LedgerTx<S>(S);

impl<S: LedgerStep> WriteTx for LedgerTx<S> {
    type Outcome = S::Outcome;

    async fn run<D: Session>(&self, db: &mut D) -> DbResult<S::Outcome> {
        apply(db, &self.0).await
    }
}

/// A hold that is settled later.
struct HoldTx(HoldStep);

impl WriteTx for HoldTx {
    type Outcome = HoldOutcome;

    /// The log keeps the order of commits, so a settle that is on disk follows its hold there, and a hold that a crash
    /// undoes was never charged.
    ///
    /// A hold of no credits is a record that no settle follows, and a known hold may have been charged.
    fn needs_sync(&self, outcome: &HoldOutcome) -> bool {
        let holds_credits = self.0.request.legs.iter().any(|leg| leg.amount > 0);
        !(holds_credits && matches!(outcome, HoldOutcome::Held { .. }))
    }

    async fn run<D: Session>(&self, db: &mut D) -> DbResult<HoldOutcome> {
        apply(db, &self.0).await
    }
}

#[async_trait]
impl Ledger for SqliteStore {
    async fn hold(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.database.run(HoldTx(HoldStep { request, spend: false })).await
    }

    async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        request.check()?;
        self.database.run(SpendTx(HoldStep { request, spend: true })).await
    }

    async fn extend(&self, id: &HoldId, expires_at: Timestamp) -> Result<HoldState> {
        self.database.run(LedgerTx(ExtendRequest { id: id.clone(), expires_at })).await
    }

    async fn settle(&self, request: SettleRequest) -> Result<SettleOutcome> {
        self.database.run(LedgerTx(request)).await
    }

    async fn grant(&self, grant: GrantRequest) -> Result<GrantOutcome> {
        grant.check()?;
        self.database.run(LedgerTx(grant)).await
    }

    async fn revoke(&self, request: RevokeRequest) -> Result<RevokeOutcome> {
        request.check()?;
        self.database.run(LedgerTx(request)).await
    }

    async fn balance(&self, wallet: &WalletId, terms: &Terms) -> Result<Balance> {
        terms.check()?;
        let keys = values![wallet.as_str(), buckets(terms)];
        let found = self.database.find_first(POOLS, &keys, |row| pools(row.get(0)?)).await?;
        Ok(rules::balance(&found.unwrap_or_default(), wallet, terms))
    }

    async fn balance_since(
        &self,
        wallet: &WalletId,
        terms: &Terms,
        since: Timestamp,
    ) -> Result<PeriodBalance> {
        terms.check()?;
        let keys = values![wallet.as_str(), buckets(terms), since.as_millis()];
        // A wallet may have many entries, so this is read as a list.
        let found =
            self.database.find(POOLS_SINCE, &keys, |row| Ok((pools(row.get(0)?)?, number(row.get(1)?)?)));
        let (pools, purchased_spent) = found.await?.into_iter().next().unwrap_or_default();
        Ok(PeriodBalance { balance: rules::balance(&pools, wallet, terms), purchased_spent })
    }

    async fn expire(&self, now: Timestamp, limit: u32) -> Result<u32> {
        expire_in_steps(limit, EXPIRE_MAX, |limit| self.database.run(LedgerTx(ExpireRequest { now, limit })))
            .await
    }

    async fn shorten_holds(&self, latest: Timestamp) -> Result<()> {
        store::ledger::shorten_holds(&self.database, latest).await
    }

    async fn entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        store::ledger::entries(&self.database, wallet, &page).await
    }

    async fn recent_entries(&self, wallet: &WalletId, page: PageRequest) -> Result<Page<Entry>> {
        store::ledger::recent_entries(&self.database, wallet, &page).await
    }

    async fn wallets(&self, page: PageRequest) -> Result<Page<Balance>> {
        let after = page.after.as_ref().map_or("", |cursor| cursor.as_str());
        let bounds = values![after, codec::one_more(&page)];
        let found = self.database.find(WALLETS, &bounds, |row| {
            let rows = pools(row.get(1)?)?;
            let pools = rows.iter().map(PoolRow::balance).collect();
            Ok(Balance { wallet: WalletId::new(row.take::<String>(0)?), pools })
        });
        Ok(Page::cut(found.await?, &page, |balance| balance.wallet.as_str().to_owned()))
    }

    async fn check_writable(&self) -> Result<()> {
        store::check_writable(&self.database, "main").await
    }
}

fn pools(json: &str) -> DbResult<Vec<PoolRow>> {
    Ok(serde_json::from_str(json).map_err(|_| corrupt("a balance of the ledger is damaged"))?)
}

fn hold(row: &mut Row) -> DbResult<HoldRow> {
    let damaged = || corrupt("a hold of the ledger is damaged");
    Ok(HoldRow {
        state: HoldRowState::from_name(row.get(1)?).ok_or_else(damaged)?,
        legs: serde_json::from_str(row.get(4)?).map_err(|_| damaged())?,
        id: row.take(0)?,
        expires_at: row.take(2)?,
        memo: row.take(3)?,
        touched: false,
    })
}

fn transfer(row: &mut Row) -> DbResult<TransferRow> {
    Ok(TransferRow {
        kind: TransferKind::from_name(row.get(1)?)
            .ok_or_else(|| corrupt("a transfer of the ledger has an unknown kind"))?,
        id: row.take(0)?,
        wallet: row.take(2)?,
        of_grant: row.take(3)?,
        amount: number(row.take(4)?)?,
        taken: number(row.take(5)?)?,
        shortfall: number(row.take(6)?)?,
        touched: false,
    })
}
