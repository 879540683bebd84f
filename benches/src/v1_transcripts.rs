//! Archived transcripts for credits: each is charged on the disk before it is sent.
//!
//! The baseline is the disk itself: how often a second it syncs four kilobytes.

use std::{
    io::Write as _,
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    Random as _, Timestamp,
    directory::{
        Directory as _, NewKeyRecord, RedeemOutcome, RedeemRequest, VerificationToken,
        api_key::{ApiKey, ApiKind},
    },
    ids::{AccountId, KeyId, WalletId},
};
use verbatim::SystemRandom;

use crate::{
    http_client::{HttpClient, text},
    lookup::fill,
    process::{BenchServer, ProcessLoad, serve, wrk_tolerant, wrk_with},
    report::{Goal, line, median, ratio},
};

/// Number of rounds; each measures the disk and every number of clients once.
pub(crate) const ROUNDS: usize = 5;
/// Duration of a measurement in a round.
pub(crate) const TIME: Duration = Duration::from_secs(2);
const CLIENTS: [u32; 3] = [1, 8, 64];
/// Enough accounts for each to stay within a realistic rate limit.
pub(crate) const ACCOUNTS: u64 = 2_000;
/// More than a run spends.
pub(crate) const CREDITS: u64 = 100_000_000;
/// The path of the archived transcript in the v1 API.
pub(crate) const PATH: &str = "/api/v1/transcript?video_id=bench-00000";

/// Creates accounts by verification tokens; returns their keys.
pub(crate) async fn accounts(data: &Path, count: u64) -> Result<Vec<ApiKey>> {
    let store = SqliteStore::open(SqliteOptions::new(data.join("verbatim.db"))).await?;
    let (now, random) = (Timestamp::from_millis(1_795_132_800_000), SystemRandom::open()?);
    let make = async |number: u64| -> Result<ApiKey> {
        let (key, digest) = (ApiKey::generate(ApiKind::V1, &random)?, random.bytes(32));
        let token = VerificationToken {
            digest: digest.clone(),
            email: format!("{number}@bench.example"),
            expires_at: now.plus(TIME),
            now,
        };
        store.put_token(token).await?;
        let record = NewKeyRecord {
            id: KeyId::new(format!("key-{number}")),
            digest: key.digest(),
            hint: key.hint(),
            now,
        };
        let redeemed = store
            .redeem(RedeemRequest {
                digest,
                confirmed: false,
                new_account: AccountId::new(format!("account-{number}")),
                new_wallet: WalletId::new(format!("wallet-{number}")),
                key: record,
            })
            .await?;
        ensure!(matches!(redeemed, RedeemOutcome::Issued { .. }), "{redeemed:?}");
        Ok(key)
    };
    let mut keys = Vec::new();
    for some in (0..count).collect::<Vec<_>>().chunks(64) {
        let made = futures_util::future::join_all(some.iter().map(|number| make(*number))).await;
        keys.extend(made.into_iter().collect::<Result<Vec<_>>>()?);
    }
    store.close().await;
    Ok(keys)
}

/// Syncs of four new kilobytes of a file a second.
pub(crate) fn disk(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let (page, started, mut count) = ([7; 4_096], Instant::now(), 0_u32);
    while started.elapsed() < TIME {
        file.write_all(&page)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / started.elapsed().as_secs_f64())
}

/// Credits left in all accounts.
async fn credits_left(server: &BenchServer, keys: &[ApiKey]) -> Result<u64> {
    let client = HttpClient::new();
    let mut credits_left = 0;
    for key in keys {
        let bearer = format!("Bearer {}", key.reveal());
        let me = text(&client, server.address(), "/api/v1/me", &[("authorization", &bearer)]).await?;
        let me: Value = serde_json::from_str(&me)?;
        credits_left += me["credits_remaining"].as_u64().with_context(|| format!("no credits in {me}"))?;
    }
    Ok(credits_left)
}

/// A server with one archived video, and accounts with more credits than a run spends.
pub(crate) struct ChargedFixture {
    folder: TempDir,
    keys: Vec<ApiKey>,
    pub(crate) server: BenchServer,
}

impl ChargedFixture {
    pub(crate) async fn open() -> Result<Self> {
        let folder = TempDir::new()?;
        fill(folder.path(), 1).await.context("the archive")?;
        let keys = accounts(folder.path(), ACCOUNTS).await.context("the accounts")?;
        let lines: String = keys.iter().map(|key| format!("{}\n", key.reveal())).collect();
        std::fs::write(folder.path().join("keys"), lines)?;
        let settings = [
            ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
            ("VERBATIM_PLANS__FREE__CREDITS", CREDITS.to_string()),
            ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000".to_owned()),
            ("VERBATIM_SERVER__CONNECTIONS_PER_NETWORK", "10000".to_owned()),
        ];
        let server = serve(folder.path(), &settings)?;
        Ok(Self { folder, keys, server })
    }

    /// Sends requests of this many clients, each with a random account's key.
    ///
    /// They are GETs of a path, or POSTs of a body to it. Returns the number of responses, and the responses a second.
    pub(crate) fn load(&self, clients: u32, path: &str, body: &str) -> Result<(u64, f64)> {
        self.load_with(clients, path, body, TIME, wrk_with)
    }

    /// The same for another duration, where requests may be refused; counts those that succeeded.
    pub(crate) fn overload(&self, clients: u32, path: &str, time: Duration) -> Result<(u64, f64)> {
        self.load_with(clients, path, "", time, wrk_tolerant)
    }

    /// The key of the account with this number.
    pub(crate) fn key(&self, number: usize) -> String {
        self.keys.get(number).map(|key| key.reveal().to_owned()).unwrap_or_default()
    }

    fn load_with(
        &self,
        clients: u32,
        path: &str,
        body: &str,
        time: Duration,
        wrk: impl Fn(&BenchServer, &str, &[&str], &ProcessLoad<'_>) -> Result<(u64, f64)>,
    ) -> Result<(u64, f64)> {
        let variables = [
            ("KEYS", self.folder.path().join("keys").display().to_string()),
            ("TARGET", path.to_owned()),
            ("BODY", body.to_owned()),
        ];
        let script = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/charged.lua"));
        let load = ProcessLoad { connections: clients, script, variables: &variables, time };
        wrk(&self.server, "/", &[], &load)
    }
}

/// Runs all measurements of charged transcripts.
pub(crate) async fn run() -> Result<()> {
    let fixture = ChargedFixture::open().await?;
    let ChargedFixture { folder, keys, server } = &fixture;
    let load = |clients: u32| fixture.load(clients, PATH, "");
    load(8)?;

    let (mut of_disk, mut of_clients, mut answered) = (Vec::new(), vec![Vec::new(); CLIENTS.len()], 0);
    let (mut ratios, mut cpu) = (vec![Vec::new(); CLIENTS.len()], vec![Vec::new(); CLIENTS.len()]);
    let before = credits_left(server, keys).await?;
    for _ in 0..ROUNDS {
        let disk = disk(folder.path())?;
        of_disk.push(disk);
        for (index, clients) in CLIENTS.into_iter().enumerate() {
            let cpu_before = server.cpu_seconds()?;
            let (count, per_second) = load(clients)?;
            cpu[index].push((server.cpu_seconds()? - cpu_before) / count as f64 * 1e6);
            answered += count;
            of_clients[index].push(per_second);
            ratios[index].push(per_second / disk);
        }
    }
    let spent = before - credits_left(server, keys).await?;
    line("the disk: 4 KiB synced (fdatasync)", median(of_disk), "a second");
    for (index, clients) in CLIENTS.into_iter().enumerate() {
        line(&format!("charged, {clients} at once"), median(of_clients[index].clone()), "a second");
        line(
            &format!("charged, {clients} at once: CPU of the server"),
            median(cpu[index].clone()),
            "µs a request",
        );
        let goal = if clients == 64 { Goal::AtLeast(4.0) } else { Goal::None };
        ratio(&format!("charged, {clients} at once: to the disk"), median(ratios[index].clone()), goal);
    }
    // Requests that were running when wrk stopped were charged, and wrk does not count their responses.
    let under_way = u64::from(CLIENTS.iter().sum::<u32>()) * ROUNDS as u64;
    ensure!(
        (answered..=answered + under_way).contains(&spent),
        "{answered} responses, but {spent} credits spent"
    );
    Ok(())
}
