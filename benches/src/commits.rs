//! Charges in the store alone, without HTTP: durable commits, each with its own outcome.
//!
//! The baselines are the disk's sync rate, and for one caller the same rows in a plain rusqlite transaction.

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
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore as _},
    directory::{Account, Directory as _, KeyOwner},
    ids::HoldId,
    ledger::{HoldOutcome, HoldRequest, Ledger as _, Leg, Pool, Terms},
    limits::LimitRequest,
    page::{PAGE_LIMIT, PageRequest},
    time::{Clock as _, Timestamp},
};
use verbatim::SystemClock;

use crate::{
    baseline_rusqlite::BaselineRusqlite,
    process::cpu_seconds,
    report::{Goal, line, median, ratio},
    v1_transcripts::{ACCOUNTS, CREDITS, ROUNDS, TIME, accounts, disk},
};

const CALLERS: [u64; 3] = [1, 8, 64];

/// The operation that takes a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitMode {
    /// A spend in the ledger.
    Spend,
    /// A charge: key, rate limit and spend.
    Charge,
}

/// An account that is charged.
#[derive(Clone, Debug)]
pub(crate) struct BenchPayer {
    digest: Vec<u8>,
    pub(crate) account: Account,
}

/// The bucket of all allowances here.
pub(crate) const BUCKET: &str = "plan/2026-11-20";
/// The memo of all charges.
pub(crate) const MEMO: &str = "transcript youtube/bench-00000";

impl BenchPayer {
    /// The charge that the server makes for an archived transcript.
    fn request(&self, now: Timestamp, number: u64) -> ChargeRequest {
        let plan = Pool::Allowance { bucket: BUCKET.to_owned(), limit: CREDITS };
        let terms = Terms { pools: vec![plan, Pool::Purchased], resets_at: None };
        ChargeRequest {
            key_digest: self.digest.clone(),
            account: self.account.id.clone(),
            version: self.account.version,
            limit_request: LimitRequest {
                bucket: format!("api/{}", self.account.id),
                max: 100_000,
                window_ms: 60_000,
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

/// A hold id in the server's format, which begins with the time.
pub(crate) fn hold_id(now: Timestamp, number: u64) -> String {
    format!("transcript-{:012x}-{number:032x}-once", now.as_millis())
}

/// The payer of a charge. The order is scattered, and the same in each run.
pub(crate) fn payer(payers: &[BenchPayer], number: u64) -> &BenchPayer {
    &payers[(scatter(number) % payers.len() as u64) as usize]
}

fn scatter(number: u64) -> u64 {
    number
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15)
        .rotate_left(29)
        .wrapping_mul(0xBF58_476D_1CE4_E5B9)
}

/// Charges with this many callers, each one charge after the other; returns the charges a second.
async fn load(
    store: &Arc<SqliteStore>,
    payers: &Arc<[BenchPayer]>,
    mode: CommitMode,
    callers: u64,
    count: &Arc<AtomicU64>,
) -> Result<f64> {
    let (started, before, stop) = (Instant::now(), count.load(Relaxed), Arc::new(AtomicBool::new(false)));
    let tasks: Vec<_> = (0..callers)
        .map(|_| {
            let (store, payers, count, stop) =
                (Arc::clone(store), Arc::clone(payers), Arc::clone(count), Arc::clone(&stop));
            tokio::spawn(async move {
                let clock = SystemClock::default();
                while !stop.load(Relaxed) {
                    let number = count.fetch_add(1, Relaxed);
                    let request = payer(&payers, number).request(clock.now(), number);
                    let spent = match mode {
                        CommitMode::Spend => store.spend(request.spend).await?,
                        CommitMode::Charge => match store.charge(request).await? {
                            ChargeOutcome::Accepted { spent, .. } => spent,
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
    Ok((count.load(Relaxed) - before) as f64 / started.elapsed().as_secs_f64())
}

/// The amounts spent, by the pools and by their entries.
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

/// Figures of one mode and number of callers, one value per round.
#[derive(Debug, Default)]
struct CommitFigures {
    rates: Vec<f64>,
    to_disk: Vec<f64>,
    cpu: Vec<f64>,
}

/// Runs all measurements of charges in the store.
pub(crate) async fn run() -> Result<()> {
    let folder = TempDir::new()?;
    let keys = accounts(folder.path(), ACCOUNTS).await.context("the accounts")?;
    let file = folder.path().join("verbatim.db");
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(&file)).await?);
    let mut payers = Vec::new();
    for key in &keys {
        let digest = key.digest();
        let Some(KeyOwner::Account { account, .. }) = store.key_owner(&digest).await? else {
            anyhow::bail!("a key belongs to no account");
        };
        payers.push(BenchPayer { digest, account });
    }
    let payers: Arc<[BenchPayer]> = payers.into();
    let count = Arc::new(AtomicU64::new(0));
    load(&store, &payers, CommitMode::Charge, 64, &count).await?;
    store.close().await;

    // A copy of the file: a write to a shared file would invalidate the page caches of the other connections.
    let plain_file = folder.path().join("plain.db");
    std::fs::copy(&file, &plain_file)?;
    let store = Arc::new(SqliteStore::open(SqliteOptions::new(&file)).await?);
    let (mut plain, plain_count) = (BaselineRusqlite::open(&plain_file)?, AtomicU64::new(0));
    load(&store, &payers, CommitMode::Spend, 1, &count).await?;
    plain.load(&payers, &plain_count)?;
    let (mut of_disk, mut of_plain, mut to_plain) = (Vec::new(), Vec::new(), Vec::new());
    let modes = [(CommitMode::Spend, "spent"), (CommitMode::Charge, "charged, with key and limit")];
    let mut figures: [[CommitFigures; CALLERS.len()]; 2] = Default::default();
    for _ in 0..ROUNDS {
        let disk = disk(folder.path())?;
        of_disk.push(disk);
        let plain_rate = plain.load(&payers, &plain_count)?;
        of_plain.push(plain_rate);
        for (figures, (mode, _)) in figures.iter_mut().zip(modes) {
            for (figures, callers) in figures.iter_mut().zip(CALLERS) {
                let (before, cpu_before) = (count.load(Relaxed), cpu_seconds(std::process::id())?);
                let rate = load(&store, &payers, mode, callers, &count).await?;
                let used = cpu_seconds(std::process::id())? - cpu_before;
                figures.cpu.push(used / (count.load(Relaxed) - before) as f64 * 1e6);
                figures.rates.push(rate);
                figures.to_disk.push(rate / disk);
                if (mode, callers) == (CommitMode::Spend, 1) {
                    to_plain.push(rate / plain_rate);
                }
            }
        }
    }
    line("the disk: 4 KiB kept (fdatasync)", median(of_disk), "a second");
    line("a plain transaction of rusqlite", median(of_plain), "a second");
    for (figures, (mode, name)) in figures.into_iter().zip(modes) {
        for (figures, callers) in figures.into_iter().zip(CALLERS) {
            line(&format!("{name}, {callers} at once"), median(figures.rates), "a second");
            line(&format!("{name}, {callers} at once: CPU"), median(figures.cpu), "µs each");
            let goal =
                if (mode, callers) == (CommitMode::Spend, 64) { Goal::AtLeast(5.0) } else { Goal::None };
            ratio(&format!("{name}, {callers} at once: to the disk"), median(figures.to_disk), goal);
        }
    }
    ratio("spent, 1 at once: to the plain transaction", median(to_plain), Goal::None);
    drop(plain);
    let (pools, entries) = spent(&store).await?;
    store.close().await;
    let charged = count.load(Relaxed);
    ensure!(
        (pools, entries) == (charged, charged),
        "{charged} charges, but {pools} spent in pools and {entries} in entries"
    );
    Ok(())
}
