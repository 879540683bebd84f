//! Charges on PostgreSQL, alternating with pgbench transactions of as many clients on the same server.

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
    accounts::{ChargeOutcome, ChargeRequest, ChargeStore as _},
    directory::{Directory as _, NewKeyRecord, RedeemRequest, VerificationToken},
    ids::{AccountId, HoldId, KeyId, WalletId},
    ledger::{HoldOutcome, HoldRequest, Ledger as _, Leg, Pool, Terms},
    limits::LimitRequest,
};
use verbatim_tests_postgres::{Cluster, Durability, programs};

use crate::report::{Goal, line, median, ratio};

/// Number of rounds; each measures pgbench and every mode once for each number of clients.
const ROUNDS: usize = 9;
/// Duration of a measurement in a round.
const TIME: Duration = Duration::from_secs(2);
const CLIENTS: [u64; 3] = [1, 8, 32];
/// A hundred accounts for each of pgbench's tellers: few charges meet at one account.
const ACCOUNTS: u64 = 10_000;
const NOW: i64 = 1_795_132_800_000;

/// The connection of the store's clients and of pgbench.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgTransport {
    /// TCP, as between several machines.
    Network,
    /// A Unix socket, possible on one machine.
    Socket,
}

impl PgTransport {
    fn name(self) -> &'static str {
        match self {
            Self::Network => "over TCP",
            Self::Socket => "by the socket",
        }
    }

    /// The host argument of PostgreSQL's programs.
    fn host(self, cluster: &Cluster) -> String {
        match self {
            Self::Network => "127.0.0.1".to_owned(),
            Self::Socket => cluster.socket_folder().display().to_string(),
        }
    }
}

/// The operation that takes a credit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PgMode {
    /// A spend in the ledger, one statement each.
    Alone,
    /// A spend in the ledger, batched with waiting ones.
    Together,
    /// A charge with key and rate limit, batched with waiting ones.
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
        limit_request: LimitRequest {
            bucket: format!("api/account-{account}"),
            max: 100_000,
            window_ms: 60_000,
            cost: 1,
        },
        spend: spend(account, id),
    }
}

/// Creates accounts and charges each once, so that the tables are filled like pgbench's.
async fn make_accounts(store: &Arc<PostgresStore>) -> Result<()> {
    let mut tasks = JoinSet::new();
    for part in 0..16 {
        let store = Arc::clone(store);
        tasks.spawn(async move {
            for account in (part..ACCOUNTS).step_by(16) {
                let mut token = digest(account);
                token[31] = 1;
                let email = format!("{account}@bench.example");
                let expires_at = now().plus(Duration::from_secs(600));
                store
                    .put_token(VerificationToken { digest: token.clone(), email, expires_at, now: now() })
                    .await?;
                let key = NewKeyRecord {
                    id: KeyId::new(format!("key-{account}")),
                    digest: digest(account),
                    hint: String::new(),
                    now: now(),
                };
                let (new_account, new_wallet) = (format!("account-{account}"), format!("wallet-{account}"));
                store
                    .redeem(RedeemRequest {
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
    while let Some(made) = tasks.join_next().await {
        made??;
    }
    Ok(())
}

/// Takes credits with this many clients; returns the credits a second.
async fn charges(store: &Arc<PostgresStore>, mode: PgMode, clients: u64, run: u64) -> Result<f64> {
    let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut tasks = JoinSet::new();
    let started = Instant::now();
    for client in 0..clients {
        let (store, stop, count) = (Arc::clone(store), Arc::clone(&stop), Arc::clone(&count));
        tasks.spawn(async move {
            let mut choice = run.wrapping_mul(977).wrapping_add(client);
            for number in 0_u64.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                choice =
                    choice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let (account, id) = ((choice >> 33) % ACCOUNTS, format!("{run:08}-{client:03}-{number:08}"));
                let taken = match mode {
                    PgMode::Alone | PgMode::Together => store.spend(spend(account, id)).await?,
                    PgMode::Charge => match store.charge(charge(account, id)).await? {
                        ChargeOutcome::Accepted { spent, .. } => spent,
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
    while let Some(taken) = tasks.join_next().await {
        taken??;
    }
    Ok(count.load(Ordering::Relaxed) as f64 / started.elapsed().as_secs_f64())
}

/// Runs pgbench against a database.
fn pgbench(cluster: &Cluster, transport: PgTransport, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new(programs()?.join("pgbench"));
    command.arg("-h").arg(transport.host(cluster)).arg("-p").arg(cluster.port().to_string());
    let output = command.args(["-U", "verbatim"]).args(arguments).arg("pgbench").output()?;
    ensure!(output.status.success(), "pgbench: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// Runs statements as the database's owner, who is the server's superuser.
fn psql(url: &str, statements: &[&str]) -> Result<()> {
    let mut command = Command::new(programs()?.join("psql"));
    command.arg(url).arg("-q").args(["-o", "/dev/null"]);
    let status = command.args(statements.iter().flat_map(|statement| ["-c", statement])).status()?;
    ensure!(status.success(), "psql: {status}");
    Ok(())
}

/// Fills the WAL files, as on a server that has run for a while and recycles them.
///
/// PostgreSQL fills a new file with zeros in the middle of a commit.
const WORN_IN: [&str; 4] = [
    "ALTER SYSTEM SET min_wal_size = '1GB'",
    "SELECT pg_reload_conf()",
    "SELECT pg_logical_emit_message(false, 'worn in', repeat('-', 8000000)), pg_switch_wal()
        FROM generate_series(1, 64)",
    "CHECKPOINT",
];

/// Transactions a second of pgbench: `-N` updates an account and inserts a row, like a charge.
fn transactions(cluster: &Cluster, transport: PgTransport, clients: u64) -> Result<f64> {
    let (clients, time) = (clients.to_string(), TIME.as_secs().to_string());
    let threads = if clients == "1" { "1" } else { "2" };
    let output = pgbench(
        cluster,
        transport,
        &["-n", "-N", "-M", "simple", "-c", &clients, "-j", threads, "-T", &time],
    )?;
    let line =
        output.lines().find_map(|line| line.strip_prefix("tps = ")).context("no tps in pgbench's output")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}

/// Runs all measurements on PostgreSQL.
pub(crate) async fn run() -> Result<()> {
    measure(PgTransport::Network).await?;
    measure(PgTransport::Socket).await
}

async fn measure(transport: PgTransport) -> Result<()> {
    let cluster = Cluster::start(Durability::Full)?;
    cluster.create_database("pgbench")?;
    pgbench(&cluster, transport, &["-q", "-i", "-s", "10"])?;
    let database = cluster.database()?;
    let url = format!("{}?host={}", database.url, transport.host(&cluster));
    let options = PostgresOptions { connections: 32, ..PostgresOptions::new(&url) };
    let alone = PostgresOptions { batch_threshold: usize::MAX, ..options.clone() };
    let store = Arc::new(PostgresStore::open(options).await?);
    let alone = Arc::new(PostgresStore::open(alone).await?);
    make_accounts(&store).await?;
    psql(&url, &WORN_IN)?;
    psql(&url, &["VACUUM ANALYZE"])?;
    let (mut base, mut taken) = (vec![Vec::new(); 3], vec![<[Vec<f64>; 3]>::default(); 3]);
    let mut ratios = vec![<[Vec<f64>; 3]>::default(); 3];
    let mut run = 0;
    for _ in 0..ROUNDS {
        for (index, clients) in CLIENTS.into_iter().enumerate() {
            let transactions = transactions(&cluster, transport, clients)?;
            base[index].push(transactions);
            for (kind, mode) in [PgMode::Alone, PgMode::Together, PgMode::Charge].into_iter().enumerate() {
                run += 1;
                let store = if mode == PgMode::Alone { &alone } else { &store };
                let charges = charges(store, mode, clients, run).await?;
                taken[index][kind].push(charges);
                ratios[index][kind].push(charges / transactions);
            }
        }
    }
    for (index, clients) in CLIENTS.into_iter().enumerate() {
        let suffix = format!("{clients} at once {}", transport.name());
        line(&format!("pgbench -N, {suffix}"), median(base[index].clone()), "a second");
        for (kind, name) in ["one statement each", "together", "with key and limit"].into_iter().enumerate() {
            let name = format!("charges, {name}, {suffix}");
            line(&name, median(taken[index][kind].clone()), "a second");
            let goal = match (kind, clients) {
                (0, _) => Goal::AtLeast(1.5),
                (1, 32) => Goal::AtLeast(4.0),
                _ => Goal::None,
            };
            ratio(&format!("{name}: to pgbench"), median(ratios[index][kind].clone()), goal);
        }
    }
    store.close().await;
    alone.close().await;
    Ok(())
}
