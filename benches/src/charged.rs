//! Archived transcripts for credits: each one is charged on the disk before it is sent. The baseline is the disk
//! itself, how often a second it can be made to keep four kilobytes.

use std::{
    fs::File,
    io::{Read as _, Write as _},
    path::Path,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use serde_json::Value;
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use transcript_core::{
    Random, Timestamp,
    directory::{
        Directory as _, NewKey, Redeem, Redeemed, Token,
        key::{Key, Surface},
    },
    ids::{AccountId, KeyId, WalletId},
};

use crate::{
    ask::{Client, text},
    lookup::fill,
    process::{Load, Server, serve, wrk_with},
    report::{Goal, line, median, ratio},
};

/// How many rounds there are, each with the disk and with every number of clients once.
pub(crate) const ROUNDS: usize = 5;
/// How long each is asked in a round.
pub(crate) const TIME: Duration = Duration::from_secs(2);
const CLIENTS: [u32; 3] = [1, 8, 64];
/// As many accounts as it takes for each to stay within a rate that a plan could have.
const ACCOUNTS: u64 = 2_000;
/// More than a run spends.
pub(crate) const CREDITS: u64 = 100_000_000;
/// The archived transcript, for credits.
pub(crate) const PATH: &str = "/api/v1/transcript?video_id=bench-00000";

/// The system's randomness.
#[derive(Debug)]
struct System;

impl Random for System {
    fn bytes(&self, count: u32) -> Vec<u8> {
        let mut bytes = vec![0; count as usize];
        // Without it no key is made, which is told.
        match File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes)) {
            Ok(()) => bytes,
            Err(_) => Vec::new(),
        }
    }
}

/// Makes accounts as the link of a mail does; returns their keys.
pub(crate) async fn accounts(data: &Path) -> Result<Vec<Key>> {
    let store = SqliteStore::open(SqliteOptions::new(data.join("verbatim.db"))).await?;
    let now = Timestamp::from_millis(1_795_132_800_000);
    let make = async |number: u64| -> Result<Key> {
        let (key, digest) = (Key::generate(Surface::Account, &System)?, System.bytes(32));
        let token = Token {
            digest: digest.clone(),
            email: format!("{number}@bench.example"),
            expires_at: now.plus(TIME),
            now,
        };
        store.put_token(token).await?;
        let record =
            NewKey { id: KeyId::new(format!("key-{number}")), digest: key.digest(), hint: key.hint(), now };
        let redeemed = store
            .redeem(Redeem {
                digest,
                confirmed: false,
                new_account: AccountId::new(format!("account-{number}")),
                new_wallet: WalletId::new(format!("wallet-{number}")),
                key: record,
            })
            .await?;
        ensure!(matches!(redeemed, Redeemed::Issued { .. }), "{redeemed:?}");
        Ok(key)
    };
    let mut keys = Vec::new();
    for some in (0..ACCOUNTS).collect::<Vec<_>>().chunks(64) {
        let made = futures_util::future::join_all(some.iter().map(|number| make(*number))).await;
        keys.extend(made.into_iter().collect::<Result<Vec<_>>>()?);
    }
    store.close().await;
    Ok(keys)
}

/// How often a second four kilobytes more of a file are on the disk.
pub(crate) fn disk(folder: &Path) -> Result<f64> {
    let mut file = tempfile::tempfile_in(folder)?;
    let (page, began, mut count) = ([7; 4_096], Instant::now(), 0_u32);
    while began.elapsed() < TIME {
        file.write_all(&page)?;
        file.sync_data()?;
        count += 1;
    }
    Ok(f64::from(count) / began.elapsed().as_secs_f64())
}

/// What all accounts have left.
async fn left(server: &Server, keys: &[Key]) -> Result<u64> {
    let client = Client::new();
    let mut left = 0;
    for key in keys {
        let bearer = format!("Bearer {}", key.reveal());
        let me = text(&client, server.address(), "/api/v1/me", &[("authorization", &bearer)]).await?;
        let me: Value = serde_json::from_str(&me)?;
        left += me["credits_remaining"].as_u64().with_context(|| format!("no credits in {me}"))?;
    }
    Ok(left)
}

/// A server with one archived video, and accounts that have more credits than anybody spends.
pub(crate) struct Shop {
    folder: TempDir,
    keys: Vec<Key>,
    server: Server,
}

impl Shop {
    pub(crate) async fn open() -> Result<Self> {
        let folder = TempDir::new()?;
        fill(folder.path(), 1).await.context("the archive")?;
        let keys = accounts(folder.path()).await.context("the accounts")?;
        let lines: String = keys.iter().map(|key| format!("{}\n", key.reveal())).collect();
        std::fs::write(folder.path().join("keys"), lines)?;
        let settings = [
            ("VERBATIM_LOG__LEVEL", "warn".to_owned()),
            ("VERBATIM_PLANS__FREE__CREDITS", CREDITS.to_string()),
            ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000".to_owned()),
        ];
        let server = serve(folder.path(), &settings)?;
        Ok(Self { folder, keys, server })
    }

    /// Has so many clients ask at once, each time with the key of another account: for a path, or with a body that is
    /// posted to it. Returns how many answers came, and how many a second.
    pub(crate) fn load(&self, clients: u32, path: &str, body: &str) -> Result<(u64, f64)> {
        let variables = [
            ("KEYS", self.folder.path().join("keys").display().to_string()),
            ("TARGET", path.to_owned()),
            ("BODY", body.to_owned()),
        ];
        let script = Some(concat!(env!("CARGO_MANIFEST_DIR"), "/charged.lua"));
        let load = Load { connections: clients, script, variables: &variables, time: TIME };
        wrk_with(&self.server, "/", &[], &load)
    }
}

/// All measurements of charged transcripts.
pub(crate) async fn run() -> Result<()> {
    let shop = Shop::open().await?;
    let Shop { folder, keys, server } = &shop;
    let load = |clients: u32| shop.load(clients, PATH, "");
    load(8)?;

    let (mut of_disk, mut of_clients, mut answered) = (Vec::new(), vec![Vec::new(); CLIENTS.len()], 0);
    let (mut ratios, mut cpu) = (vec![Vec::new(); CLIENTS.len()], vec![Vec::new(); CLIENTS.len()]);
    let before = left(server, keys).await?;
    for _ in 0..ROUNDS {
        let disk = disk(folder.path())?;
        of_disk.push(disk);
        for (place, clients) in CLIENTS.into_iter().enumerate() {
            let cpu_before = server.cpu_seconds()?;
            let (count, per_second) = load(clients)?;
            cpu[place].push((server.cpu_seconds()? - cpu_before) / count as f64 * 1e6);
            answered += count;
            of_clients[place].push(per_second);
            ratios[place].push(per_second / disk);
        }
    }
    let spent = before - left(server, keys).await?;
    line("the disk: 4 KiB kept (fdatasync)", median(of_disk), "a second");
    for (place, clients) in CLIENTS.into_iter().enumerate() {
        line(&format!("charged, {clients} at once"), median(of_clients[place].clone()), "a second");
        line(
            &format!("charged, {clients} at once: CPU of the server"),
            median(cpu[place].clone()),
            "µs a request",
        );
        let goal = if clients == 64 { Goal::AtLeast(4.0) } else { Goal::None };
        ratio(&format!("charged, {clients} at once: to the disk"), median(ratios[place].clone()), goal);
    }
    // What was under way when wrk left was charged, and is no answer that it counts.
    let under_way = u64::from(CLIENTS.iter().sum::<u32>()) * ROUNDS as u64;
    ensure!(
        (answered..=answered + under_way).contains(&spent),
        "{answered} answers, and {spent} credits were spent"
    );
    Ok(())
}
