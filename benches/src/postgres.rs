//! Charges on PostgreSQL, beside pgbench's transactions of the same number of clients on the same server, in turns.

use std::{
    process::Command,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use storage_sqlx::{PostgresOptions, PostgresStore};
use tokio::task::JoinSet;
use transcript_core::{
    Timestamp,
    accounts::{ChargeOutcome, ChargeRequest, Charges as _},
    directory::{Directory as _, NewKey, Redeem, Token},
    ids::{AccountId, HoldId, KeyId, WalletId},
    ledger::{HoldOutcome, HoldRequest, Ledger as _, Leg, Pool, Terms},
    limits::Take,
};
use verbatim_tests_postgres::{Cluster, Durability, programs};

use crate::report::{Goal, line, median, ratio};

/// How many rounds there are, each with pgbench and with every kind of charge once for each number of clients.
const ROUNDS: usize = 9;
/// How long each is measured in a round.
const TIME: Duration = Duration::from_secs(2);
const CLIENTS: [u64; 3] = [1, 8, 32];
/// As many accounts as pgbench has branches and tellers times a hundred: few charges meet at one.
const ACCOUNTS: u64 = 10_000;
const NOW: i64 = 1_795_132_800_000;

/// How its clients come to the server, and pgbench's too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Over TCP, as the servers of several machines do.
    Network,
    /// By its socket, as one on the same machine may.
    Socket,
}

impl Reach {
    fn name(self) -> &'static str {
        match self {
            Self::Network => "over TCP",
            Self::Socket => "by the socket",
        }
    }

    /// What PostgreSQL's own programs call it by.
    fn host(self, cluster: &Cluster) -> String {
        match self {
            Self::Network => "127.0.0.1".to_owned(),
            Self::Socket => cluster.socket_folder().display().to_string(),
        }
    }
}

/// How a credit is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// By the ledger alone: one statement each.
    Alone,
    /// By the ledger alone, together with whoever waits.
    Together,
    /// With key and rate limit, together with whoever waits.
    Charge,
}

fn now() -> Timestamp {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(NOW))
}

fn spend(account: u64, id: String) -> HoldRequest {
    let month = Pool::Allowance { bucket: "month/2026-11-20".to_owned(), limit: 100_000_000 };
    let terms = Terms { pools: vec![month, Pool::Purchased], resets_at: None };
    let wallet = WalletId::new(format!("wallet-{account}"));
    let now = now();
    HoldRequest {
        id: HoldId::new(id),
        legs: vec![Leg { wallet, terms, amount: 1 }],
        now,
        expires_at: now.plus(Duration::from_secs(60)),
        memo: "transcript".to_owned(),
    }
}

fn digest(account: u64) -> Vec<u8> {
    let mut digest = vec![0; 32];
    digest[..8].copy_from_slice(&account.to_be_bytes());
    digest
}

fn charge(account: u64, id: String) -> ChargeRequest {
    ChargeRequest {
        key_digest: digest(account),
        account: AccountId::new(format!("account-{account}")),
        version: 1,
        take: Take { bucket: format!("api/account-{account}"), count: 100_000, per_ms: 60_000, cost: 1 },
        spend: spend(account, id),
    }
}

/// Accounts, each of which was charged once: tables that are filled, as pgbench leaves its own.
async fn make_accounts(store: &Arc<PostgresStore>) -> Result<()> {
    let mut making = JoinSet::new();
    for part in 0..16 {
        let store = Arc::clone(store);
        making.spawn(async move {
            for account in (part..ACCOUNTS).step_by(16) {
                let mut token = digest(account);
                token[31] = 1;
                let email = format!("{account}@bench.example");
                let expires_at = now().plus(Duration::from_secs(600));
                store.put_token(Token { digest: token.clone(), email, expires_at, now: now() }).await?;
                let key = NewKey {
                    id: KeyId::new(format!("key-{account}")),
                    digest: digest(account),
                    hint: String::new(),
                    now: now(),
                };
                let (new_account, new_wallet) = (format!("account-{account}"), format!("wallet-{account}"));
                store
                    .redeem(Redeem {
                        digest: token,
                        confirmed: false,
                        new_account: AccountId::new(new_account),
                        new_wallet: WalletId::new(new_wallet),
                        key,
                    })
                    .await?;
                store.charge(charge(account, format!("first-{account}"))).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(made) = making.join_next().await {
        made??;
    }
    Ok(())
}

/// How many credits a second so many clients take.
async fn charges(store: &Arc<PostgresStore>, way: Way, clients: u64, run: u64) -> Result<f64> {
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut taking = JoinSet::new();
    let began = Instant::now();
    for client in 0..clients {
        let (store, stop, count) = (Arc::clone(store), Arc::clone(&stop), Arc::clone(&count));
        taking.spawn(async move {
            let mut choice = run.wrapping_mul(977).wrapping_add(client);
            for number in 0_u64.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                choice =
                    choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (account, id) = ((choice >> 33) % ACCOUNTS, format!("{run:08}-{client:03}-{number:08}"));
                let taken = match way {
                    Way::Alone | Way::Together => store.spend(spend(account, id)).await?,
                    Way::Charge => match store.charge(charge(account, id)).await? {
                        ChargeOutcome::Counted { spent, .. } => spent,
                        other => anyhow::bail!("{other:?}"),
                    },
                };
                ensure!(matches!(taken, HoldOutcome::Held { .. }), "{taken:?}");
                count.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    tokio::time::sleep(TIME).await;
    stop.store(true, Ordering::Relaxed);
    while let Some(taken) = taking.join_next().await {
        taken??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}

/// pgbench against a database.
fn pgbench(cluster: &Cluster, reach: Reach, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(programs()?.join("pgbench"));
    command.arg("-h").arg(reach.host(cluster)).arg("-p").arg(cluster.port().to_string());
    let output = command.args(["-U", "verbatim"]).args(arguments).arg("pgbench").output()?;
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs statements, as the database's owner, who owns its server too.
fn psql(url: &str, statements: &[&str]) -> Result<()> {
    let mut command = Command::new(programs()?.join("psql"));
    command.arg(url).arg("-q").args(["-o", "/dev/null"]);
    let status = command.args(statements.iter().flat_map(|statement| ["-c", statement])).status()?;
    ensure!(status.success(), "psql: {status}");
    Ok(())
}

/// The files of the log, as they are where a server has been at work: written once, and used again. A new one is filled
/// with zeros, in the middle of a commit.
const WORN_IN: [&str; 4] = [
    "ALTER SYSTEM SET min_wal_size = '1GB'",
    "SELECT pg_reload_conf()",
    "SELECT pg_logical_emit_message(false, 'worn in', repeat('-', 8000000)), pg_switch_wal()
        FROM generate_series(1, 64)",
    "CHECKPOINT",
];

/// Its transactions a second: `-N` changes an account and writes a line, as a charge does.
fn transactions(cluster: &Cluster, reach: Reach, clients: u64) -> Result<f64> {
    let (clients, time) = (clients.to_string(), TIME.as_secs().to_string());
    let threads = if clients == "1" { "1" } else { "2" };
    let told =
        pgbench(cluster, reach, &["-n", "-N", "-M", "simple", "-c", &clients, "-j", threads, "-T", &time])?;
    let line = told.lines().find_map(|line| line.strip_prefix("tps = ")).context("pgbench told no tps")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

/// All measurements on PostgreSQL.
pub(crate) async fn run() -> Result<()> {
    measure(Reach::Network).await?;
    measure(Reach::Socket).await
}

async fn measure(reach: Reach) -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    cluster.make_database("pgbench")?;
    pgbench(&cluster, reach, &["-q", "-i", "-s", "10"])?;
    let database = cluster.database()?;
    let url = format!("{}?host={}", database.url, reach.host(&cluster));
    let options = PostgresOptions { connections: 32, ..PostgresOptions::new(&url) };
    let alone = PostgresOptions { spends_alone: usize::MAX, ..options.clone() };
    let store = Arc::new(PostgresStore::open(options).await?);
    let alone = Arc::new(PostgresStore::open(alone).await?);
    make_accounts(&store).await?;
    psql(&url, &WORN_IN)?;
    psql(&url, &["VACUUM ANALYZE"])?;
    let (mut base, mut taken) = (vec![Vec::new(); 3], vec![<[Vec<f64>; 3]>::default(); 3]);
    let mut ratios = vec![<[Vec<f64>; 3]>::default(); 3];
    let mut run = 0;
    for _ in 0..ROUNDS {
        for (place, clients) in CLIENTS.into_iter().enumerate() {
            let transactions = transactions(&cluster, reach, clients)?;
            base[place].push(transactions);
            for (kind, way) in [Way::Alone, Way::Together, Way::Charge].into_iter().enumerate() {
                run += 1;
                let store = if way == Way::Alone { &alone } else { &store };
                let charges = charges(store, way, clients, run).await?;
                taken[place][kind].push(charges);
                ratios[place][kind].push(charges / transactions);
            }
        }
    }
    for (place, clients) in CLIENTS.into_iter().enumerate() {
        let asked = format!("{clients} at once {}", reach.name());
        line(&format!("pgbench -N, {asked}"), median(base[place].clone()), "a second");
        for (kind, name) in ["one statement each", "together", "with key and limit"].into_iter().enumerate() {
            let what = format!("charges, {name}, {asked}");
            line(&what, median(taken[place][kind].clone()), "a second");
            let goal = match (kind, clients) {
                (0, _) => Goal::AtLeast(1.5),
                (1, 32) => Goal::AtLeast(4.0),
                _ => Goal::None,
            };
            ratio(&format!("{what}: to pgbench"), median(ratios[place][kind].clone()), goal);
        }
    }
    store.close().await;
    alone.close().await;
    Ok(())
}
