//! Credits: spent once when a response is delivered, and in no other case.

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
    directory::{Directory as _, KeyOwner},
    ledger::Ledger as _,
};
use verbatim_tests::replay::ReplayProxy;

use super::mail_client::{MailClient, create_account, remaining_credits};
use crate::server::{
    harness::{ServerFixture, audit_ledger, borrow_settings, send_signal, wait_until},
    kill_restart::check_ledger,
    operations::ObservedServer,
    platform::{fetch_count, gated_platform, platform_settings, serve_platform, start_platform},
};

/// Settings for this many credits per account.
fn settings(credits: &str) -> [(&str, &str); 2] {
    [("VERBATIM_PLANS__FREE__CREDITS", credits), ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "10000")]
}

/// A server with this platform and this many credits per account.
fn serve(data: &TempDir, proxy: &ReplayProxy, credits: u64) -> Result<ServerFixture> {
    serve_platform(data, proxy, &settings(&credits.to_string()))
}

/// As [`serve`], with metrics.
async fn serve_observed(data: &TempDir, proxy: &ReplayProxy, credits: &str) -> Result<ObservedServer> {
    let platform = platform_settings(proxy);
    ObservedServer::start(data, &[&borrow_settings(&platform)[..], &settings(credits)].concat()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_64_clients_spend_account_to_zero() -> Result<()> {
    const CREDITS: u64 = 300;
    let videos: Vec<String> = (0..8).map(|index| format!("drained-{index:03}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = start_platform(&names, Duration::from_millis(5))?;
    let data = TempDir::new()?;
    let server = Arc::new(serve(&data, &proxy, CREDITS)?);
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;

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
    // Refusals during another request's hold were correct: that hold was spent.
    assert_eq!((delivered, refused), (CREDITS, 64 * 8 - CREDITS));
    assert_eq!(remaining_credits(&server, &key).await?, 0);
    let spent = server.get_as(&key, &format!("/api/v1/transcript?video_id={}", videos[0])).await?;
    assert_eq!((spent.status.as_u16(), spent.header("x-credits-remaining")), (402, "0"));
    assert!(videos.iter().all(|video| fetch_count(&proxy, video) == 1));
    audit_ledger(data.path(), &[])
}

/// Sends a request with a key and these further header lines.
async fn send_get(server: &ServerFixture, path: &str, key: &str, header_lines: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(server.address()).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\n{header_lines}\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    Ok(stream)
}

/// Closes connections, and waits until the server has closed them too.
async fn disconnect(observed: &ObservedServer, streams: Vec<TcpStream>) -> Result<()> {
    let open = async || observed.figure("verbatim_http_connections").await;
    let others = open().await? - streams.len() as f64;
    ensure!(others >= 0.0, "the server has closed a connection");
    drop(streams);
    wait_until("a connection is open", async || Ok(open().await? <= others)).await
}

/// A client that disconnects before the answer cannot get transcripts through the lookup API for nothing.
#[tokio::test(flavor = "multi_thread")]
async fn credits_disconnecting_nine_times_costs_nine_credits() -> Result<()> {
    let videos: Vec<String> = (0..9).map(|n| format!("free-ride-{n}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&names, &gate)?;
    let data = TempDir::new()?;
    let observed = serve_observed(&data, &proxy, "9").await?;
    let server = &observed.server;
    let key = create_account(server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut streams = Vec::new();
    for video in &videos {
        let path = format!("/api/v1/transcript?video_id={video}");
        streams.push(send_get(server, &path, &key, "").await?);
    }
    // Some fetches wait until others of the platform have ended.
    wait_until("no request reached the platform", async || Ok(fetch_count(&proxy, &videos[0]) == 1)).await?;
    wait_until("a request holds no credit", async || Ok(remaining_credits(server, &key).await? == 0)).await?;
    disconnect(&observed, streams).await?;
    gate.add_permits(1);
    for video in &videos {
        wait_until("the transcript was not archived", async || {
            Ok(server.get(&format!("/api/transcript?v={video}")).await?.json()["available"] == json!(true))
        })
        .await?;
    }
    assert_eq!(remaining_credits(server, &key).await?, 0);
    // Each transcript is delivered once more, and then there is no credit for another delivery.
    for (status, cache) in [(200, "HIT"), (402, "")] {
        for video in &videos {
            let reply = server.get_as(&key, &format!("/api/v1/transcript?video_id={video}")).await?;
            let got = (reply.status.as_u16(), if status == 200 { reply.header("x-cache") } else { "" });
            assert_eq!(got, (status, cache), "{}", reply.text());
        }
    }
    assert!(videos.iter().all(|video| fetch_count(&proxy, video) == 1));
    drop(observed);
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_disconnected_client_is_charged_and_repeat_is_prepaid() -> Result<()> {
    const VIDEO: &str = "dyke-walk-0";
    let gate = Arc::new(Semaphore::new(0));
    let proxy = gated_platform(&[VIDEO], &gate)?;
    let data = TempDir::new()?;
    let observed = serve_observed(&data, &proxy, "200").await?;
    let server = &observed.server;
    let key = create_account(server, &mut MailClient::new(&data), "ann@example.org").await?;

    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    let stream = send_get(server, &path, &key, "idempotency-key: left\r\n").await?;
    wait_until("no request reached the platform", async || Ok(fetch_count(&proxy, VIDEO) == 1)).await?;
    disconnect(&observed, vec![stream]).await?;
    gate.add_permits(1);
    wait_until("the transcript was not archived", async || {
        Ok(server.get(&format!("/api/transcript?v={VIDEO}")).await?.json()["available"] == json!(true))
    })
    .await?;
    assert_eq!(remaining_credits(server, &key).await?, 199);
    // The repeat gets the transcript that the first request paid for.
    let reply = server.send_as(&key, Method::GET, &path, &[("idempotency-key", "left")], "").await?;
    assert_eq!((reply.status.as_u16(), reply.header("x-cache")), (200, "HIT"), "{}", reply.text());
    assert_eq!((remaining_credits(server, &key).await?, fetch_count(&proxy, VIDEO)), (199, 1));

    // A client that waits for the response on the same connection is charged once.
    let mut stream = TcpStream::connect(server.address()).await?;
    let request = format!(
        "GET {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {key}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    assert!(answer.starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
    assert_eq!(remaining_credits(server, &key).await?, 198);
    drop(observed);
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn credits_held_by_killed_server_return_and_repeat_charges_once() -> Result<()> {
    const VIDEO: &str = "killed-held";
    // The platform is so slow that the kill certainly finds a hold and nothing stored.
    let proxy = start_platform(&[VIDEO], Duration::from_secs(600))?;
    let data = TempDir::new()?;
    let server = Arc::new(serve(&data, &proxy, 200)?);
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let path = format!("/api/v1/transcript?video_id={VIDEO}");
    let headers = [("idempotency-key", "once")];
    let waiting = {
        let (server, path, key) = (Arc::clone(&server), path.clone(), key.clone());
        tokio::spawn(async move { server.send_as(&key, Method::GET, &path, &headers, "").await.is_ok() })
    };
    wait_until("no credit was held", async || Ok(remaining_credits(&server, &key).await? == 199)).await?;
    let busy = server.send_as(&key, Method::GET, &path, &headers, "").await?;
    assert_eq!(busy.status, StatusCode::CONFLICT, "{}", busy.text());
    send_signal(server.pid(), "KILL")?;
    assert!(!waiting.await?, "a killed server responded");
    drop(server);
    audit_ledger(data.path(), &[])?;

    // Nothing was delivered: the hold expires and is returned.
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let server = serve(&data, &proxy, 200)?;
    wait_until("the hold was not returned", async || Ok(remaining_credits(&server, &key).await? == 200))
        .await?;
    assert_eq!(paid_videos(&data, &key).await?, BTreeSet::new());
    // The idempotency key of the killed server is free by now, or shortly after.
    wait_until("the repeated request got no response", async || {
        let reply = server.send_as(&key, Method::GET, &path, &headers, "").await?;
        ensure!([200, 409].contains(&reply.status.as_u16()), "{}", reply.text());
        Ok(reply.status == 200)
    })
    .await?;
    for _ in 0..2 {
        let again = server.send_as(&key, Method::GET, &path, &headers, "").await?;
        assert_eq!((again.status.as_u16(), again.header("idempotent-replayed")), (200, "true"));
        assert_eq!(remaining_credits(&server, &key).await?, 199);
    }
    drop(server);
    assert_eq!(paid_videos(&data, &key).await?, BTreeSet::from([VIDEO.to_owned()]));
    check_ledger(&data).await?;
    audit_ledger(data.path(), &[])
}

/// How often the server is killed.
const KILLS: usize = 5;
/// How many requests run at each kill.
const CALLERS: usize = 16;

#[tokio::test(flavor = "multi_thread")]
async fn credits_killed_server_charges_each_delivery_once() -> Result<()> {
    let videos: Vec<String> = (0..KILLS * CALLERS).map(|index| format!("charged-{index:03}")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let proxy = start_platform(&names, Duration::from_millis(30))?;
    let data = TempDir::new()?;
    let first = serve(&data, &proxy, 1_000)?;
    let key = create_account(&first, &mut MailClient::new(&data), "ann@example.org").await?;
    drop(first);

    // Each request has an idempotency key, with which it is repeated after the kill.
    let send_keyed = |server: Arc<ServerFixture>, index: usize| {
        let (path, key) = (format!("/api/v1/transcript?video_id={}", videos[index]), key.clone());
        async move {
            let headers = [("idempotency-key", &*format!("request-{index}"))];
            let reply = server.send_as(&key, Method::GET, &path, &headers, "").await.ok()?;
            (reply.status == 200).then_some(index)
        }
    };
    let mut delivered_indexes = BTreeSet::new();
    for round in 0..KILLS {
        let server = Arc::new(serve(&data, &proxy, 1_000)?);
        let mut callers = JoinSet::new();
        for index in round * CALLERS..(round + 1) * CALLERS {
            callers.spawn(send_keyed(Arc::clone(&server), index));
        }
        // Each kill comes after another number of responses, while the other requests still run.
        for _ in 0..round * 3 {
            delivered_indexes.extend(callers.join_next().await.transpose()?.flatten());
        }
        send_signal(server.pid(), "KILL")?;
        while let Some(index) = callers.join_next().await {
            delivered_indexes.extend(index?);
        }
        audit_ledger(data.path(), &[])?;
    }
    ensure!(
        !delivered_indexes.is_empty() && delivered_indexes.len() < videos.len(),
        "{} responses",
        delivered_indexes.len()
    );
    // Every response delivered before the kill is charged; a request whose response was lost may be charged.
    let paid_videos = paid_videos(&data, &key).await?;
    assert!(
        delivered_indexes.iter().all(|index| paid_videos.contains(&videos[*index])),
        "{delivered_indexes:?} {paid_videos:?}"
    );

    // Every request is repeated: a delivered one is replayed at no cost, the others are charged now.
    let server = Arc::new(serve(&data, &proxy, 1_000)?);
    for index in 0..videos.len() {
        wait_until("a repeated request got no response", async || {
            Ok(send_keyed(Arc::clone(&server), index).await.is_some())
        })
        .await?;
    }
    let paid_videos = self::paid_videos(&data, &key).await?;
    // A killed server leaves holds open, which return their credits when they expire, a minute later. A repeated
    // request opens another hold.
    wait_until("more credits are held than were paid", async || {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Ok(remaining_credits(&server, &key).await? == 1_000 - paid_videos.len() as u64)
    })
    .await?;
    drop(server);
    check_ledger(&data).await?;
    audit_ledger(data.path(), &[])
}

/// The videos that an account has paid for. Fails if one of them was charged twice.
pub(crate) async fn paid_videos(data: &TempDir, key: &str) -> Result<BTreeSet<String>> {
    let store = SqliteStore::open(SqliteOptions::new(data.path().join("verbatim.db"))).await?;
    let digest = Sha256::digest(key).to_vec();
    let Some(KeyOwner::Account { account, .. }) = store.key_owner(&digest).await? else {
        bail!("no such account")
    };
    let (mut paid_videos, mut page) = (BTreeSet::new(), PageRequest::first());
    loop {
        let entries = store.entries(&account.wallet, page).await?;
        for entry in entries.items.iter().filter(|entry| entry.kind.is_spent()) {
            let video = entry.memo.rsplit([' ', ':', '/']).next().unwrap_or_default().to_owned();
            ensure!(paid_videos.insert(video), "{:?} was charged twice", entry.memo);
        }
        match entries.next {
            Some(next) => page = PageRequest { after: Some(next), ..PageRequest::first() },
            None => break,
        }
    }
    store.close().await;
    Ok(paid_videos)
}
