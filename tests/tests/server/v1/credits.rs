//! Credits: spent when an answer is delivered, once, and never else.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use anyhow::{Result, bail, ensure};
use http::{Method, StatusCode};
use serde_json::json;
use sha2::{Digest as _, Sha256};
use storage_sqlx::{SqliteOptions, SqliteStore};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Semaphore,
    task::JoinSet,
};
use transcript_core::{
    PageRequest,
    directory::{Directory as _, Owner},
    ledger::Ledger as _,
};
use verbatim_tests::replay::ReplayProxy;

use super::post::{Outbox, account, credits};
use crate::server::{
    harness::{Server, borrowed, run, until, verbatim},
    killed::check_ledger,
    platform::{fetches, held_platform, platform, settings},
};

/// A server with this platform and these credits for each account.
fn serve(data: &TempDir, proxy: &ReplayProxy, credits: u64) -> Result<Server> {
    let mut settings = settings(proxy);
    settings.push(("VERBATIM_PLANS__FREE__CREDITS".to_owned(), credits.to_string()));
    settings.push(("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE".to_owned(), "10000".to_owned()));
    let settings = borrowed(&settings);
    Server::start(data, &settings)
}

/// The ledger adds up, by the operator's own command.
fn audited(data: &TempDir) -> Result<()> {
    let audit = run(verbatim(data.path(), &["ledger", "audit"]), b"")?;
    ensure!(audit.status.success(), "{}", String::from_utf8_lossy(&audit.stdout));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_clients_spend_one_account_to_exactly_zero() -> Result<()> {
    const CREDITS: u64 = 300;
    let videos: Vec<String> = (0..8).map(|place| format!("drained-{place:03}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = platform(&names, Duration::from_millis(5))?;
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = Arc::new(serve(&data, &proxy, CREDITS)?);
    let key = account(&server, &mut outbox, "ann@example.org").await?;

    let mut clients = JoinSet::new();
    for client in 0..64 {
        let (server, key, videos) = (Arc::clone(&server), key.clone(), videos.clone());
        clients.spawn(async move {
            let (mut delivered, mut refused) = (0_u64, 0_u64);
            for n in 0..8 {
                let video = &videos[(client + n) % videos.len()];
                let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={video}")).await?;
                match reply.status {
                    StatusCode::OK => delivered += 1,
                    StatusCode::PAYMENT_REQUIRED => refused += 1,
                    status => anyhow::bail!("{status}: {}", reply.text()),
                }
            }
            Ok((delivered, refused))
        });
    }
    let (mut delivered, mut refused) = (0, 0);
    while let Some(client) = clients.join_next().await {
        let (more, fewer) = client??;
        delivered += more;
        refused += fewer;
    }
    // Whoever was refused while another's hold was open was told the truth, and the hold was spent.
    assert_eq!((delivered, refused), (CREDITS, 64 * 8 - CREDITS));
    assert_eq!(credits(&server, &key).await?, 0);
    let spent = server.get_as(&key, &format!("/api/v1/transcript?video_id={}", videos[0])).await?;
    assert_eq!((spent.status.as_u16(), spent.header("x-credits-remaining")), (402, "0"));
    assert!(videos.iter().all(|video| fetches(&proxy, video) == 1));
    audited(&data)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_who_hangs_up_before_the_answer_is_not_charged() -> Result<()> {
    const VIDEO: &str = "dyke-walk-0";
    let gate = Arc::new(Semaphore::new(0));
    let proxy = held_platform(&[VIDEO], &gate)?;
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = serve(&data, &proxy, 200)?;
    let key = account(&server, &mut outbox, "ann@example.org").await?;

    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    for repeat_key in ["", "idempotency-key: left\r\n"] {
        let mut stream = TcpStream::connect(server.address()).await?;
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: v\r\nauthorization: Bearer {key}\r\n{repeat_key}\r\n");
        stream.write_all(request.as_bytes()).await?;
        until("the credit was never held", async || Ok(credits(&server, &key).await? == 199)).await?;
        drop(stream);
        until("the credit never came back", async || Ok(credits(&server, &key).await? == 200)).await?;
    }
    gate.add_permits(1);
    // The work went on, for whoever comes next: they get it from the archive, and pay.
    until("the transcript never came", async || {
        Ok(server.get(&format!("/api/transcript?v={VIDEO}")).await?.json()["available"] == json!(true))
    })
    .await?;
    assert_eq!(credits(&server, &key).await?, 200);
    let headers = [("authorization", format!("Bearer {key}")), ("idempotency-key", "left".to_owned())];
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let reply = server.send(Method::GET, &path, &headers, "").await?;
    assert_eq!((reply.status.as_u16(), reply.header("x-cache")), (200, "HIT"), "{}", reply.text());
    assert_eq!((credits(&server, &key).await?, fetches(&proxy, VIDEO)), (199, 1));

    // One who waits for the answer on the same connection is charged once.
    let mut stream = TcpStream::connect(server.address()).await?;
    let request =
        format!("GET {path} HTTP/1.1\r\nhost: v\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(credits(&server, &key).await?, 198);
    drop(server);
    audited(&data)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_held_comes_back_and_the_repeat_is_charged_once() -> Result<()> {
    const VIDEO: &str = "killed-held";
    // The answer is so long in coming that the kill is sure to find a hold and nothing that was stored.
    let proxy = platform(&[VIDEO], Duration::from_secs(600))?;
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let server = Arc::new(serve(&data, &proxy, 200)?);
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    let (path, bearer) = (format!("/api/v1/transcript?video_id={VIDEO}"), format!("Bearer {key}"));
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "once")];
    let waiting = {
        let (server, path, bearer) = (Arc::clone(&server), path.clone(), bearer.clone());
        tokio::spawn(async move {
            let headers = [("authorization", bearer.as_str()), ("idempotency-key", "once")];
            server.send(Method::GET, &path, &headers, "").await.is_ok()
        })
    };
    until("the credit was never held", async || Ok(credits(&server, &key).await? == 199)).await?;
    let busy = server.send(Method::GET, &path, &headers, "").await?;
    assert_eq!(busy.status, StatusCode::CONFLICT, "{}", busy.text());
    std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status()?;
    assert!(!waiting.await?, "nobody was answered");
    drop(server);
    audited(&data)?;

    // Nothing was delivered: what was held comes back by itself.
    let proxy = platform(&[VIDEO], Duration::ZERO)?;
    let server = serve(&data, &proxy, 200)?;
    until("what was held never came back", async || Ok(credits(&server, &key).await? == 200)).await?;
    assert_eq!(paid(&data, &key).await?, BTreeSet::new());
    // The dead server's idempotency key is free by then, too, or is within a moment.
    until("the repeat was never answered", async || {
        let reply = server.send(Method::GET, &path, &headers, "").await?;
        ensure!([200, 409].contains(&reply.status.as_u16()), "{}", reply.text());
        Ok(reply.status == 200)
    })
    .await?;
    for _ in 0..2 {
        let again = server.send(Method::GET, &path, &headers, "").await?;
        assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (200, "true"));
        assert_eq!(credits(&server, &key).await?, 199);
    }
    drop(server);
    assert_eq!(paid(&data, &key).await?, BTreeSet::from([VIDEO.to_owned()]));
    check_ledger(&data).await?;
    audited(&data)
}

/// How often the server is killed.
const LIVES: usize = 5;
/// How many requests are under way when it is.
const CALLERS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_killed_charges_nobody_twice_and_nothing_undelivered() -> Result<()> {
    let videos: Vec<String> = (0..LIVES * CALLERS).map(|place| format!("charged-{place:03}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = platform(&names, Duration::from_millis(30))?;
    let data = TempDir::new()?;
    let mut outbox = Outbox::of(&data);
    let first = serve(&data, &proxy, 1_000)?;
    let key = account(&first, &mut outbox, "ann@example.org").await?;
    drop(first);

    // Each request has a name of its own, under which it is repeated after the crash.
    let ask = |server: Arc<Server>, place: usize| {
        let (path, bearer) =
            (format!("/api/v1/transcript?video_id={}", videos[place]), format!("Bearer {key}"));
        async move {
            let name = format!("request-{place}");
            let headers = [("authorization", bearer.as_str()), ("idempotency-key", name.as_str())];
            let reply = server.send(Method::GET, &path, &headers, "").await.ok()?;
            (reply.status == 200).then_some(place)
        }
    };
    let mut answered = BTreeSet::new();
    for life in 0..LIVES {
        let server = Arc::new(serve(&data, &proxy, 1_000)?);
        let mut callers = JoinSet::new();
        for place in life * CALLERS..(life + 1) * CALLERS {
            callers.spawn(ask(Arc::clone(&server), place));
        }
        // At another point of the work each time: after so many answers, the others being under way.
        for _ in 0..life * 3 {
            answered.extend(callers.join_next().await.transpose()?.flatten());
        }
        std::process::Command::new("kill").args(["-KILL", &server.pid().to_string()]).status()?;
        while let Some(place) = callers.join_next().await {
            answered.extend(place?);
        }
        audited(&data)?;
    }
    ensure!(!answered.is_empty() && answered.len() < videos.len(), "{} answers", answered.len());
    // What was answered before the kill is paid for; what was not may be, where only the answer was lost.
    let paid = paid(&data, &key).await?;
    assert!(answered.iter().all(|place| paid.contains(&videos[*place])), "{answered:?} {paid:?}");

    // Every request again: what was answered is repeated and costs nothing, the others are charged now.
    let server = Arc::new(serve(&data, &proxy, 1_000)?);
    for place in 0..videos.len() {
        until("a request was never answered again", async || {
            Ok(ask(Arc::clone(&server), place).await.is_some())
        })
        .await?;
    }
    let left = credits(&server, &key).await?;
    drop(server);
    let paid = self::paid(&data, &key).await?;
    assert_eq!(left, 1_000 - paid.len() as u64);
    check_ledger(&data).await?;
    audited(&data)
}

/// The videos that an account has paid for. None of them twice.
async fn paid(data: &TempDir, key: &str) -> Result<BTreeSet<String>> {
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let digest = Sha256::digest(key).to_vec();
    let Some(Owner::Account { account, .. }) = store.owner(&digest).await? else { bail!("no such account") };
    let (mut paid, mut page) = (BTreeSet::new(), PageRequest::first());
    loop {
        let entries = store.entries(&account.wallet, page).await?;
        for entry in entries.items.iter().filter(|entry| entry.kind.is_spent()) {
            let video = entry.memo.rsplit([' ', ':', '/']).next().unwrap_or_default().to_owned();
            ensure!(paid.insert(video), "{:?} was charged twice", entry.memo);
        }
        match entries.next {
            Some(next) => page = PageRequest { after: Some(next), ..PageRequest::first() },
            None => break,
        }
    }
    store.close().await;
    Ok(paid)
}
