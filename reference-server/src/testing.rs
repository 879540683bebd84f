//! Test fixture of this crate: the whole router over in-memory stores.

mod failing_archive;
mod selling;

use std::{
    future::pending,
    net::IpAddr,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
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
    task::JoinSet,
};
use transcript_core::{
    Clock, Timestamp,
    accounts::{
        Accounts, AccountsDeps, AccountsOptions, SequentialCharges,
        mail::{MailMessage, Mailer, NotifyingOutbox, OutboxNotifier},
    },
    archive::{Archive, PutRequest, StoredTranscript, TrackSelector},
    chat::Chat,
    engine::{EngineOptions, Transcripts},
    lookup::{Lookup, LookupDeps, LookupOptions},
    memory::{
        MemoryDirectory, MemoryIdempotencyStore, MemoryJobs, MemoryLedger, MemoryOrders, MemoryOutbox,
        MemoryRateLimiter, MemorySecrets, MemorySessions,
    },
    supplier::{
        LinkResolver, ResolveOutcome, Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput,
        SupplyReason, SupplyRequest,
    },
    test_doubles::ManualClock,
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoDetails, VideoMetadata},
    video::{Platform, ShortLink, VideoId},
};

pub(crate) use transcript_core::test_doubles::SequentialRandom;

use crate::{
    config::{LogFormat, SettingSources, Settings},
    log::{LogGuard, LogQueue},
    mail,
    mcp::PassageCache,
    messages::Messages,
    openapi,
    response_cache::{ResponseCache, ResponseCacheOptions},
    routes::router,
    serve::HttpService,
    state::AppState,
};

use failing_archive::FailingArchive;
pub(crate) use selling::PaymentSetup;

const BASE_URL: &str = "https://v.example";
/// Video that is archived from the start.
pub(crate) const ARCHIVED: &str = "dQw4w9WgXcQ";
/// Video that the supplier has.
pub(crate) const NEW: &str = "aaaaaaaaaaa";
/// Video that the supplier has, with a long transcript.
pub(crate) const LONG: &str = "lllllllllll";
/// Video without captions.
pub(crate) const SILENT: &str = "sssssssssss";
/// Video that the supplier has in French only.
pub(crate) const FRENCH: &str = "fffffffffff";
/// Video for which the platform throttles the supplier for half a minute.
pub(crate) const THROTTLED: &str = "ttttttttttt";
/// Video for which the supplier panics.
pub(crate) const DEFECT: &str = "ppppppppppp";

fn account_options(sells: bool) -> AccountsOptions {
    AccountsOptions { base_url: BASE_URL.to_owned(), sells, ..AccountsOptions::default() }
}

/// Router over in-memory stores, with a manual clock.
pub(crate) struct ServiceFixture {
    pub(crate) http: HttpService,
    pub(crate) app: AppState,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) archive: Arc<FailingArchive>,
    pub(crate) bodies: Arc<ResponseCache>,
    pub(crate) transcripts: Transcripts,
    pub(crate) supplier_calls: Arc<AtomicU32>,
    mails: Mutex<mpsc::UnboundedReceiver<MailMessage>>,
    _sender: JoinSet<()>,
    _log: LogGuard,
}

/// Complete response.
#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl TestResponse {
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

impl ServiceFixture {
    pub(crate) async fn start() -> Self {
        Self::with_options(LookupOptions::default()).await
    }

    pub(crate) async fn with_options(options: LookupOptions) -> Self {
        Self::build(options, PaymentSetup::Sandbox, Chat::extractive(Handle::current())).await
    }

    /// Service whose chat has this model.
    pub(crate) async fn with_chat(chat: Chat) -> Self {
        Self::build(LookupOptions::default(), PaymentSetup::Sandbox, chat).await
    }

    /// Service with these payments.
    pub(crate) async fn with_payments(payment_setup: PaymentSetup) -> Self {
        Self::build(LookupOptions::default(), payment_setup, Chat::extractive(Handle::current())).await
    }

    async fn build(options: LookupOptions, payment_setup: PaymentSetup, chat: Chat) -> Self {
        let clock = Arc::new(ManualClock::new(Timestamp::from_millis(1_795_132_800_000)));
        let random = Arc::new(SequentialRandom::default());
        let (archive, ledger) = (Arc::new(FailingArchive::default()), Arc::new(MemoryLedger::default()));
        let (directory, supplier_calls) = (Arc::new(MemoryDirectory::default()), Arc::new(AtomicU32::new(0)));
        let transcripts = transcripts(&archive, &clock, &random, &supplier_calls);
        let (secrets, limiter) = (MemorySecrets::default(), Arc::new(MemoryRateLimiter::default()));
        let (notifier, jobs) = (OutboxNotifier::default(), MemoryJobs::default());
        let outbox = Arc::new(NotifyingOutbox::new(Arc::new(MemoryOutbox::default()), notifier.clone()));
        let (sent_mails, mails) = mpsc::unbounded_channel();
        let accounts = AccountsDeps {
            transcripts: transcripts.clone(),
            ledger: Arc::clone(&ledger) as _,
            directory: Arc::clone(&directory) as _,
            charges: charges(&directory, &limiter, &ledger),
            orders: Arc::new(MemoryOrders::default()),
            outbox,
            replies: Arc::new(MemoryIdempotencyStore::default()),
            jobs: Arc::new(jobs.clone()),
            webhooks: Arc::new(jobs),
            sessions: Arc::new(MemorySessions::default()),
            limiter: Arc::clone(&limiter) as _,
            clock: Arc::clone(&clock) as _,
            random: Arc::clone(&random) as _,
            options: account_options(!matches!(payment_setup, PaymentSetup::Nothing)),
        };
        let (payments, sandbox) = payment_setup.build(&accounts, &secrets).await;
        let accounts = Accounts::open(accounts, &secrets).await.unwrap();
        let (mailer, texts) = (Arc::new(FakeMailer(sent_mails)), mail::mail_texts(&Messages::built_in()));
        let _sender = JoinSet::from_iter([accounts.keys.mail_sender(mailer, notifier, texts).run(pending())]);
        let lookup = LookupDeps {
            transcripts: transcripts.clone(),
            ledger,
            directory,
            limiter,
            clock: Arc::clone(&clock) as _,
            random,
            entitlements: None,
            options: LookupOptions { base_url: BASE_URL.to_owned(), ..options },
        };
        let lookup = Lookup::open(lookup, &secrets).await.unwrap();
        let (log, _log) = LogQueue::start(std::io::sink(), LogFormat::Text, tracing::Level::INFO);
        let app = AppState::new(
            lookup,
            accounts,
            chat,
            payments,
            sandbox,
            4 << 20,
            ResponseCacheOptions { shared_caching: None, stale_max: Duration::ZERO },
        );
        let bodies = Arc::clone(&app.bodies);
        let passages = PassageCache::new(app.chat.clone());
        let origins = settings_for_pages().server.cors_origins;
        let routes = router(app.clone(), passages, &origins, openapi::document);
        let http = HttpService::new(routes, vec!["10.0.0.0/8".parse().unwrap()], log).with_app(app.clone());
        let mails = Mutex::new(mails);
        let service =
            Self { http, app, clock, archive, bodies, transcripts, supplier_calls, mails, _sender, _log };
        service.keep(transcript(&VideoId::new(Platform::YouTube, ARCHIVED).unwrap())).await;
        service
    }

    /// Archives a transcript as its video's default.
    pub(crate) async fn keep(&self, transcript: Transcript) {
        self.keep_with(transcript, VideoMetadata::default()).await;
    }

    /// Archives a transcript as its video's default, with metadata.
    pub(crate) async fn keep_with(&self, transcript: Transcript, metadata: VideoMetadata) {
        let request = PutRequest {
            video: transcript.video.clone(),
            selectors: vec![TrackSelector::Default],
            known_tracks: vec![transcript.track.clone()],
            transcript: Arc::new(transcript),
            metadata,
            parser_version: 1,
            replace: false,
            now: self.clock.now(),
        };
        self.archive.put(request).await.unwrap();
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> TestResponse {
        self.send_from("192.0.2.1", request).await
    }

    pub(crate) async fn send_from(&self, peer: &str, request: Request<Body>) -> TestResponse {
        let peer: IpAddr = peer.parse().unwrap();
        let (head, body) = self.http.answer(request, peer).await.into_parts();
        let bytes = body.collect().await.unwrap().to_bytes();
        // Documents for download are no text.
        let text = String::from_utf8_lossy(&bytes).into_owned();
        TestResponse { status: head.status, headers: head.headers, text }
    }

    pub(crate) async fn get(&self, target: &str) -> TestResponse {
        self.send(request("GET", target, &[], "")).await
    }

    pub(crate) async fn get_with(&self, target: &str, key: &str) -> TestResponse {
        let bearer = format!("Bearer {key}");
        self.send(request("GET", target, &[("authorization", &bearer)], "")).await
    }

    /// Waits for the next sent mail.
    pub(crate) async fn mail(&self) -> MailMessage {
        self.mails.lock().await.recv().await.unwrap()
    }

    /// Registers an address and returns the token of its mail.
    pub(crate) async fn token(&self, email: &str) -> String {
        let body = serde_json::json!({ "email": email }).to_string();
        let answer = self.send(request("POST", "/api/v1/register", &[], &body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let mail = self.mail().await;
        let (_, rest) = mail.text.split_once("/api/v1/verify?token=").unwrap();
        rest.lines().next().unwrap().to_owned()
    }

    /// Creates an account and returns its key.
    pub(crate) async fn account(&self, email: &str) -> String {
        let token = self.token(email).await;
        let answer = self.get(&format!("/api/v1/verify?token={token}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["api_key"].as_str().unwrap().to_owned()
    }

    /// Creates a lookup API key.
    pub(crate) async fn key(&self) -> String {
        let answer = self.send(request("POST", "/api/keys", &[], "")).await;
        assert_eq!(answer.status, 201, "{answer:?}");
        answer.json()["key"].as_str().unwrap().to_owned()
    }
}

/// Settings that let the pages of one other origin read.
fn settings_for_pages() -> Settings {
    let environment = vec![("VERBATIM_SERVER__CORS_ORIGINS".into(), "https://app.example".into())];
    let sources = SettingSources { data: "/data".into(), file: None, environment, flags: Vec::new() };
    Settings::load(sources).unwrap()
}

/// Charges over these stores.
fn charges(
    directory: &Arc<MemoryDirectory>,
    limiter: &Arc<MemoryRateLimiter>,
    ledger: &Arc<MemoryLedger>,
) -> Arc<SequentialCharges> {
    let directory = Arc::clone(directory) as _;
    Arc::new(SequentialCharges {
        directory,
        limiter: Arc::clone(limiter) as _,
        ledger: Arc::clone(ledger) as _,
    })
}

/// Creates a request; target and headers may hold any bytes that HTTP can carry.
pub(crate) fn request(method: &str, target: &str, headers: &[(&str, &str)], body: &str) -> Request<Body> {
    // HTTP/1.1 requires a host.
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

/// The segments of a long transcript.
pub(crate) fn long_segments() -> Vec<Segment> {
    (0..2_000).map(|n| Segment::new("It is so very quiet.", n * 2_000, 1_000)).collect()
}

/// The transcript as an archive holds it.
pub(crate) fn stored(transcript: Transcript, details: VideoDetails) -> StoredTranscript {
    StoredTranscript {
        transcript: Arc::new(transcript),
        revision: 1,
        content_sha256: vec![0; 32],
        parser_version: 1,
        stored_at: Timestamp::from_millis(0),
        details: Arc::new(details),
    }
}

/// Mailer that sends into a channel.
#[derive(Debug)]
struct FakeMailer(mpsc::UnboundedSender<MailMessage>);

#[async_trait]
impl Mailer for FakeMailer {
    async fn send(&self, mail: MailMessage) -> transcript_core::Result<()> {
        // The receiver is dropped when the test ends.
        let _ = self.0.send(mail);
        Ok(())
    }
}

/// An engine whose supplier counts its calls.
fn transcripts(
    archive: &Arc<FailingArchive>,
    clock: &Arc<ManualClock>,
    random: &Arc<SequentialRandom>,
    supplier_calls: &Arc<AtomicU32>,
) -> Transcripts {
    let (archive, clock, random) = (Arc::clone(archive), Arc::clone(clock), Arc::clone(random));
    Transcripts::builder(archive, clock, random, Handle::current())
        .supplier(Platform::YouTube, Arc::new(FakeSupplier(Arc::clone(supplier_calls))))
        .link_resolver(Platform::TikTok, Arc::new(SilentResolver))
        .options(EngineOptions { wait_timeout: Duration::from_secs(5), ..EngineOptions::default() })
        .build()
}

/// A platform whose short links get no response.
#[derive(Debug)]
struct SilentResolver;

#[async_trait]
impl LinkResolver for SilentResolver {
    async fn resolve(&self, _: &ShortLink, _: Timestamp) -> Result<ResolveOutcome, SupplyError> {
        pending().await
    }
}

/// Supplier with a few videos, in English and Welsh, with a machine translation into French; one is in French only.
#[derive(Debug)]
struct FakeSupplier(Arc<AtomicU32>);

#[async_trait]
impl Supplier for FakeSupplier {
    fn info(&self) -> SupplierInfo {
        SupplierInfo::captions("youtube-captions", &[Platform::YouTube])
    }

    async fn supply(
        &self,
        request: SupplyRequest,
        _: Arc<dyn SupplyMonitor>,
    ) -> Result<SupplyOutput, SupplyError> {
        self.0.fetch_add(1, Ordering::Relaxed);
        match request.video.id() {
            SILENT => Err(SupplyError::new(SupplyReason::NoCaptions, "This video\nhas no captions.")),
            THROTTLED => {
                let reason = SupplyReason::Throttled(Some(Duration::from_secs(30)));
                Err(SupplyError::new(reason, "This video is throttled."))
            }
            // The fuzzer counts every panic as a finding.
            #[cfg(test)]
            DEFECT => panic!("a supplier's defect"),
            _ => {
                let mut supplied = transcript(&request.video);
                if request.video.id() == LONG {
                    supplied.segments = long_segments();
                }
                let is_french = request.video.id() == FRENCH;
                if is_french {
                    supplied.track = TrackInfo::new(LanguageTag::from_canonical("fr"), TrackKind::Human);
                }
                match request.selector.language().map(LanguageTag::as_str) {
                    None => {}
                    Some("en" | "en-GB") if !is_french => {}
                    Some("cy") => {
                        supplied.track = TrackInfo::new(LanguageTag::from_canonical("cy"), TrackKind::Human);
                    }
                    Some("fr") if request.selector.takes(TrackKind::Translated) => {
                        supplied.track =
                            TrackInfo::new(LanguageTag::from_canonical("fr"), TrackKind::Translated);
                    }
                    Some(_) => {
                        let languages = vec![supplied.track];
                        let message = "This video has no captions in this language.";
                        return Err(SupplyError::new(SupplyReason::NoLanguage(languages), message));
                    }
                }
                Ok(SupplyOutput { transcripts: vec![supplied], ..SupplyOutput::default() })
            }
        }
    }
}
