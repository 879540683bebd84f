//! Charges in the store alone, without HTTP: durable commits, each with an outcome of its own, beside what the disk can
//! keep; and with one caller beside the same rows in a plain transaction of sqlx.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
    time::Instant,
};

use anyhow::{Context as _, Result, ensure};
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    accounts::{ChargeOutcome, ChargeRequest, Charges as _},
    directory::{Account, Directory as _, Owner},
    ids::HoldId,
    ledger::{HoldOutcome, HoldRequest, Ledger as _, Leg, Pool, Terms},
    limits::Take,
    page::{PAGE_LIMIT, PageRequest},
    time::{Clock as _, Timestamp},
};
use verbatim::SystemClock;

use crate::{
    charged::{CREDITS, ROUNDS, TIME, accounts, disk},
    plain::Plain,
    process::cpu_seconds,
    report::{Goal, line, median, ratio},
};

const CALLERS: [u64; 3] = [1, 8, 64];

/// How a credit is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the ledger alone.
    Spend,
    /// With key and rate limit.
    Charge,
}

/// Who is charged.
#[derive(Clone, Debug)]
pub(crate) struct Payer {
    digest: Vec<u8>,
    pub(crate) account: Account,
}

/// The bucket that all allowances have here.
pub(crate) const BUCKET: &str = "plan/2026-11-20";
/// What all charges are for.
pub(crate) const MEMO: &str = "transcript youtube/bench-00000";

impl Payer {
    /// A request as the server makes it for an archived transcript.
    fn ask(&self, now: Timestamp, number: u64) -> ChargeRequest {
        let plan = Pool::Allowance { bucket: BUCKET.to_owned(), limit: CREDITS };
        let terms = Terms { pools: vec![plan, Pool::Purchased], resets_at: None };
        ChargeRequest {
            key_digest: self.digest.clone(),
            account: self.account.id.clone(),
            version: self.account.version,
            take: Take {
                bucket: format!("api/{}", self.account.id),
                count: 100_000,
                per_ms: 60_000,
                cost: 1,
            },
            spend: HoldRequest {
                id: HoldId::new(hold_id(now, number)),
                legs: vec![Leg { wallet: self.account.wallet.clone(), terms, amount: 1 }],
                now,
                expires_at: now.plus(std::time::Duration::from_secs(60)),
                memo: MEMO.to_owned(),
            },
        }
    }
}

/// An id as the server makes them: it begins with the moment.
pub(crate) fn hold_id(now: Timestamp, number: u64) -> String {
    format!("transcript-{:012x}-{number:032x}-once", now.as_millis())
}

/// Whose turn it is: they come in an order that jumps about, the same in each run.
pub(crate) fn payer(payers: &[Payer], number: u64) -> &Payer {
    &payers[(scattered(number) % payers.len() as u64) as usize]
}

fn scattered(number: u64) -> u64 {
    number
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Has so many callers charge, each the next once its last is on the disk; returns how many were charged a second.
async fn load(
    store: &Arc<SqliteStore>,
    payers: &Arc<[Payer]>,
    way: Way,
    callers: u64,
    count: &Arc<AtomicU64>,
) -> Result<f64> {
    let (began, before, stop) = (Instant::now(), count.load(Relaxed), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (store, payers, count, stop) =
                (Arc::clone(store), Arc::clone(payers), Arc::clone(count), Arc::clone(&stop));
            tokio::spawn(async move {
                let clock = SystemClock::default();
                while !stop.load(Relaxed) {
                    let number = count.fetch_add(1, Relaxed);
                    let ask = payer(&payers, number).ask(clock.now(), number);
                    let spent = match way {
                        Way::Spend => store.spend(ask.spend).await?,
                        Way::Charge => match store.charge(ask).await? {
                            ChargeOutcome::Counted { spent, .. } => spent,
                            other => anyhow::bail!("{other:?}"),
                        },
                    };
                    ensure!(matches!(spent, HoldOutcome::Held { .. }), "{spent:?}");
                }
                Ok(())
            })
        })
        .collect();
    tokio::time::sleep(TIME).await;
    stop.store(true, Relaxed);
    for task in tasks {
        task.await??;
    }
    Ok((count.load(Relaxed) - before) as f64 / began.elapsed().as_secs_f64())
}

/// What all pools have spent, and what their entries say was spent.
async fn spent(store: &SqliteStore) -> Result<(u64, u64)> {
    let (mut of_pools, mut of_entries) = (0, 0);
    let mut page = PageRequest::first();
    loop {
        let wallets = store.wallets(page).await?;
        for balance in &wallets.items {
            of_pools += balance.pools.iter().map(|pool| pool.spent).sum::<u64>();
            let mut page = PageRequest::first();
            loop {
                let entries = store.entries(&balance.wallet, page).await?;
                let spent = entries.items.iter().filter(|entry| entry.kind.is_spent());
                of_entries += spent.map(|entry| entry.amount).sum::<u64>();
                match entries.next {
                    Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
                    None => break,
                }
            }
        }
        match wallets.next {
            Some(next) => page = PageRequest { after: Some(next), limit: PAGE_LIMIT },
            None => return Ok((of_pools, of_entries)),
        }
    }
}

/// What one way costs, for each number of callers, in each round.
#[derive(Debug, Default)]
struct Figures {
    rates: Vec<f64>,
    to_disk: Vec<f64>,
    cpu: Vec<f64>,
}

/// All measurements of charges in the store.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let keys = accounts(folder.path()).await.context("the accounts")?;
    let file = folder.path().join("verbatim.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(&file)).await?);
    let mut payers = Vec::new();
    for key in &keys {
        let digest = key.digest();
        let Some(Owner::Account { account, .. }) = store.owner(&digest).await? else {
            anyhow::bail!("a key opens no account");
        };
        payers.push(Payer { digest, account });
    }
    let payers: Arc<[Payer]> = payers.into();
    let count = Arc::new(AtomicU64::new(0));
    load(&store, &payers, Way::Charge, 64, &count).await?;
    store.close().await;

    // A file of its own, with the same in it: who writes to a file makes all others forget the pages that they have of it.
    let plain_file = folder.path().join("plain.db");
    std::fs::copy(&file, &plain_file)?;
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(&file)).await?);
    let (mut plain, plain_count) = (Plain::open(&plain_file).await?, AtomicU64::new(0));
    load(&store, &payers, Way::Spend, 1, &count).await?;
    plain.load(&payers, &plain_count).await?;
    let (mut of_disk, mut of_plain, mut to_plain) = (Vec::new(), Vec::new(), Vec::new());
    let ways = [(Way::Spend, "spent"), (Way::Charge, "charged, with key and limit")];
    let mut figures: [[Figures; CALLERS.len()]; 2] = Default::default();
    for _ in 0..ROUNDS {
        let disk = disk(folder.path())?;
        of_disk.push(disk);
        let one_after_the_other = plain.load(&payers, &plain_count).await?;
        of_plain.push(one_after_the_other);
        for (figures, (way, _)) in figures.iter_mut().zip(ways) {
            for (figures, callers) in figures.iter_mut().zip(CALLERS) {
                let (before, cpu_before) = (count.load(Relaxed), cpu_seconds(std::process::id())?);
                let rate = load(&store, &payers, way, callers, &count).await?;
                let used = cpu_seconds(std::process::id())? - cpu_before;
                figures.cpu.push(used / (count.load(Relaxed) - before) as f64 * 1e6);
                figures.rates.push(rate);
                figures.to_disk.push(rate / disk);
                if (way, callers) == (Way::Spend, 1) {
                    to_plain.push(rate / one_after_the_other);
                }
            }
        }
    }
    line("the disk: 4 KiB kept (fdatasync)", median(of_disk), "a second");
    line("a plain transaction of sqlx", median(of_plain), "a second");
    for (figures, (way, name)) in figures.into_iter().zip(ways) {
        for (figures, callers) in figures.into_iter().zip(CALLERS) {
            line(&format!("{name}, {callers} at once"), median(figures.rates), "a second");
            line(&format!("{name}, {callers} at once: CPU"), median(figures.cpu), "µs each");
            let goal = if (way, callers) == (Way::Spend, 64) { Goal::AtLeast(5.0) } else { Goal::None };
            ratio(&format!("{name}, {callers} at once: to the disk"), median(figures.to_disk), goal);
        }
    }
    ratio("spent, 1 at once: to the plain transaction", median(to_plain), Goal::AtLeast(1.0));
    plain.close().await?;
    let (pools, entries) = spent(&store).await?;
    store.close().await;
    let charged = count.load(Relaxed);
    ensure!(
        (pools, entries) == (charged, charged),
        "{charged} were charged: {pools} of pools, {entries} entries"
    );
    Ok(())
}
