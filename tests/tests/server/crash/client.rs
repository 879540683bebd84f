//! A client of the crash tests: it sends one request after the other and records the responses.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::{Result, bail, ensure};
use http::Method;
use hyper_util::{client::legacy::Client as HyperClient, rt::TokioExecutor};
use tokio::sync::watch;

use super::{
    ServerAddresses, WAIT,
    clients::CrashAccount,
    history::{CallHistory, RepeatableCall},
};
use crate::{
    server::harness::{HttpClient, ServerReply, send_with},
    simulation::seeded_rng::SeededRng,
};

/// Longest time that work of a killed server blocks its repeat: its lease, and some more.
const COMPLETION_TIMEOUT: Duration = Duration::from_secs(150);
/// How often a request is repeated at once after its server was killed.
const ATTEMPTS: u32 = 200;
/// Pause between these repeats: the address of a server that was just killed is still in the log.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);
/// Timeout of a response. A request to a killed server may reach another process that got its port and never responds.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(60);
/// Shorter than the expiry of a hold that is neither settled nor renewed.
const HOLD_DURATION: Duration = Duration::from_secs(45);
/// Maximum of replayed requests per client at the end.
const REPEATS_MAX: usize = 60;
/// Part of the message for a fetch that outlasts the wait.
const IN_PROGRESS: &str = "still being transcribed";

/// What the clients of a test share: its videos, and the number of charged responses.
#[derive(Debug)]
pub(super) struct VideoPool {
    archived: Vec<String>,
    fresh: Vec<String>,
    next: AtomicUsize,
    charged: AtomicU64,
}

impl VideoPool {
    pub(super) fn new(archived: Vec<String>, fresh: Vec<String>) -> Self {
        Self { archived, fresh, next: AtomicUsize::new(0), charged: AtomicU64::new(0) }
    }

    /// The number of charged responses of all clients.
    pub(super) fn charged(&self) -> u64 {
        self.charged.load(Ordering::Relaxed)
    }

    /// The next video that was not requested before, as long as there are any.
    fn fresh(&self) -> &str {
        &self.fresh[self.next.fetch_add(1, Ordering::Relaxed) % self.fresh.len()]
    }

    /// A common video: the first half is for requests with idempotency keys, the second for requests without.
    fn common(&self, rng: &SeededRng, keyed: bool) -> &str {
        let half = self.archived.len() / 2;
        rng.pick::<String>(if keyed { &self.archived[..half] } else { &self.archived[half..] })
    }
}

/// Why there is no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionCut {
    /// The connection was refused.
    Unsent,
    /// The connection ended before the response was complete.
    Midway,
}

fn http() -> &'static HttpClient {
    static HTTP: OnceLock<HttpClient> = OnceLock::new();
    HTTP.get_or_init(|| {
        // A connection belongs to the runtime of the test that opened it, so none is kept. The transport repeats no
        // request: the client records each one.
        let mut builder = HyperClient::builder(TokioExecutor::new());
        builder.pool_max_idle_per_host(0).retry_canceled_requests(false);
        builder.build_http()
    })
}

/// Sends one request to one server.
pub(super) async fn send(
    addresses: &ServerAddresses,
    server: &str,
    key: &str,
    path: &str,
    idempotency_key: Option<&str>,
) -> Result<ServerReply, ConnectionCut> {
    let bearer = format!("Bearer {key}");
    let mut headers = vec![("authorization", bearer.as_str())];
    headers.extend(idempotency_key.map(|key| ("idempotency-key", key)));
    let reply = send_with(http(), server, Method::GET, path, &headers, "");
    let Ok(result) = tokio::time::timeout(RESPONSE_TIMEOUT, reply).await else {
        assert!(
            !addresses.has(server),
            "a running server did not respond to {path} within {RESPONSE_TIMEOUT:?}"
        );
        return Err(ConnectionCut::Midway);
    };
    result.map_err(|error| {
        assert!(!error.is::<http::Error>(), "{error}");
        match error.downcast_ref::<hyper_util::client::legacy::Error>() {
            Some(error) if error.is_connect() => ConnectionCut::Unsent,
            _ => ConnectionCut::Midway,
        }
    })
}

/// A request with an idempotency key that has no response yet.
#[derive(Clone, Debug)]
struct OpenRequest {
    path: String,
    video: String,
    /// A server failed to complete it.
    is_doubtful: bool,
    /// The time of its first attempt.
    since: Instant,
}

/// The result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AttemptedCall {
    /// A response, or a final rejection.
    Finished,
    /// The server was killed or not running.
    Interrupted,
    /// Another attempt is running, or the store is unavailable.
    Pending,
}

/// A client with its history.
#[derive(Debug)]
pub(super) struct CrashClient {
    account: CrashAccount,
    addresses: ServerAddresses,
    /// The address of the latest request.
    server: String,
    /// When it was sent.
    sent_at: Instant,
    pool: Arc<VideoPool>,
    rng: SeededRng,
    history: CallHistory,
    /// Requests without a response, by idempotency key.
    open: BTreeMap<String, OpenRequest>,
    request_count: u64,
}

impl CrashClient {
    pub(super) fn new(
        account: CrashAccount,
        addresses: ServerAddresses,
        pool: Arc<VideoPool>,
        rng: SeededRng,
    ) -> Self {
        let history = CallHistory {
            client: account.index,
            addresses: Arc::clone(&addresses),
            ..CallHistory::default()
        };
        let (server, open) = (String::new(), BTreeMap::new());
        let sent_at = Instant::now();
        Self { account, addresses, server, sent_at, pool, rng, history, open, request_count: 0 }
    }

    /// Sends requests until it is stopped, then completes its open requests.
    pub(super) async fn run(mut self, stopped: watch::Receiver<bool>) -> Result<CallHistory> {
        while !*stopped.borrow() {
            match self.rng.below(10) {
                0..=2 => {
                    let video = self.pool.common(&self.rng, false).to_owned();
                    self.request_without_key(&video).await?;
                }
                3 => {
                    let video = self.pool.fresh().to_owned();
                    self.request_without_key(&video).await?;
                }
                4 | 5 => {
                    let video = self.pool.common(&self.rng, true).to_owned();
                    self.request_with_key(video).await?;
                }
                6 => {
                    let video = self.pool.fresh().to_owned();
                    self.request_with_key(video).await?;
                }
                7 => self.repeat_earlier_request().await?,
                8 => {
                    let video = self.pool.common(&self.rng, true).to_owned();
                    self.look_up(&video).await?;
                }
                _ => {
                    let video = self.pool.fresh().to_owned();
                    self.look_up(&video).await?;
                }
            }
        }
        self.finish().await?;
        Ok(self.history)
    }

    async fn send(
        &mut self,
        key: String,
        path: &str,
        idempotency_key: Option<&str>,
    ) -> Result<ServerReply, ConnectionCut> {
        self.request_count += 1;
        self.server = self.addresses.wait_for_address(self.rng.below(8) as usize).await;
        self.sent_at = Instant::now();
        let reply = send(&self.addresses, &self.server, &key, path, idempotency_key).await;
        if reply.as_ref().err() == Some(&ConnectionCut::Midway) {
            self.history.interrupted += 1;
        }
        reply
    }

    async fn send_v1(
        &mut self,
        path: &str,
        idempotency_key: Option<&str>,
    ) -> Result<ServerReply, ConnectionCut> {
        self.send(self.account.account_key.clone(), path, idempotency_key).await
    }

    /// Requests a transcript for credits without an idempotency key: an interrupted request may have been charged once.
    async fn request_without_key(&mut self, video: &str) -> Result<()> {
        let reply = self.send_v1(&format!("/api/v1/transcript?video_id={video}"), None).await;
        match reply {
            Err(ConnectionCut::Unsent) => {}
            Err(ConnectionCut::Midway) => {
                self.history.credit(video).possible += 1;
                self.record_cut(video);
            }
            Ok(reply) if reply.status == 200 => self.record_paid(video, &reply)?,
            Ok(reply) => {
                self.check_rejection(&reply)?;
                self.history.unanswered += u64::from(reply.status != 402);
                // The fetch goes on, and is charged if it archives the transcript.
                self.history.credit(video).possible += u64::from(reply.status.is_server_error());
                self.record_outlasted(video, &reply);
            }
        }
        Ok(())
    }

    /// Records the server of a fetch that outlasts the wait, according to the reply.
    fn record_outlasted(&mut self, video: &str, reply: &ServerReply) {
        if reply.text().contains(IN_PROGRESS) {
            self.record_fetch_left(video);
        }
    }

    /// Records the server of a request that was interrupted: after the wait, the server may have recorded a prepaid
    /// delivery for its fetch.
    fn record_cut(&mut self, video: &str) {
        if self.sent_at.elapsed() >= WAIT {
            self.record_fetch_left(video);
        }
    }

    /// Records the server of a fetch that outlived its request, once per video. A fetch of a second server is charged,
    /// too.
    fn record_fetch_left(&mut self, video: &str) {
        let tally = self.history.credit(video);
        let is_second = !tally.outlasted.is_empty() && !tally.outlasted.contains_key(&self.server);
        tally.possible += u64::from(is_second);
        tally.outlasted.entry(self.server.clone()).or_insert(tally.certain);
    }

    /// Records a delivered, charged response.
    fn record_paid(&mut self, video: &str, reply: &ServerReply) -> Result<()> {
        let text = reply.text();
        ensure!(text.contains(&format!("This is {video}.")), "wrong text for {video}: {text}");
        self.history.delivered_videos.insert(video.to_owned());
        if reply.headers.get("x-credits-remaining").is_none() {
            // The server could not find out whether the hold was settled, and delivered the response anyway.
            self.history.credit(video).possible += 1;
            return Ok(());
        }
        self.history.credit(video).certain += 1;
        self.pool.charged.fetch_add(1, Ordering::Relaxed);
        let left: u64 = reply.header("x-credits-remaining").parse()?;
        // Bounds of the credits that may be spent or held now.
        let (least, most) = self.history.spent_bounds();
        let most = most + self.history.unanswered;
        let gone = self.account.credits.checked_sub(left);
        ensure!(
            gone.is_some_and(|gone| (least..=most).contains(&gone)),
            "client {}: {left} credits are left of {}, but {least} to {most} must be spent or held after the last \
             delivery, of {video} by {}; charges: {:#?}",
            self.account.index,
            self.account.credits,
            self.server,
            self.history.credits
        );
        Ok(())
    }

    /// Checks that a rejection has a reason. A rejected request is not charged.
    fn check_rejection(&self, reply: &ServerReply) -> Result<()> {
        match reply.status.as_u16() {
            402 => {
                let (_, most) = self.history.spent_bounds();
                let most = most + self.history.unanswered;
                ensure!(most >= self.account.credits, "refused with credits left: {}", reply.text());
            }
            // The store is unavailable, or another attempt still runs.
            404 | 409 | 500 | 503 => {}
            status => bail!("{status}: {}", reply.text()),
        }
        Ok(())
    }

    /// Requests a transcript with an idempotency key: charged once in the end, however often it is repeated.
    async fn request_with_key(&mut self, video: String) -> Result<()> {
        let key = format!("client-{}-{}", self.account.index, self.request_count);
        let path = format!("/api/v1/transcript?video_id={video}");
        self.open.insert(key.clone(), OpenRequest { path, video, is_doubtful: false, since: Instant::now() });
        // Repeated at once: while the hold is open, the replay of a stored response settles it.
        for _ in 0..ATTEMPTS {
            if self.attempt(&key).await? != AttemptedCall::Interrupted {
                break;
            }
            tokio::time::sleep(ATTEMPT_PAUSE).await;
        }
        Ok(())
    }

    /// Sends an open request once.
    async fn attempt(&mut self, key: &str) -> Result<AttemptedCall> {
        let Some(OpenRequest { path, video, is_doubtful, since }) = self.open.get(key).cloned() else {
            return Ok(AttemptedCall::Finished);
        };
        let reply = match self.send_v1(&path, Some(key)).await {
            Err(ConnectionCut::Unsent) => return Ok(AttemptedCall::Interrupted),
            Err(ConnectionCut::Midway) => {
                self.history.unanswered += 1;
                self.record_cut(&video);
                return Ok(AttemptedCall::Interrupted);
            }
            Ok(reply) => reply,
        };
        match reply.status.as_u16() {
            200 => {
                if reply.headers.contains_key("idempotent-replayed") {
                    // A replay shows the balance at the time of the hold. A server that could not find out whether the
                    // response was stored has released the hold; one that was killed between storing and settling left
                    // it open for a minute.
                    let is_doubtful = is_doubtful || since.elapsed() > HOLD_DURATION;
                    let tally = self.history.credit(&video);
                    *(if is_doubtful { &mut tally.possible } else { &mut tally.certain }) += 1;
                    self.history.delivered_videos.insert(video);
                } else {
                    self.record_paid(&video, &reply)?;
                }
                let body = reply.body.to_vec();
                self.history.repeatable.push(RepeatableCall { path, key: key.to_owned(), body });
            }
            status @ (409 | 500 | 503) => {
                self.history.unanswered += 1;
                self.record_outlasted(&video, &reply);
                if let Some(open) = self.open.get_mut(key) {
                    open.is_doubtful |= status != 409;
                }
                return Ok(AttemptedCall::Pending);
            }
            // Nothing was stored under the key, so the key is unused. A fetch that outlasted the wait may be charged
            // all the same; the next delivery is prepaid then.
            _ => {
                if is_doubtful {
                    self.history.credit(&video).possible += 1;
                }
                self.check_rejection(&reply)?;
            }
        }
        self.open.remove(key);
        Ok(AttemptedCall::Finished)
    }

    /// Repeats an earlier request, with or without a response.
    async fn repeat_earlier_request(&mut self) -> Result<()> {
        let open: Vec<String> = self.open.keys().cloned().collect();
        if !open.is_empty() && self.rng.chance(500) {
            let key = self.rng.pick(&open).clone();
            return self.attempt(&key).await.map(|_| ());
        }
        if !self.history.repeatable.is_empty() {
            let call = self.rng.pick(&self.history.repeatable).clone();
            self.repeat(&call).await?;
        }
        Ok(())
    }

    /// Repeats a completed request and checks that the replay is equal to the byte. Returns `false` without a response.
    async fn repeat(&mut self, call: &RepeatableCall) -> Result<bool> {
        let Ok(reply) = self.send_v1(&call.path, Some(&call.key)).await else { return Ok(false) };
        if matches!(reply.status.as_u16(), 500 | 503) {
            return Ok(false);
        }
        ensure!(reply.status == 200, "a completed request was rejected: {}", reply.text());
        ensure!(reply.header("idempotent-replayed") == "true", "{} was not replayed", call.key);
        ensure!(reply.body == call.body, "the replay of {} differs", call.key);
        self.history.replayed += 1;
        Ok(true)
    }

    /// Looks a video up with the allowance of the key: only new transcripts are charged.
    async fn look_up(&mut self, video: &str) -> Result<()> {
        let key = self.account.lookup_key.clone();
        match self.send(key, &format!("/api/transcript?v={video}"), None).await {
            Err(ConnectionCut::Unsent) => {}
            Err(ConnectionCut::Midway) => self.history.lookup(video).possible += 1,
            Ok(reply) => {
                ensure!(
                    reply.status == 200,
                    "the lookup API did not respond in-band: {} {}",
                    reply.status,
                    reply.text()
                );
                let body = reply.json();
                if body["available"] == true {
                    let words = format!("This is {video}.");
                    ensure!(body["transcript"][0]["text"] == words, "wrong text for {video}");
                    self.history.delivered_videos.insert(video.to_owned());
                    if body["fromCache"] == false {
                        self.history.lookup(video).certain += 1;
                    }
                } else if is_still_running(body["failureMessage"].as_str().unwrap_or_default()) {
                    self.history.lookup(video).possible += 1;
                }
            }
        }
        Ok(())
    }

    /// Repeats every open request until it is completed, replays many completed ones, and records the final balances.
    async fn finish(&mut self) -> Result<()> {
        let deadline = Instant::now() + COMPLETION_TIMEOUT;
        while let Some(key) = self.open.keys().next().cloned() {
            if self.attempt(&key).await? != AttemptedCall::Finished {
                ensure!(Instant::now() < deadline, "client {}: {key} got no response", self.account.index);
                tokio::time::sleep(Duration::from_millis(250)).await;
            }
        }
        for call in self.history.repeatable.clone().iter().rev().take(REPEATS_MAX) {
            while !self.repeat(call).await? {
                ensure!(Instant::now() < deadline, "client {}: a replay got no response", self.account.index);
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let me =
            self.read_number("/api/v1/me", self.account.account_key.clone(), "credits_remaining").await?;
        let used = self.read_number("/api/keys/me", self.account.lookup_key.clone(), "used").await?;
        self.history.final_state = (me, used);
        Ok(())
    }

    async fn read_number(&mut self, path: &str, key: String, name: &str) -> Result<u64> {
        match self.send(key, path, None).await {
            Ok(reply) => match reply.json()[name].as_u64() {
                Some(value) => Ok(value),
                None => bail!("no {name} in {}", reply.text()),
            },
            Err(connection_cut) => bail!("{path}: {connection_cut:?}"),
        }
    }
}

/// Whether the message of a lookup says that the fetch still runs: it may be charged once.
fn is_still_running(message: &str) -> bool {
    [IN_PROGRESS, "took too long"].iter().any(|text| message.contains(text))
}
