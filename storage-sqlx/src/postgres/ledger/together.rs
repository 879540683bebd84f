//! Spends that are committed together, in one statement, with an outcome for each.
//!
//! A commit waits for the server's disk, and that is most of what a spend costs where many ask at once. So as long as
//! few are under way, each is made by itself ([`super::allowance`]); whoever comes when there are more waits in a
//! line, and those who have gathered in it are served by one statement. Those of a wallet are never served side by side there.
//! What the statement cannot answer (an allowance that is used up, a hold of the wallet that is overdue) is left to its
//! own way, and nobody pays for another's fault. What hardly ever is the case (an id that is known, a pool of the wallet
//! with a newer entry) is not looked for: it ends the statement with an error, and all of them go their own way.

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
    ledger::{Balance, HoldOutcome, HoldRequest, Pool, PoolBalance},
};

use super::{rows, take};
use crate::{
    books::Plain,
    codec::column,
    error::{Work, corrupt},
    postgres::{
        database::{Change, Database},
        fault::{Verdict, verdict},
        line::{Line, Member, Serve},
        text::{own, read},
    },
};

/// `$1` is a number that nothing has been given yet, `$2` how many spends there are. First the pools, one of each
/// wallet, in one order for everybody; then the spends, each with its place among those of its wallet, from 1: their
/// entries have the numbers up to the one that the pool has afterwards.
///
/// Rows are looked up for each of them (`OFFSET 0` keeps it that way): a plan that was made before the tables were filled
/// must not join them whole.
const TOGETHER: &str = "WITH asks AS MATERIALIZED (
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

/// Where spends are asked for, and gather.
#[derive(Debug)]
pub(in crate::postgres) struct Spenders {
    database: Database,
    /// How many may be under way before any waits for others.
    alone: usize,
    /// How many are under way, in the line and by themselves.
    under_way: AtomicUsize,
    line: Line<Spender>,
}

/// A spend that is under way, until it is dropped.
struct UnderWay<'a>(&'a AtomicUsize);

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Who serves spends.
enum Spender {}

impl Spenders {
    /// Nobody waits yet; so many may be under way each by itself.
    pub(in crate::postgres) fn new(database: &Database, alone: usize) -> Self {
        let line = Line::new(database);
        Self { database: database.clone(), alone, under_way: AtomicUsize::new(0), line }
    }

    /// Spends, together with others where many ask.
    pub(super) async fn spend(&self, ask: HoldRequest) -> Result<HoldOutcome> {
        let Some(part) = Plain::of(&ask) else { return take(&self.database, ask, true).await };
        let wallet = part.leg.wallet.clone();
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        let _place = UnderWay(&self.under_way);
        if others < self.alone && !self.line.is_busy(wallet.as_str()) {
            return take(&self.database, ask, true).await;
        }
        self.line.ask(wallet.as_str(), ask).await
    }
}

impl Serve for Spender {
    type Ask = HoldRequest;
    type Outcome = HoldOutcome;

    async fn serve(database: &Database, members: Vec<Member<Self>>) {
        let (asks, answers): (Vec<_>, Vec<_>) = members.into_iter().unzip();
        let asks = Arc::new(asks);
        let together = Together { asks: Arc::clone(&asks), numbers: database.clone() };
        let served = match asks.len() {
            1 => Ok(vec![None]),
            _ => database.attempt_here(together).await,
        };
        let outcomes = match served {
            Ok(outcomes) => outcomes,
            // Each by itself would not reach the database either.
            Err(fault) if verdict(&fault) == Verdict::Lost => {
                let error = database.error(fault);
                return answers.into_iter().for_each(|answer| drop(answer.send(Err(error.clone()))));
            }
            // One of them may be to blame, also where a row was waited for. Whether they were stored or not, their ids
            // tell.
            Err(_) => vec![None; asks.len()],
        };
        for ((ask, answer), outcome) in asks.iter().zip(answers).zip(outcomes) {
            match outcome {
                // Nobody may be waiting any more; it is spent all the same.
                Some(outcome) => drop(answer.send(Ok(outcome))),
                None if answer.is_closed() => {}
                // The next ones do not wait for whoever goes their own way.
                None => {
                    let (ask, own) = (ask.clone(), database.clone());
                    database.runtime().spawn(async move {
                        answer.send(take(&own, ask, true).await).ok();
                    });
                }
            }
        }
    }
}

/// The spends of one wallet that share its row.
struct Wallet<'a> {
    name: &'a str,
    bucket: &'a str,
    cap: u64,
    amount: u64,
    now: i64,
    /// In their order, each with its place among all.
    members: Vec<(usize, Plain<'a>)>,
}

/// The spends of each wallet, in the order of the wallets. Left out is who repeats the id of another, or means another
/// allowance than the first one of its wallet.
fn wallets(asks: &[HoldRequest]) -> Vec<Wallet<'_>> {
    let mut wallets: HashMap<&str, Wallet<'_>> = HashMap::with_capacity(asks.len());
    let mut ids = HashSet::with_capacity(asks.len());
    for (place, ask) in asks.iter().enumerate() {
        let Some(part) = Plain::of(ask) else { continue };
        let (name, now) = (part.leg.wallet.as_str(), ask.now.as_millis());
        let Plain { bucket, cap, .. } = part;
        let known = wallets.entry(name).or_insert_with(|| {
            let members = Vec::with_capacity(1);
            Wallet { name, bucket, cap, amount: 0, now, members }
        });
        let together = known.amount.saturating_add(part.leg.amount);
        if (known.bucket, known.cap) == (bucket, cap) && together <= cap && ids.insert(ask.id.as_str()) {
            known.amount = together;
            known.now = known.now.max(now);
            known.members.push((place, part));
        }
    }
    let mut wallets: Vec<_> = wallets.into_values().filter(|wallet| !wallet.members.is_empty()).collect();
    wallets.sort_unstable_by_key(|wallet| wallet.name);
    wallets
}

/// The change that spends together are.
struct Together {
    asks: Arc<Vec<HoldRequest>>,
    numbers: Database,
}

impl Change for Together {
    /// None for those that must go their own way.
    type Outcome = Vec<Option<HoldOutcome>>;
    const IS_STEP: bool = true;
    const GIVES_WAY: bool = true;
    /// A row that somebody else has locked keeps all of them waiting: each by itself then, with the time that is left.
    const PATIENCE_PARTS: u32 = 4;

    async fn make(&self, db: &mut PgConnection) -> Work<Vec<Option<HoldOutcome>>> {
        let Self { asks, numbers } = self;
        let wallets = wallets(asks);
        let parts: Vec<&Plain<'_>> =
            wallets.iter().flat_map(|wallet| &wallet.members).map(|(_, part)| part).collect();
        let places = wallets.iter().flat_map(|wallet| (1..).take(wallet.members.len()));
        let now = wallets.iter().map(|wallet| wallet.now).max().unwrap_or_default();
        let caps = wallets.iter().map(|wallet| column(wallet.cap));
        let sums = wallets.iter().map(|wallet| column(wallet.amount));
        let amounts = parts.iter().map(|part| column(part.leg.amount));
        let statement = sqlx::query(TOGETHER)
            .bind(numbers.numbers(now, asks.len() * 2))
            .bind(i64::try_from(parts.len()).unwrap_or(i64::MAX))
            .bind(wallets.iter().map(|wallet| own(wallet.name)).collect::<Vec<_>>())
            .bind(wallets.iter().map(|wallet| own(wallet.bucket)).collect::<Vec<_>>())
            .bind(caps.collect::<Result<Vec<_>>>()?)
            .bind(sums.collect::<Result<Vec<_>>>()?)
            .bind(parts.iter().map(|part| own(part.ask.id.as_str())).collect::<Vec<_>>())
            .bind(parts.iter().map(|part| own(part.leg.wallet.as_str())).collect::<Vec<_>>())
            .bind(places.collect::<Vec<i64>>())
            .bind(amounts.collect::<Result<Vec<_>>>()?)
            .bind(parts.iter().map(|part| part.ask.now.as_millis()).collect::<Vec<_>>())
            .bind(parts.iter().map(|part| part.ask.expires_at.as_millis()).collect::<Vec<_>>())
            .bind(parts.iter().map(|part| own(&part.ask.memo)).collect::<Vec<_>>())
            .bind(wallets.iter().map(|wallet| wallet.now).collect::<Vec<_>>());
        let mut outcomes = vec![None; asks.len()];
        for row in statement.fetch_all(db).await? {
            let name = read(&row, 0)?;
            let found = wallets.binary_search_by_key(&name.as_str(), |wallet| wallet.name);
            let wallet = found.ok().and_then(|place| wallets.get(place));
            let wallet = wallet.ok_or_else(|| corrupt("a wallet was not asked for and was spent of"))?;
            for (place, outcome) in wallet.outcomes(&row)? {
                if let Some(own) = outcomes.get_mut(place) {
                    *own = Some(outcome);
                }
            }
        }
        Ok(outcomes)
    }
}

impl Wallet<'_> {
    /// What each of its members is answered, with its place among all.
    fn outcomes(&self, row: &PgRow) -> Work<Vec<(usize, HoldOutcome)>> {
        let purchased = match row.try_get::<Option<i64>, _>(4)? {
            Some(_) => rows::balance(row, 4, Pool::Purchased)?,
            None => PoolBalance::fresh(Pool::Purchased),
        };
        let allowance = Pool::Allowance { bucket: self.bucket.to_owned(), limit: self.cap };
        let mut allowance = rows::balance(row, 1, allowance)?;
        // What each has left is what the pool was before all of them, and its own and those before it.
        allowance.spent = allowance.spent.saturating_sub(self.amount);
        let outcome = |(place, part): &(usize, Plain<'_>)| {
            allowance.spent += part.leg.amount;
            let mut pools = vec![allowance.clone()];
            pools.extend((part.leg.terms.pools.len() > 1).then(|| purchased.clone()));
            let balance = Balance { wallet: part.leg.wallet.clone(), pools };
            (*place, HoldOutcome::Held { balances: vec![balance] })
        };
        Ok(self.members.iter().map(outcome).collect())
    }
}
