//! A full queue of fetches: refused requests cost nothing, and the server serves everything else.

use std::{sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    sync::Semaphore,
    task::{JoinHandle, JoinSet},
    time::timeout,
};
use verbatim_tests::replay::ReplayProxy;

use super::{
    harness::{ServerFixture, ServerReply, borrow_settings, create_keys, run_ok, verbatim, wait_until},
    operations::ObservedServer,
    platform::{fetch_count, gated_platform, platform_settings},
    v1::mail_client::{MailClient, create_account},
};

/// The first is in work, and the next two fill the queue.
const VIDEOS: [&str; 6] =
    ["dyke-walk-0", "dyke-walk-1", "dyke-walk-2", "dyke-walk-3", "dyke-walk-4", "dyke-walk-5"];
/// Time until a response that waits for nothing. Much less than the wait for a fetch, also beside other programs.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);

/// A server that fetches one video at a time, from a platform behind a gate.
struct QueueFixture {
    observed: Arc<ObservedServer>,
    data: TempDir,
    proxy: ReplayProxy,
    gate: Arc<Semaphore>,
}

impl QueueFixture {
    async fn start() -> Result<Self> {
        Self::start_with(&VIDEOS, "2").await
    }

    /// A fixture of these videos, with that many places in the queue.
    async fn start_with(videos: &[&str], places: &str) -> Result<Self> {
        let gate = Arc::new(Semaphore::new(0));
        let proxy = gated_platform(videos, &gate)?;
        let data = TempDir::new()?;
        let mut settings = platform_settings(&proxy);
        for (name, value) in [
            ("YOUTUBE__MAX_CONCURRENT_VIDEOS", "1"),
            ("LIMITS__FETCHES", places),
            ("LIMITS__WAIT", "2m"),
            // The gate stays closed for as long as a test likes.
            ("UPSTREAM__TIMEOUT", "2m"),
        ] {
            settings.push((format!("VERBATIM_{name}"), value.to_owned()));
        }
        let observed = Arc::new(ObservedServer::start(&data, &borrow_settings(&settings)).await?);
        Ok(Self { observed, data, proxy, gate })
    }

    fn server(&self) -> &ServerFixture {
        &self.observed.server
    }

    /// Starts a lookup, and waits until that many fetches wait for the supplier.
    async fn start_lookup(
        &self,
        key: &str,
        video: &str,
        queued: f64,
    ) -> Result<JoinHandle<Result<ServerReply>>> {
        self.start_request(key, lookup_path(video), queued).await
    }

    /// As [`Self::start_lookup`], for any path.
    async fn start_request(
        &self,
        key: &str,
        path: String,
        queued: f64,
    ) -> Result<JoinHandle<Result<ServerReply>>> {
        let (observed, key) = (Arc::clone(&self.observed), key.to_owned());
        let started = tokio::spawn(async move { observed.server.get_as(&key, &path).await });
        wait_until("the fetch does not wait", async || {
            let figures = self.observed.scrape().await?;
            let active = figures.sum("verbatim_supplier_active", &[]);
            Ok((active - 1.0).abs() < 1e-9
                && (figures.sum("verbatim_supplier_queued", &[]) - queued).abs() < 1e-9)
        })
        .await?;
        Ok(started)
    }

    async fn used(&self, key: &str) -> Result<Value> {
        Ok(self.server().get_as(key, "/api/keys/me").await?.json()["used"].clone())
    }

    async fn credits(&self, account: &str) -> Result<Value> {
        Ok(self.server().get_as(account, "/api/v1/me").await?.json()["credits_remaining"].clone())
    }

    async fn check_refused(&self, expect: f64) -> Result<()> {
        let refused = self.observed.scrape().await?.sum("verbatim_fetches_refused_total", &[]);
        ensure!((refused - expect).abs() < 1e-9, "{refused} refused, not {expect}");
        Ok(())
    }
}

fn lookup_path(video: &str) -> String {
    format!("/api/transcript?v={video}")
}

/// Whether `Retry-After` is a time that a client can wait.
fn check_retry_after(reply: &ServerReply) -> Result<()> {
    let seconds: u64 = reply.header("retry-after").parse().context("no Retry-After")?;
    ensure!((1..=120).contains(&seconds), "{seconds}");
    Ok(())
}

/// Checks the responses of all routes to one owner that has no place in the queue.
async fn check_refusals(fixture: &QueueFixture, key: &str, account: &str) -> Result<()> {
    let server = fixture.server();
    let video = VIDEOS[3];
    let reply = timeout(RESPONSE_TIMEOUT, server.get_as(key, &lookup_path(video))).await??;
    let body = reply.json();
    ensure!(reply.status == 200 && body["available"] == json!(false), "{body}");
    ensure!(body["failureReason"] == "fetch_error" && reply.header("x-failure-detail") == "busy", "{body}");
    ensure!(body["failureMessage"].as_str().is_some_and(|text| text.contains("busy")), "{body}");
    check_retry_after(&reply)?;

    let text = format!("{}&format=text", lookup_path(video));
    let reply = timeout(RESPONSE_TIMEOUT, server.get_as(key, &text)).await??;
    ensure!(reply.status == 404 && reply.text().contains("busy"), "{}", reply.text());
    check_retry_after(&reply)?;

    let path = format!("/api/v1/transcript?video_id={video}");
    let reply = timeout(RESPONSE_TIMEOUT, server.get_as(account, &path)).await??;
    ensure!(reply.status == 429 && reply.json()["code"] == json!(429), "{}", reply.text());
    ensure!(reply.json()["error"].as_str().is_some_and(|text| text.contains("nothing was charged")));
    check_retry_after(&reply)?;

    let body = json!({ "video_id": video, "message": "What keeps the grass short?" }).to_string();
    let reply = timeout(RESPONSE_TIMEOUT, server.post_as(account, "/api/v1/chat", body)).await??;
    ensure!(reply.status == 429, "{}", reply.text());
    check_retry_after(&reply)?;
    ensure!(fetch_count(&fixture.proxy, video) == 0, "a refused video was fetched");
    Ok(())
}

/// A full queue refuses at once and without a charge; afterwards the same videos are fetched.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_queue_full_refuses_without_charge() -> Result<()> {
    let fixture = QueueFixture::start().await?;
    let server = fixture.server();
    let account = create_account(server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let keys = create_keys(&fixture.data, 4)?;
    let credits = fixture.credits(&account).await?;
    let mut started = Vec::new();
    // Each fetch has its own owner, so none has a place that it would give way with.
    for (index, queued) in [(0, 0.0), (1, 1.0), (2, 2.0)] {
        started.push(fixture.start_lookup(&keys[index], VIDEOS[index], queued).await?);
    }
    check_refusals(&fixture, &keys[3], &account).await?;
    fixture.check_refused(4.0).await?;
    ensure!(fixture.used(&keys[3]).await? == json!(0), "a refused fetch costs a transcript");
    ensure!(fixture.credits(&account).await? == credits, "a refused fetch costs credits");
    for path in ["/health", "/readyz"] {
        ensure!(timeout(RESPONSE_TIMEOUT, server.get(path)).await??.status == 200, "{path}");
    }

    fixture.gate.add_permits(100);
    for reply in started {
        let body = reply.await??.json();
        ensure!(body["available"] == json!(true), "{body}");
    }
    let reply = server.get_as(&keys[3], &lookup_path(VIDEOS[3])).await?;
    ensure!(reply.json()["fromCache"] == json!(false), "{}", reply.text());
    let path = format!("/api/v1/transcript?video_id={}", VIDEOS[4]);
    let reply = server.get_as(&account, &path).await?;
    ensure!(reply.status == 200 && reply.header("x-cache") == "MISS", "{}", reply.text());
    for key in &keys {
        ensure!(fixture.used(key).await? == json!(1));
    }
    fixture.check_refused(4.0).await
}

/// A key that fills the queue gives way to another key, whose fetch has the next turn.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_queue_full_of_one_key_has_room_for_other() -> Result<()> {
    let fixture = QueueFixture::start().await?;
    let keys = create_keys(&fixture.data, 2)?;
    let mut started = Vec::new();
    for (video, queued) in [(0, 0.0), (1, 1.0), (2, 2.0)] {
        started.push(fixture.start_lookup(&keys[0], VIDEOS[video], queued).await?);
    }
    let other = fixture.start_lookup(&keys[1], VIDEOS[3], 2.0);
    let last = started.pop().context("no fetch")?;
    let (other, refused) = tokio::join!(other, timeout(RESPONSE_TIMEOUT, last));
    let refused = refused???;
    ensure!(refused.header("x-failure-detail") == "busy", "{}", refused.text());
    check_retry_after(&refused)?;
    fixture.gate.add_permits(100);
    started.push(other?);
    for reply in started {
        let body = reply.await??.json();
        ensure!(body["available"] == json!(true), "{body}");
    }
    ensure!(fixture.used(&keys[0]).await? == json!(2), "the refused fetch costs a transcript");
    ensure!(fixture.used(&keys[1]).await? == json!(1));
    Ok(())
}

/// An account with purchased credits takes the place of a free key; a free account does not.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_queue_full_has_room_for_purchased_credits() -> Result<()> {
    let fixture = QueueFixture::start().await?;
    let server = fixture.server();
    let account = create_account(server, &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let keys = create_keys(&fixture.data, 3)?;
    let mut started = Vec::new();
    for (index, queued) in [(0, 0.0), (1, 1.0), (2, 2.0)] {
        started.push(fixture.start_lookup(&keys[index], VIDEOS[index], queued).await?);
    }
    let path = format!("/api/v1/transcript?video_id={}", VIDEOS[3]);
    let reply = timeout(RESPONSE_TIMEOUT, server.get_as(&account, &path)).await??;
    ensure!(reply.status == 429, "a free account has the place of a free key: {}", reply.text());

    let grant = ["accounts", "grant", "ann@example.org", "5"];
    run_ok(verbatim(fixture.data.path(), &grant), b"")?;
    let credits = fixture.credits(&account).await?.as_u64().context("no credits")?;
    let last = started.pop().context("no fetch")?;
    let paid = fixture.start_request(&account, path, 2.0).await?;
    let refused = timeout(RESPONSE_TIMEOUT, last).await???;
    ensure!(refused.header("x-failure-detail") == "busy", "{}", refused.text());
    fixture.gate.add_permits(100);
    let reply = paid.await??;
    ensure!(reply.status == 200, "{}", reply.text());
    for reply in started {
        let body = reply.await??.json();
        ensure!(body["available"] == json!(true), "{body}");
    }
    ensure!(fixture.credits(&account).await? == json!(credits - 1));
    ensure!(fixture.used(&keys[2]).await? == json!(0), "the refused fetch costs a transcript");
    Ok(())
}

/// Requests at the same time: each takes a file of the test process.
const REQUESTS: usize = 200;

/// 2,500 distinct videos at once: those beyond the queue are refused at once and free, and the others are delivered.
#[tokio::test(flavor = "multi_thread")]
async fn fetch_queue_refuses_most_of_many_distinct_misses() -> Result<()> {
    const PLACES: usize = 50;
    let videos: Vec<String> = (0..2_500).map(|number| format!("flood-{number:04}0")).collect();
    let names: Vec<&str> = videos.iter().map(String::as_str).collect();
    let fixture = Arc::new(QueueFixture::start_with(&names, &PLACES.to_string()).await?);
    let keys = create_keys(&fixture.data, 125)?;
    let permits = Arc::new(Semaphore::new(REQUESTS));
    let mut requests = JoinSet::new();
    for (index, video) in videos.iter().enumerate() {
        let (permits, observed) = (Arc::clone(&permits), Arc::clone(&fixture.observed));
        let (key, path) = (keys[index % keys.len()].clone(), lookup_path(video));
        requests.spawn(async move {
            let _permit = permits.acquire_owned().await?;
            observed.server.get_as(&key, &path).await
        });
    }
    let mut refused = 0;
    while refused < videos.len() - PLACES - 1 {
        let reply = timeout(RESPONSE_TIMEOUT, requests.join_next()).await?.context("no reply")???;
        ensure!(reply.header("x-failure-detail") == "busy", "{}", reply.text());
        check_retry_after(&reply)?;
        refused += 1;
        if refused % 500 == 0 {
            let health = timeout(RESPONSE_TIMEOUT, fixture.server().get("/readyz")).await??;
            ensure!(health.status == 200, "not ready in the flood");
        }
    }
    fixture.gate.add_permits(100_000);
    while let Some(reply) = requests.join_next().await {
        let body = reply??.json();
        ensure!(body["available"] == json!(true), "{body}");
    }
    let mut used = 0;
    for key in &keys {
        used += fixture.used(key).await?.as_u64().context("no usage")?;
    }
    ensure!(used == PLACES as u64 + 1, "{used} charged");
    // On a busy machine a fetch is repeated if the gate stays closed for longer than a request may take.
    let fetched = videos.iter().filter(|video| fetch_count(&fixture.proxy, video) > 0).count();
    ensure!(fetched == PLACES + 1, "{fetched} fetched");
    fixture.check_refused(refused as f64).await
}
