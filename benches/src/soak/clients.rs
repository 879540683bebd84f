//! The clients of the soak, each with its rate and the responses that it expects.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use anyhow::Result;
use reqwest::{Client, Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::{
    io::AsyncWriteExt as _,
    net::TcpStream,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep},
};

use super::{
    platform::{is_faulty, video_id},
    samples::RequestLog,
};
use crate::corpus::{Lcg, WordSource};

/// How long a client that reads nothing stays.
const STALL: Duration = Duration::from_secs(20);
/// How long an impatient client waits.
const IMPATIENCE: Duration = Duration::from_millis(30);

/// What a client does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientKind {
    /// Looks up archived transcripts without a key.
    Lookup,
    /// Pays for archived transcripts.
    Transcript,
    /// Reads watch pages.
    Page,
    /// Fetches new transcripts with a lookup key.
    Fetch,
    /// Fetches new transcripts with an account, and leaves at once.
    Abandon,
    /// Asks questions.
    Chat,
    /// Searches as an assistant without a key.
    Search,
    /// Reads its credits.
    Credits,
    /// Sends invalid requests.
    Invalid,
    /// Requests a long answer and reads nothing.
    Stall,
}

impl ClientKind {
    pub(super) const ALL: [Self; 10] = [
        Self::Lookup,
        Self::Transcript,
        Self::Page,
        Self::Fetch,
        Self::Abandon,
        Self::Chat,
        Self::Search,
        Self::Credits,
        Self::Invalid,
        Self::Stall,
    ];
    /// Upper bound of the new videos that all clients request.
    pub(super) const FETCHES_PER_SECOND: u64 = 2;

    /// Requests per minute.
    fn rate(self) -> u32 {
        match self {
            Self::Lookup => 1_800,
            Self::Transcript => 900,
            Self::Page | Self::Credits => 180,
            Self::Fetch | Self::Chat | Self::Search | Self::Invalid => 60,
            Self::Abandon => 20,
            Self::Stall => 6,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Lookup => "lookup",
            Self::Transcript => "transcript",
            Self::Page => "page",
            Self::Fetch => "fetch",
            Self::Abandon => "abandoned",
            Self::Chat => "chat",
            Self::Search => "search",
            Self::Credits => "credits",
            Self::Invalid => "invalid",
            Self::Stall => "stalled",
        }
    }
}

/// All clients of a server.
pub(super) struct SoakClients {
    http: Client,
    address: String,
    account_keys: Vec<String>,
    lookup_key: String,
    archived: u64,
    next_new: AtomicUsize,
    log: Arc<RequestLog>,
}

/// A request, and the statuses that may follow.
struct PlannedRequest {
    request: RequestBuilder,
    expected: &'static [u16],
}

impl SoakClients {
    pub(super) fn new(
        address: &str,
        account_keys: Vec<String>,
        lookup_key: String,
        archived: u64,
        log: &Arc<RequestLog>,
    ) -> Result<Self> {
        let http = Client::builder().no_proxy().build()?;
        let (address, next_new) = (address.to_owned(), AtomicUsize::new(0));
        Ok(Self { http, address, account_keys, lookup_key, archived, next_new, log: Arc::clone(log) })
    }

    /// Sends requests at the client's rate, also while earlier ones are pending.
    pub(super) async fn run(self: Arc<Self>, kind: ClientKind, end: Instant) -> Result<()> {
        let mut ticks = interval(Duration::from_secs(60) / kind.rate());
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut random, mut words) = (Lcg::new(kind as u64 + 1), WordSource::new(kind as u64 + 50));
        let mut pending = JoinSet::new();
        while Instant::now() < end {
            ticks.tick().await;
            while pending.try_join_next().is_some() {}
            let clients = Arc::clone(&self);
            if kind == ClientKind::Stall {
                let path = clients.lookup_path(&mut random);
                pending.spawn(async move { clients.stall(&path).await });
            } else {
                let planned = self.plan(kind, &mut random, &mut words);
                pending.spawn(async move { clients.send(kind, planned).await });
            }
        }
        pending.join_all().await;
        Ok(())
    }

    fn plan(&self, kind: ClientKind, random: &mut Lcg, words: &mut WordSource) -> PlannedRequest {
        let archived = format!("bench-{:05}", random.below(self.archived));
        let path = match kind {
            ClientKind::Lookup | ClientKind::Stall => self.lookup_path(random),
            ClientKind::Transcript => format!("/api/v1/transcript?video_id={archived}"),
            ClientKind::Page => format!("/watch/video_site/{archived}"),
            ClientKind::Fetch | ClientKind::Abandon => return self.plan_fetch(kind),
            ClientKind::Chat => "/api/v1/chat".to_owned(),
            ClientKind::Search => "/mcp".to_owned(),
            ClientKind::Credits => "/api/v1/me".to_owned(),
            ClientKind::Invalid => return self.plan_invalid(random),
        };
        let question = words.generate(6);
        let body = match kind {
            ClientKind::Chat => Some(json!({"video_id": archived, "message": question})),
            ClientKind::Search => Some(json!({
                "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
                    "name": "search_transcript", "arguments": {"video": archived, "query": question},
                },
            })),
            _ => None,
        };
        let mut request = self.request(if body.is_some() { Method::POST } else { Method::GET }, &path);
        if let Some(body) = body {
            request = with_json(request, &body);
        }
        if matches!(kind, ClientKind::Transcript | ClientKind::Chat | ClientKind::Credits) {
            let index = random.below(self.account_keys.len() as u64) as usize;
            request = request.bearer_auth(&self.account_keys[index]);
        }
        PlannedRequest { request, expected: &[200] }
    }

    fn plan_fetch(&self, kind: ClientKind) -> PlannedRequest {
        let number = self.next_new.fetch_add(1, Ordering::Relaxed);
        let id = video_id(number);
        let request = if kind == ClientKind::Fetch {
            self.request(Method::GET, &format!("/api/transcript?v={id}")).bearer_auth(&self.lookup_key)
        } else {
            let key = &self.account_keys[number % self.account_keys.len()];
            self.request(Method::GET, &format!("/api/v1/transcript?video_id={id}"))
                .bearer_auth(key)
                .timeout(IMPATIENCE)
        };
        // The platform fails for some videos; a transient failure is retried later.
        let expected: &[u16] = if is_faulty(number) { &[200, 404, 500, 502, 503, 504] } else { &[200] };
        PlannedRequest { request, expected }
    }

    fn plan_invalid(&self, random: &mut Lcg) -> PlannedRequest {
        let get = |path: &str| self.request(Method::GET, path);
        let (request, expected): (_, &[u16]) = match random.below(6) {
            0 => (get("/api/transcript?v=not%20a%20link"), &[400]),
            1 => (get("/api/v1/transcript?video_id=bench-00000"), &[401]),
            2 => (get("/api/v1/me").bearer_auth("x".repeat(5_000)), &[401]),
            3 => (get("/no/such/page"), &[404]),
            4 => (with_json(self.request(Method::POST, "/mcp"), &json!([1, 2])), &[400]),
            _ => (get(&format!("/api/transcript?v={}", "a".repeat(9_000))), &[400, 414]),
        };
        PlannedRequest { request, expected }
    }

    fn lookup_path(&self, random: &mut Lcg) -> String {
        let format = ["json", "text", "srt", "vtt"][random.below(4) as usize];
        format!("/api/transcript?v=bench-{:05}&format={format}", random.below(self.archived))
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.http.request(method, format!("http://{}{path}", self.address))
    }

    async fn send(&self, kind: ClientKind, planned: PlannedRequest) {
        let started = Instant::now();
        let result = async {
            let response = planned.request.send().await?;
            let status = response.status().as_u16();
            Ok::<_, reqwest::Error>((status, response.bytes().await?))
        };
        match result.await {
            Ok((status, body)) => {
                let details = || String::from_utf8_lossy(&body).chars().take(300).collect();
                let is_expected = planned.expected.contains(&status);
                self.log.record(kind.name(), status.to_string(), started.elapsed(), is_expected, details);
            }
            Err(error) => {
                let is_expected = kind == ClientKind::Abandon && error.is_timeout();
                let outcome = if error.is_timeout() { "left" } else { "failed" };
                let details = || format!("{error:?}");
                self.log.record(kind.name(), outcome.to_owned(), started.elapsed(), is_expected, details);
            }
        }
    }

    /// Requests a transcript many times over one connection, and reads nothing.
    async fn stall(&self, path: &str) {
        let started = Instant::now();
        let head = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        let connection = TcpStream::connect(&self.address).await;
        let is_connected = connection.is_ok();
        if let Ok(mut connection) = connection {
            // The server may disconnect at any time.
            let _ = tokio::time::timeout(STALL, connection.write_all(head.repeat(200).as_bytes())).await;
            sleep(STALL.saturating_sub(started.elapsed())).await;
        }
        let outcome = if is_connected { "connected" } else { "refused" };
        let details = || "no connection".to_owned();
        self.log.record(
            ClientKind::Stall.name(),
            outcome.to_owned(),
            started.elapsed(),
            is_connected,
            details,
        );
    }
}

fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(body.to_string())
}
