//! What the tests of this crate share: the whole router over stores in memory.

mod selling;

use std::{
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicI64, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use axum::body::Body;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use tokio::{
    runtime::Handle,
    sync::{Mutex, mpsc},
};
use transcript_core::{
    Clock, Random, Timestamp,
    accounts::{
        Accounts, AccountsOptions, AccountsParts, StepByStep,
        mail::{Bell, Letterhead, Mail, MailSender, Mailer, RingingOutbox, RunningSender, SenderParts},
    },
    archive::{Archive, Keep, Wish},
    chat::Chat,
    engine::{EngineOptions, Transcripts},
    lookup::{Lookup, LookupOptions, LookupParts},
    memory::{
        MemoryArchive, MemoryDirectory, MemoryLedger, MemoryOrders, MemoryOutbox, MemoryRateLimiter,
        MemoryReplies, MemorySecrets,
    },
    supplier::{Ask, Supplied, Supplier, SupplierCard, SupplierKind, SupplyError, SupplyReason, Watcher},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use crate::{
    config::{LogFormat, Settings, Sources},
    http::Front,
    log::{Log, LogGuard},
    routes::{App, router},
};

pub(crate) use selling::Selling;

const BASE_URL: &str = "https://v.example";
/// A video that is archived from the start.
pub(crate) const ARCHIVED: &str = "dQw4w9WgXcQ";
/// A video that the supplier has.
pub(crate) const NEW: &str = "aaaaaaaaaaa";
/// A video that has no captions.
pub(crate) const SILENT: &str = "sssssssssss";
/// A video whose supplier panics.
pub(crate) const DEFECT: &str = "ppppppppppp";

/// The router over stores in memory, with a clock that stands still until it is moved.
pub(crate) struct Service {
    pub(crate) front: Front,
    pub(crate) clock: Arc<StoppedClock>,
    pub(crate) archive: Arc<MemoryArchive>,
    pub(crate) asked: Arc<AtomicU32>,
    mails: Mutex<mpsc::UnboundedReceiver<Mail>>,
    _sender: RunningSender,
    _log: LogGuard,
}

/// An answer, whole.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Answer {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl Service {
    pub(crate) async fn start() -> Self {
        Self::with(LookupOptions::default()).await
    }

    pub(crate) async fn with(options: LookupOptions) -> Self {
        Self::made(options, Selling::Sandbox).await
    }

    /// A service that sells so.
    pub(crate) async fn selling(selling: Selling) -> Self {
        Self::made(LookupOptions::default(), selling).await
    }

    async fn made(options: LookupOptions, selling: Selling) -> Self {
        let clock = Arc::new(StoppedClock(AtomicI64::new(1_795_132_800_000)));
        let random = Arc::new(CountingRandom(AtomicU32::new(0)));
        let (archive, ledger) = (Arc::new(MemoryArchive::default()), Arc::new(MemoryLedger::default()));
        let asked = Arc::new(AtomicU32::new(0));
        let transcripts = Transcripts::builder(
            Arc::clone(&archive) as _,
            Arc::clone(&clock) as _,
            Arc::clone(&random) as _,
            Handle::current(),
        )
        .ledger(Arc::clone(&ledger) as _)
        .supplier(Platform::VideoSite, Arc::new(Shelf(Arc::clone(&asked))))
        .options(EngineOptions { wait: Duration::from_secs(5), ..EngineOptions::default() })
        .build();
        let (secrets, limiter) = (MemorySecrets::default(), Arc::new(MemoryRateLimiter::default()));
        let directory = Arc::new(MemoryDirectory::default());
        let bell = Bell::default();
        let outbox = Arc::new(RingingOutbox::new(Arc::new(MemoryOutbox::default()), bell.clone()));
        let (tray, mails) = mpsc::unbounded_channel();
        let sender = SenderParts {
            outbox: Arc::clone(&outbox) as _,
            directory: Arc::clone(&directory) as _,
            mailer: Arc::new(Tray(tray)),
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            letterhead: Letterhead { base_url: BASE_URL.to_owned(), ..Letterhead::default() },
        };
        let sender = MailSender::new(sender, bell).start(&Handle::current());
        let accounts = AccountsParts {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&ledger) as _,
            directory: Arc::clone(&directory) as _,
            charges: steps(&directory, &limiter, &ledger),
            orders: Arc::new(MemoryOrders::default()),
            outbox,
            replies: Arc::new(MemoryReplies::default()),
            limiter: Arc::clone(&limiter) as _,
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            options: AccountsOptions {
                base_url: BASE_URL.to_owned(),
                sells: selling != Selling::Nothing,
                ..AccountsOptions::default()
            },
        };
        let accounts = Accounts::open(accounts, &secrets).await.unwrap();
        let parts = LookupParts {
            transcripts,
            ledger,
            directory,
            limiter,
            clock: Arc::clone(&clock) as _,
            random,
            options: LookupOptions { base_url: BASE_URL.to_owned(), ..options },
        };
        let lookup = Lookup::open(parts, &secrets).await.unwrap();
        let (log, guard) = Log::start(std::io::sink(), LogFormat::Text, true);
        let environment = vec![("VERBATIM_SERVER__CORS_ORIGINS".into(), "https://app.example".into())];
        let sources = Sources { data: "/data".into(), file: None, environment, flags: Vec::new() };
        let settings = Settings::load(sources).unwrap();
        let (payments, sandbox) = selling.till(accounts.parts(), &secrets).await;
        let app = App::new(lookup, accounts, Chat::extractive(Handle::current()), payments, sandbox);
        let routes = router(app.clone(), &settings.server.cors_origins);
        let front = Front::new(routes, vec!["10.0.0.0/8".parse().unwrap()], log).with_ready(app);
        let mails = Mutex::new(mails);
        let service = Self { front, clock, archive, asked, mails, _sender: sender, _log: guard };
        service.keep(transcript(&VideoId::new(Platform::VideoSite, ARCHIVED).unwrap())).await;
        service
    }

    /// Archives a transcript as its video's default.
    pub(crate) async fn keep(&self, transcript: Transcript) {
        let keep = Keep {
            video: transcript.video.clone(),
            wishes: vec![Wish::Default],
            known_tracks: vec![transcript.track.clone()],
            transcript: Arc::new(transcript),
            parser_version: 1,
            replace: false,
            now: self.clock.now(),
        };
        self.archive.keep(keep).await.unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Answer {
        self.send_from("192.0.2.1", request).await
    }

    pub(crate) async fn send_from(&self, peer: &str, request: Request<Body>) -> Answer {
        let peer: IpAddr = peer.parse().unwrap();
        let (head, body) = self.front.answer(request, peer).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        let text = String::from_utf8(bytes.to_vec()).unwrap();
        Answer { status: head.status, headers: head.headers, text }
    }

    pub(crate) async fn get(&self, target: &str) -> Answer {
        self.send(request("GET", target, &[], "")).await
    }

    pub(crate) async fn get_with(&self, target: &str, key: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        self.send(request("GET", target, &[("authorization", &bearer)], "")).await
    }

    /// The next mail that was sent: it waits for one.
    pub(crate) async fn mail(&self) -> Mail {
        self.mails.lock().await.recv().await.unwrap()
    }

    /// The token in the mail that a registration leads to.
    pub(crate) async fn token(&self, email: &str) -> String {
        let body = serde_json::json!({ "email": email }).to_string();
        let answer = self.send(request("POST", "/api/v1/register", &[], &body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mail = self.mail().await;
        let (_, rest) = mail.text.split_once("/api/v1/verify?token=").unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    /// The key of a new account.
    pub(crate) async fn account(&self, email: &str) -> String {
        let token = self.token(email).await;
        let answer = self.get(&format!("/api/v1/verify?token={token}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["api_key"].as_str().unwrap().to_owned()
    }

    /// A new key, in the clear.
    pub(crate) async fn key(&self) -> String {
        let answer = self.send(request("POST", "/api/keys", &[], "")).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["key"].as_str().unwrap().to_owned()
    }
}

/// Charges over these stores.
fn steps(
    directory: &Arc<MemoryDirectory>,
    limiter: &Arc<MemoryRateLimiter>,
    ledger: &Arc<MemoryLedger>,
) -> Arc<StepByStep> {
    let directory = Arc::clone(directory) as _;
    Arc::new(StepByStep { directory, limiter: Arc::clone(limiter) as _, ledger: Arc::clone(ledger) as _ })
}

/// A request; its target and headers may hold any bytes that HTTP can carry.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    // As every client of HTTP/1.1 does.
    let mut request = Request::builder().method(method).uri(target).header("host", "v.example");
    for (name, value) in headers {
        request = request.header(*name, http::HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    request.body(Body::from(body.to_owned())).unwrap()
}

pub(crate) fn transcript(video: &VideoId) -> Transcript {
    Transcript {
        video: video.clone(),
        title: Some("A talk".to_owned()),
        author: Some("Ann".to_owned()),
        duration_ms: Some(60_000),
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "youtube-captions".to_owned(),
        segments: vec![Segment::new("It is so", 1_500, 1_250), Segment::new("quiet here.", 2_750, 2_000)],
    }
}

#[derive(Debug)]
pub(crate) struct StoppedClock(AtomicI64);

impl StoppedClock {
    pub(crate) fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_millis() as i64, Ordering::Relaxed);
    }
}

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(self.0.load(Ordering::Relaxed))
    }
}

/// Where mails end.
#[derive(Debug)]
struct Tray(mpsc::UnboundedSender<Mail>);

#[async_trait]
impl Mailer for Tray {
    async fn send(&self, mail: Mail) -> transcript_core::Result<()> {
        // A test that is over looks into it no more.
        let _ = self.0.send(mail);
        Ok(())
    }
}

#[derive(Debug)]
struct CountingRandom(AtomicU32);

impl Random for CountingRandom {
    fn bytes(&self, count: u32) -> Vec<u8> {
        (0..count)
            .map(|_| (self.0.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_761) >> 24) as u8)
            .collect()
    }
}

/// A supplier with a few videos.
#[derive(Debug)]
struct Shelf(Arc<AtomicU32>);

#[async_trait]
impl Supplier for Shelf {
    fn card(&self) -> SupplierCard {
        SupplierCard {
            name: "youtube-captions".to_owned(),
            platforms: vec![Platform::VideoSite],
            kind: SupplierKind::Captions,
        }
    }

    async fn supply(&self, ask: Ask, _: Arc<dyn Watcher>) -> Result<Supplied, SupplyError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match ask.video.id() {
            SILENT => Err(SupplyError::new(SupplyReason::NoCaptions, "This video\nhas no captions.")),
            DEFECT => panic!("a supplier's defect"),
            _ => Ok(Supplied { tracks: vec![transcript(&ask.video)], known_tracks: Vec::new() }),
        }
    }
}
