//! The fast path: plain spends in one statement, alone or as a batch.
//!
//! A plain spend takes from one wallet, whose first pool is an allowance with room: then the row of that pool is
//! sufficient, and the update checks the room at the same time. All others take the general path ([`super::general`]):
//! a used-up allowance, an overdue hold of the wallet. Rare cases are not checked first: they end the statement with an
//! error, and each of its spends runs alone. An existing id violates a unique constraint; a pool of the
//! wallet with a newer entry divides by zero.
//!
//! A commit waits for the server's disk, which is most of the cost of a spend under load. So a few concurrent spends
//! run at once, each in its own statement; above that number they wait in a batch queue, and the waiting spends run as
//! one statement, with an outcome for each. The queue never runs those of one wallet in parallel.

use std::{
    collections::{HashMap, HashSet},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use sqlx::{PgConnection, Row, postgres::PgRow};
use transcript_core::{
    Result,
    ledger::{Balance, HoldOutcome, HoldRequest, Leg, Pool, PoolBalance, rules::HoldStep},
};

use super::{
    general::{self, UncertainTries},
    rows,
};
use crate::{
    codec::column,
    error::{DbResult, corrupt},
    postgres::{
        batch_queue::{BatchHandler, BatchQueue, QueueItem},
        database::{PgDatabase, PgTx},
        sqlstate::{Retryability, is_contradicted, is_refused, retryability},
        text::{encode, read},
    },
};

/// `$1` is an unused number, `$2` the number of spends.
///
/// First the pools, one of each wallet, in one global order; then the spends, each with its index within its wallet,
/// from 1: their entries have the numbers up to the one that the pool has afterwards.
///
/// `OFFSET 0` forces a lookup by key for each row: a plan made while the tables were empty must not join whole tables.
const SPEND: &str = "WITH asks AS MATERIALIZED (
        SELECT * FROM unnest($7::TEXT[], $8::TEXT[], $9::BIGINT[], $10::BIGINT[], $11::BIGINT[], $12::BIGINT[],
            $13::TEXT[]) a (id, wallet, place, amount, now, expires_at, memo)
    ), pool AS (
        INSERT INTO ledger_pools (wallet, bucket, number, version, last_entry, cap, spent, held, granted)
        SELECT w.wallet, w.bucket, $1 + w.place, 1, $1 + $2, w.cap, w.amount, 0, 0
        FROM unnest($3::TEXT[], $4::TEXT[], $5::BIGINT[], $6::BIGINT[], $14::BIGINT[])
            WITH ORDINALITY w (wallet, bucket, cap, amount, now, place)
        WHERE NOT EXISTS (
                SELECT 1 FROM ledger_open o WHERE o.wallet = w.wallet AND o.expires_at <= w.now OFFSET 0
            )
        ORDER BY w.place
        ON CONFLICT (wallet, bucket) DO UPDATE SET version = ledger_pools.version + 1,
            last_entry = greatest(excluded.last_entry, ledger_pools.last_entry + $2), cap = excluded.cap,
            spent = ledger_pools.spent + excluded.spent
        WHERE ledger_pools.spent + ledger_pools.held + excluded.spent <= excluded.cap
        RETURNING wallet, bucket, last_entry, cap, spent, held, granted
    ), hold AS (
        INSERT INTO ledger_holds (id, state, expires_at, memo, wallets, amounts, spent, share_legs,
            share_buckets, share_caps, share_amounts)
        SELECT a.id, 'closed', a.expires_at, a.memo, ARRAY[a.wallet], ARRAY[a.amount], ARRAY[a.amount], '{1}',
            ARRAY[p.bucket], ARRAY[p.cap], ARRAY[a.amount]
        FROM asks a JOIN pool p ON p.wallet = a.wallet
    ), entry AS (
        INSERT INTO ledger_entries (wallet, seq, at, bucket, cap, kind, amount, shortfall, cause, memo)
        SELECT a.wallet, p.last_entry - $2 + a.place, a.now, p.bucket, p.cap, 'charged', a.amount, 0, a.id, a.memo
        FROM asks a JOIN pool p ON p.wallet = a.wallet
    )
    SELECT p.wallet, p.spent, p.held, p.granted, q.spent, q.held, q.granted,
        1 / (CASE WHEN q.last_entry > p.last_entry - $2 THEN 0 ELSE 1 END)
    FROM pool p LEFT JOIN LATERAL (
        SELECT spent, held, granted, last_entry FROM ledger_pools
        WHERE wallet = p.wallet AND bucket <> p.bucket AND (bucket = '' OR last_entry > p.last_entry - $2) OFFSET 0
    ) q ON TRUE";

/// A spend that the fast path supports.
struct PlainSpend<'a> {
    request: &'a HoldRequest,
    leg: &'a Leg,
    /// The bucket of the allowance.
    bucket: &'a str,
    /// The allowance's limit. The amount does not exceed it.
    cap: u64,
}

impl<'a> PlainSpend<'a> {
    /// `None` if the request has several legs, other pools, or too large an amount.
    fn for_request(request: &'a HoldRequest) -> Option<Self> {
        let [leg] = request.legs.as_slice() else { return None };
        match leg.terms.pools.as_slice() {
            [Pool::Allowance { bucket, limit }] | [Pool::Allowance { bucket, limit }, Pool::Purchased]
                if (1..=*limit).contains(&leg.amount) =>
            {
                Some(Self { request, leg, bucket, cap: *limit })
            }
            _ => None,
        }
    }
}

/// Runs spends alone or in batches.
#[derive(Debug)]
pub(in crate::postgres) struct SpendBatcher {
    database: PgDatabase,
    /// Number of concurrent spends above which new ones wait for a batch.
    batch_threshold: usize,
    /// Number of running spends, queued or alone.
    in_flight: AtomicUsize,
    queue: BatchQueue<SpendHandler>,
}

/// Counts a running spend until it is dropped.
struct InFlightGuard<'a>(&'a AtomicUsize);

impl Drop for InFlightGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs batches of spends.
enum SpendHandler {}

impl SpendBatcher {
    /// Creates a batcher that runs up to this many concurrent spends alone.
    pub(in crate::postgres) fn new(database: &PgDatabase, batch_threshold: usize) -> Self {
        let queue = BatchQueue::new(database);
        Self { database: database.clone(), batch_threshold, in_flight: AtomicUsize::new(0), queue }
    }

    /// Spends, in a batch if many spends are running.
    pub(super) async fn spend(&self, request: HoldRequest) -> Result<HoldOutcome> {
        let Some(spend) = PlainSpend::for_request(&request) else {
            return general_spend(&self.database, request, &Arc::default()).await;
        };
        let wallet = spend.leg.wallet.clone();
        let others = self.in_flight.fetch_add(1, Ordering::Relaxed);
        let _guard = InFlightGuard(&self.in_flight);
        if others < self.batch_threshold && !self.queue.is_busy(wallet.as_str()) {
            return spend_alone(&self.database, request, &Arc::default()).await;
        }
        self.queue.submit(wallet.as_str(), request).await
    }
}

/// Spends in one statement, else on the general path.
async fn spend_alone(
    database: &PgDatabase,
    request: HoldRequest,
    tries: &Arc<UncertainTries>,
) -> Result<HoldOutcome> {
    let requests = Arc::new(vec![request.clone()]);
    let alone = QuickTx::<1> { requests, numbers: database.clone(), tries: Arc::clone(tries) };
    match database.attempt(alone).await {
        Ok(outcomes) => {
            if let Some(outcome) = outcomes.into_iter().flatten().next() {
                return Ok(outcome);
            }
            tries.take_back();
        }
        Err(fault) if is_contradicted(&fault) => {}
        Err(fault) => return Err(tries.error(database, fault)),
    }
    general_spend(database, request, tries).await
}

async fn general_spend(
    database: &PgDatabase,
    request: HoldRequest,
    tries: &Arc<UncertainTries>,
) -> Result<HoldOutcome> {
    general::run_after(database, HoldStep { request, spend: true }, tries).await
}

impl BatchHandler for SpendHandler {
    type Item = HoldRequest;
    type Outcome = HoldOutcome;

    async fn serve(database: &PgDatabase, members: Vec<QueueItem<Self>>) {
        let (requests, replies): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let requests = Arc::new(requests);
        // A locked row blocks the whole batch, so time must remain for the general path.
        let tries = Arc::<UncertainTries>::default();
        let (numbers, batch_tries) = (database.clone(), Arc::clone(&tries));
        let batch = QuickTx::<4> { requests: Arc::clone(&requests), numbers, tries: batch_tries };
        let served = database.run_inline(batch).await;
        let has_failed = served.is_err();
        let outcomes = match served {
            Ok(outcomes) => {
                // Spends without an outcome are not stored.
                tries.take_back();
                outcomes
            }
            // Other statements would not reach the database either, or fail on its full disk.
            Err(fault) if retryability(&fault) == Retryability::Reconnect || is_refused(&fault) => {
                let error = tries.error(database, fault);
                return replies.into_iter().for_each(|reply| drop(reply.send(Err(error.clone()))));
            }
            // One of them may have caused the error, also a timeout on a locked row. Their ids show whether they were
            // stored.
            Err(_) => vec![None; requests.len()],
        };
        for ((request, reply), outcome) in requests.iter().zip(replies).zip(outcomes) {
            match outcome {
                // The spend is stored even if the caller has disconnected.
                Some(outcome) => drop(reply.send(Ok(outcome))),
                None if reply.is_closed() => {}
                // The next batch does not wait for these.
                None => {
                    let (request, database, tries) = (request.clone(), database.clone(), tries.split());
                    let runtime = database.runtime().clone();
                    runtime.spawn(async move {
                        let outcome = match has_failed {
                            true => spend_alone(&database, request, &tries).await,
                            false => general_spend(&database, request, &tries).await,
                        };
                        reply.send(outcome).ok();
                    });
                }
            }
        }
    }
}

/// The spends of one wallet in a batch.
struct WalletSpends<'a> {
    name: &'a str,
    bucket: &'a str,
    cap: u64,
    amount: u64,
    now: i64,
    /// In order, each with its index in the batch.
    members: Vec<(usize, PlainSpend<'a>)>,
}

/// Groups the spends by wallet, in the order of the wallets.
///
/// Omits spends that repeat an id, or use another allowance than the first of their wallet.
fn wallets(requests: &[HoldRequest]) -> Vec<WalletSpends<'_>> {
    let mut wallets: HashMap<&str, WalletSpends<'_>> = HashMap::with_capacity(requests.len());
    let mut ids = HashSet::with_capacity(requests.len());
    for (index, request) in requests.iter().enumerate() {
        let Some(spend) = PlainSpend::for_request(request) else { continue };
        let (name, now) = (spend.leg.wallet.as_str(), request.now.as_millis());
        let PlainSpend { bucket, cap, .. } = spend;
        let group = wallets.entry(name).or_insert_with(|| {
            let members = Vec::with_capacity(1);
            WalletSpends { name, bucket, cap, amount: 0, now, members }
        });
        let total = group.amount.saturating_add(spend.leg.amount);
        if (group.bucket, group.cap) == (bucket, cap) && total <= cap && ids.insert(request.id.as_str()) {
            group.amount = total;
            group.now = group.now.max(now);
            group.members.push((index, spend));
        }
    }
    let mut wallets: Vec<_> = wallets.into_values().filter(|wallet| !wallet.members.is_empty()).collect();
    wallets.sort_unstable_by_key(|wallet| wallet.name);
    wallets
}

/// The write of plain spends, with its share of the timeout: one in `PARTS`.
struct QuickTx<const PARTS: u32> {
    requests: Arc<Vec<HoldRequest>>,
    numbers: PgDatabase,
    tries: Arc<UncertainTries>,
}

impl<const PARTS: u32> PgTx for QuickTx<PARTS> {
    /// `None` for spends that must take the general path.
    type Outcome = Vec<Option<HoldOutcome>>;
    const NEEDS_TRANSACTION: bool = false;
    const HAS_FALLBACK: bool = true;
    const TIMEOUT_DIVISOR: u32 = PARTS;

    async fn run(&self, db: &mut PgConnection) -> DbResult<Vec<Option<HoldOutcome>>> {
        let Self { requests, numbers, tries } = self;
        let wallets = wallets(requests);
        let spends: Vec<&PlainSpend<'_>> =
            wallets.iter().flat_map(|wallet| &wallet.members).map(|(_, spend)| spend).collect();
        let indexes = wallets.iter().flat_map(|wallet| (1..).take(wallet.members.len()));
        let now = wallets.iter().map(|wallet| wallet.now).max().unwrap_or_default();
        let caps = wallets.iter().map(|wallet| column(wallet.cap));
        let sums = wallets.iter().map(|wallet| column(wallet.amount));
        let amounts = spends.iter().map(|spend| column(spend.leg.amount));
        let statement = sqlx::query(SPEND)
            .bind(numbers.numbers(now, requests.len() * 2))
            .bind(i64::try_from(spends.len()).unwrap_or(i64::MAX))
            .bind(wallets.iter().map(|wallet| encode(wallet.name)).collect::<Vec<_>>())
            .bind(wallets.iter().map(|wallet| encode(wallet.bucket)).collect::<Vec<_>>())
            .bind(caps.collect::<Result<Vec<_>>>()?)
            .bind(sums.collect::<Result<Vec<_>>>()?)
            .bind(spends.iter().map(|spend| encode(spend.request.id.as_str())).collect::<Vec<_>>())
            .bind(spends.iter().map(|spend| encode(spend.leg.wallet.as_str())).collect::<Vec<_>>())
            .bind(indexes.collect::<Vec<i64>>())
            .bind(amounts.collect::<Result<Vec<_>>>()?)
            .bind(spends.iter().map(|spend| spend.request.now.as_millis()).collect::<Vec<_>>())
            .bind(spends.iter().map(|spend| spend.request.expires_at.as_millis()).collect::<Vec<_>>())
            .bind(spends.iter().map(|spend| encode(&spend.request.memo)).collect::<Vec<_>>())
            .bind(wallets.iter().map(|wallet| wallet.now).collect::<Vec<_>>());
        let mut outcomes = vec![None; requests.len()];
        for row in tries.track(async { DbResult::Ok(statement.fetch_all(db).await?) }).await? {
            let name = read(&row, 0)?;
            let found = wallets.binary_search_by_key(&name.as_str(), |wallet| wallet.name);
            let wallet = found.ok().and_then(|index| wallets.get(index));
            let wallet =
                wallet.ok_or_else(|| corrupt("the database returned a wallet outside of the batch"))?;
            for (index, outcome) in wallet.outcomes(&row)? {
                if let Some(slot) = outcomes.get_mut(index) {
                    *slot = Some(outcome);
                }
            }
        }
        Ok(outcomes)
    }
}

impl WalletSpends<'_> {
    /// The outcome of each spend, with its index in the batch.
    fn outcomes(&self, row: &PgRow) -> DbResult<Vec<(usize, HoldOutcome)>> {
        let purchased = match row.try_get::<Option<i64>, _>(4)? {
            Some(_) => rows::balance(row, 4, Pool::Purchased)?,
            None => PoolBalance::unused(Pool::Purchased),
        };
        let allowance = Pool::Allowance { bucket: self.bucket.to_owned(), limit: self.cap };
        let mut allowance = rows::balance(row, 1, allowance)?;
        // Each balance is the one before the batch, plus the spend and those before it.
        allowance.spent = allowance.spent.saturating_sub(self.amount);
        let outcome = |(index, spend): &(usize, PlainSpend<'_>)| {
            allowance.spent += spend.leg.amount;
            let mut pools = vec![allowance.clone()];
            pools.extend((spend.leg.terms.pools.len() > 1).then(|| purchased.clone()));
            let balance = Balance { wallet: spend.leg.wallet.clone(), pools };
            (*index, HoldOutcome::Held { balances: vec![balance] })
        };
        Ok(self.members.iter().map(outcome).collect())
    }
}
