//! The ledger's steps in the general form: the rows that one needs are loaded, it is taken with the arithmetic that
//! all databases share ([`Books`]), and what it changed is stored, in one serializable transaction.
//!
//! What runs with every request is one statement instead ([`super::allowance`], [`super::hold`], [`super::settle`]), and comes here only
//! where something is out of the ordinary: an id that is known, a wallet with holds that are overdue.

use sqlx::PgConnection;
use transcript_core::{
    Timestamp,
    ledger::{Grant, GrantOutcome, HoldOutcome, HoldRequest},
};

use super::rows;
use crate::{
    books::{Books, EntryRow, HoldRow, LegRow, Needed, PoolRow, ShareRow, State, TransferRow},
    codec::column,
    error::Work,
    postgres::{
        database::{Change, Database},
        text::own,
    },
};

/// The entries go before the pools, whose newest number is theirs afterwards. Those of a wallet are numbered after
/// all that it has.
const ENTRIES: &str = "INSERT INTO ledger_entries
        (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
    SELECT e.wallet,
        greatest($1, coalesce((SELECT max(p.last_entry) + 1 FROM ledger_pools p WHERE p.wallet = e.wallet), 0))
            + e.place,
        e.at, e.bucket, e.cap, e.kind, e.amount, e.shortfall, e.cause, e.memo
    FROM unnest($2::TEXT[], $3::BIGINT[], $4::TEXT[], $5::BIGINT[], $6::TEXT[], $7::BIGINT[], $8::BIGINT[],
        $9::TEXT[], $10::TEXT[]) WITH ORDINALITY
        e (wallet, at, bucket, cap, kind, amount, shortfall, cause, memo, place)";
const POOLS: &str = "INSERT INTO ledger_pools
        (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
    SELECT n.wallet, n.bucket, $1 + n.place, 1,
        greatest($1, coalesce((SELECT max(p.last_entry) + 1 FROM ledger_pools p WHERE p.wallet = n.wallet), 0))
            + $2,
        n.cap, n.spent, n.held, n.granted
    FROM unnest($3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[], $8::BIGINT[],
        $9::BIGINT[]) n (wallet, bucket, cap, spent, held, granted, place)
    ON CONFLICT (wallet, bucket) DO UPDATE SET version = ledger_pools.version + 1,
        last_entry = excluded.last_entry, cap = excluded.cap, spent = excluded.spent, held = excluded.held,
        granted = excluded.granted";
const HOLD: &str =
    "INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs,
        share_buckets, share_caps, share_amounts)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)
    ON CONFLICT (id) DO UPDATE SET state = excluded.state, expires_at = excluded.expires_at,
        spent = excluded.spent";
const CLOSE: &str = "DELETE FROM ledger_open WHERE hold = ANY ($1)";
const OPEN: &str = "INSERT INTO ledger_open (hold, wallet, expires_at)
    SELECT $1, wallet, $3 FROM unnest($2::TEXT[]) wallet";
const TRANSFERS: &str = "INSERT INTO ledger_transfers (id, kind, wallet, of_grant, amount, taken, shortfall)
    SELECT * FROM unnest($1::TEXT[], $2::TEXT[], $3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $7::BIGINT[])
    ON CONFLICT (id) DO UPDATE SET taken = excluded.taken, shortfall = excluded.shortfall";

/// Loads what a step needs.
async fn load(db: &mut PgConnection, needed: &Needed<'_>) -> Work<Books> {
    let holds = if needed.hold.is_none() && needed.wallets.is_empty() && needed.limit == 0 {
        Vec::new()
    } else {
        rows::holds(db, needed.hold, &needed.wallets, needed.now, needed.limit).await?
    };
    let transfers = match needed.transfers.as_slice() {
        [] => Vec::new(),
        ids => rows::transfers(db, ids).await?,
    };
    let mut wanted: Vec<(String, String)> =
        needed.pools.iter().map(|(wallet, bucket)| ((*wallet).to_owned(), (*bucket).to_owned())).collect();
    for leg in holds.iter().filter(|hold| hold.state == State::Open).flat_map(|hold| &hold.legs) {
        wanted.extend(leg.shares.iter().map(|share| (leg.wallet.clone(), share.bucket.clone())));
    }
    wanted.extend(transfers.iter().map(|transfer| (transfer.wallet.clone(), String::new())));
    wanted.sort_unstable();
    wanted.dedup();
    Ok(Books::of_rows(rows::pools(db, &wanted).await?, holds, transfers))
}

/// Stores what a step changed: holds first, then their pools, as whoever settles locks them.
async fn store(db: &mut PgConnection, books: &Books, numbers: &Database, now: Timestamp) -> Work<()> {
    let Some(changes) = books.changes() else { return Ok(()) };
    let base = numbers.numbers(now.as_millis(), 2 * changes.entries.len() + changes.pools.len());
    store_holds(db, &changes.holds).await?;
    store_entries(db, base, changes.entries).await?;
    store_pools(db, base, changes.entries.len(), &changes.pools).await?;
    store_transfers(db, &changes.transfers).await
}

async fn store_entries(db: &mut PgConnection, base: i64, entries: &[EntryRow]) -> Work<()> {
    if entries.is_empty() {
        return Ok(());
    }
    let texts =
        |of: fn(&EntryRow) -> &str| -> Vec<String> { entries.iter().map(|entry| own(of(entry))).collect() };
    let figures = |of: fn(&EntryRow) -> u64| -> Work<Vec<i64>> {
        Ok(entries.iter().map(|entry| column(of(entry))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(ENTRIES)
        .bind(base)
        .bind(texts(|entry| &entry.wallet))
        .bind(entries.iter().map(|entry| entry.at).collect::<Vec<_>>())
        .bind(texts(|entry| &entry.bucket))
        .bind(figures(|entry| entry.cap)?)
        .bind(texts(|entry| entry.kind))
        .bind(figures(|entry| entry.amount)?)
        .bind(figures(|entry| entry.shortfall)?)
        .bind(texts(|entry| &entry.cause))
        .bind(texts(|entry| &entry.memo));
    store.execute(db).await?;
    Ok(())
}

async fn store_pools(db: &mut PgConnection, base: i64, entries: usize, pools: &[&PoolRow]) -> Work<()> {
    if pools.is_empty() {
        return Ok(());
    }
    // Those that are new are numbered as they were made, and all are locked in one order for everybody.
    let mut pools: Vec<(i64, &PoolRow)> = (1..).zip(pools.iter().copied()).collect();
    pools.sort_unstable_by_key(|(_, pool)| (&pool.wallet, &pool.bucket));
    let figures = |of: fn(&PoolRow) -> u64| -> Work<Vec<i64>> {
        Ok(pools.iter().map(|(_, pool)| column(of(pool))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(POOLS)
        .bind(base)
        .bind(i64::try_from(entries).unwrap_or(i64::MAX))
        .bind(pools.iter().map(|(_, pool)| own(&pool.wallet)).collect::<Vec<_>>())
        .bind(pools.iter().map(|(_, pool)| own(&pool.bucket)).collect::<Vec<_>>())
        .bind(figures(|pool| pool.cap)?)
        .bind(figures(|pool| pool.spent)?)
        .bind(figures(|pool| pool.held)?)
        .bind(figures(|pool| pool.granted)?)
        .bind(pools.iter().map(|(place, _)| *place).collect::<Vec<_>>());
    store.execute(db).await?;
    Ok(())
}

async fn store_holds(db: &mut PgConnection, holds: &[&HoldRow]) -> Work<()> {
    if holds.is_empty() {
        return Ok(());
    }
    let wallets = |hold: &HoldRow| -> Vec<String> { hold.legs.iter().map(|leg| own(&leg.wallet)).collect() };
    let mut holds = holds.to_vec();
    holds.sort_unstable_by_key(|hold| &hold.id);
    for hold in &holds {
        let list = |of: fn(&LegRow) -> u64| -> Work<Vec<i64>> {
            Ok(hold.legs.iter().map(|leg| column(of(leg))).collect::<transcript_core::Result<_>>()?)
        };
        let shares = || {
            (1_i64..)
                .zip(&hold.legs)
                .flat_map(|(place, leg)| leg.shares.iter().map(move |share| (place, share)))
        };
        let figures = |of: fn(&ShareRow) -> u64| -> Work<Vec<i64>> {
            Ok(shares().map(|(_, share)| column(of(share))).collect::<transcript_core::Result<_>>()?)
        };
        let store = sqlx::query(HOLD)
            .bind(own(&hold.id))
            .bind(hold.state.name())
            .bind(hold.expires_at)
            .bind(own(&hold.memo))
            .bind(wallets(hold))
            .bind(list(|leg| leg.amount)?)
            .bind(list(|leg| leg.spent)?)
            .bind(shares().map(|(place, _)| place).collect::<Vec<_>>())
            .bind(shares().map(|(_, share)| own(&share.bucket)).collect::<Vec<_>>())
            .bind(figures(|share| share.cap)?)
            .bind(figures(|share| share.amount)?);
        store.execute(&mut *db).await?;
    }
    let ids: Vec<String> = holds.iter().map(|hold| own(&hold.id)).collect();
    sqlx::query(CLOSE).bind(ids).execute(&mut *db).await?;
    for hold in holds.iter().filter(|hold| hold.state == State::Open) {
        let open = sqlx::query(OPEN).bind(own(&hold.id)).bind(wallets(hold)).bind(hold.expires_at);
        open.execute(&mut *db).await?;
    }
    Ok(())
}

async fn store_transfers(db: &mut PgConnection, transfers: &[&TransferRow]) -> Work<()> {
    if transfers.is_empty() {
        return Ok(());
    }
    let figures = |of: fn(&TransferRow) -> u64| -> Work<Vec<i64>> {
        Ok(transfers.iter().map(|transfer| column(of(transfer))).collect::<transcript_core::Result<_>>()?)
    };
    let store = sqlx::query(TRANSFERS)
        .bind(transfers.iter().map(|transfer| own(&transfer.id)).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| transfer.kind.name().to_owned()).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| own(&transfer.wallet)).collect::<Vec<_>>())
        .bind(transfers.iter().map(|transfer| own(&transfer.of_grant)).collect::<Vec<_>>())
        .bind(figures(|transfer| transfer.amount)?)
        .bind(figures(|transfer| transfer.taken)?)
        .bind(figures(|transfer| transfer.shortfall)?);
    store.execute(db).await?;
    Ok(())
}

/// A request to hold; `spend` settles it in full at once.
pub(super) struct Hold {
    pub(super) ask: HoldRequest,
    pub(super) spend: bool,
    pub(super) numbers: Database,
}

impl Change for Hold {
    type Outcome = HoldOutcome;

    async fn make(&self, db: &mut PgConnection) -> Work<HoldOutcome> {
        let mut books = load(db, &Needed::of_request(&self.ask)).await?;
        let outcome = if self.spend { books.spend(&self.ask)? } else { books.hold(&self.ask)? };
        // A refusal is stored too: the overdue holds of its wallets have expired.
        store(db, &books, &self.numbers, self.ask.now).await?;
        Ok(outcome)
    }
}

/// Purchased credits to add.
pub(super) struct Granting {
    pub(super) ask: Grant,
    pub(super) numbers: Database,
}

impl Change for Granting {
    type Outcome = GrantOutcome;

    async fn make(&self, db: &mut PgConnection) -> Work<GrantOutcome> {
        let needed = Needed {
            pools: vec![(self.ask.wallet.as_str(), "")],
            transfers: vec![self.ask.id.as_str()],
            ..Needed::default()
        };
        let mut books = load(db, &needed).await?;
        let outcome = books.grant(&self.ask)?;
        store(db, &books, &self.numbers, self.ask.now).await?;
        Ok(outcome)
    }
}
