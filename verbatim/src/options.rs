//! Options of a [`crate::Verbatim`].

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    accounts::AccountsOptions,
    archive::Archive,
    chat::ChatModel,
    directory::Directory,
    engine::{AbsencePolicy, BreakerPolicy, EngineObserver},
    ledger::Ledger,
    lookup::LookupOptions,
    supplier::Supplier,
};

use crate::chat::ChatModelOptions;
#[cfg(feature = "payments")]
use crate::payments::PaymentOptions;

mod entitlement;
mod suppliers;

pub use entitlement::EntitlementOptions;
pub use suppliers::SupplierOptions;

/// Options of the facade.
///
/// The defaults store nothing beyond the process and fetch directly from the platforms.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where data is stored.
    pub storage: StorageOptions,
    /// Suppliers of transcripts that are not archived.
    pub suppliers: SupplierOptions,
    /// Network access to the platforms.
    pub upstream: UpstreamOptions,
    /// Client identities for YouTube.
    pub youtube: YouTubeOptions,
    /// Query of X.
    pub x: XOptions,
    /// The yt-dlp program.
    pub ytdlp: YtDlpOptions,
    /// Speech-to-text for videos without captions; `None`: disabled.
    pub speech: Option<SpeechOptions>,
    /// Model that answers questions about videos; `None`: the answers are passages of the transcript.
    pub chat: Option<ChatModelOptions>,
    /// Another Verbatim server as a supplier; `None`: no other server.
    pub service: Option<ServiceOptions>,
    /// Number of videos that each supplier processes concurrently.
    pub concurrency: ConcurrencyOptions,
    /// When and for how long the circuit breaker of a failing supplier opens.
    pub breaker: BreakerPolicy,
    /// Observer of the progress of fetches and of the state of suppliers.
    pub observer: Option<Arc<dyn EngineObserver>>,
    /// How long a caller waits for a new transcript (`limits.wait`).
    pub wait: Duration,
    /// How long absences are stored.
    pub absence: AbsencePolicy,
    /// Limits and addresses of the lookup API.
    pub lookup: LookupOptions,
    /// Plans, prices and limits of the v1 API.
    pub accounts: AccountsOptions,
    /// Payment provider for packs and plans (feature `payments`).
    #[cfg(feature = "payments")]
    pub checkout: PaymentOptions,
    /// Keys that sign entitlements; `None`: no entitlement is accepted, and every key is free.
    pub entitlement: Option<EntitlementOptions>,
    /// Whether a fetch without payment continues after its last waiter disconnects.
    pub detach_unpaid: bool,
    /// Ports of the caller.
    pub custom: CustomPorts,
}

/// Ports of the caller, in place of those that the other options select.
#[derive(Clone, Debug, Default)]
pub struct CustomPorts {
    /// The archive; `None`: that of [`Options::storage`].
    pub archive: Option<Arc<dyn Archive>>,
    /// The ledger; `None`: that of [`Options::storage`].
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The keys and accounts; `None`: those of [`Options::storage`].
    pub directory: Option<Arc<dyn Directory>>,
    /// Suppliers; [`SupplierOptions`] names them like built-in ones. One with a built-in name replaces it.
    pub suppliers: Vec<Arc<dyn Supplier>>,
    /// The model that answers questions; `None`: that of [`Options::chat`].
    pub chat_model: Option<Arc<dyn ChatModel>>,
    /// Runtime of the caller, in addition to the one on which the ports are opened.
    ///
    /// Transcripts requested from within it are fetched there
    /// ([`transcript_core::engine::EngineBuilder::caller_runtime`]).
    pub caller_runtime: Option<Handle>,
}

impl Options {
    /// Adds `yt-dlp`, `verbatim-service` and `speech-to-text` as suppliers if their options are set.
    ///
    /// They are called after the suppliers already listed. Setting the options of a supplier is enough to use it.
    pub fn add_named_sources(&mut self) {
        let named = [
            (self.ytdlp.program.is_some(), "yt-dlp"),
            (self.service.is_some(), "verbatim-service"),
            (self.speech.is_some(), "speech-to-text"),
        ];
        self.suppliers.add(named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, name)| name));
    }

    /// Sets the base address of all links in both APIs.
    pub fn set_base_url(&mut self, address: &str) {
        let address = address.trim_end_matches('/');
        for base_url in [&mut self.lookup.base_url, &mut self.accounts.base_url] {
            address.clone_into(base_url);
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            storage: StorageOptions::Memory,
            suppliers: SupplierOptions::default(),
            upstream: UpstreamOptions::default(),
            youtube: YouTubeOptions::default(),
            x: XOptions::default(),
            ytdlp: YtDlpOptions::default(),
            speech: None,
            chat: None,
            service: None,
            concurrency: ConcurrencyOptions::default(),
            breaker: BreakerPolicy::default(),
            observer: None,
            wait: Duration::from_secs(25),
            absence: AbsencePolicy::default(),
            lookup: LookupOptions::default(),
            accounts: AccountsOptions::default(),
            #[cfg(feature = "payments")]
            checkout: PaymentOptions::default(),
            entitlement: None,
            detach_unpaid: true,
            custom: CustomPorts::default(),
        }
    }
}

/// Storage of transcripts, keys and the ledger.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageOptions {
    /// In memory; lost when the process ends.
    Memory,
    /// In memory, with about this many bytes for transcripts.
    ///
    /// Above that, the videos whose last stored transcript is oldest are evicted.
    BoundedMemory(u64),
    /// In SQLite files, which several processes can share (feature `sqlite`).
    Files {
        /// File of the keys and the ledger.
        main: PathBuf,
        /// File of the transcripts.
        archive: PathBuf,
    },
    /// Transcripts in a SQLite file, the rest in memory (feature `sqlite`).
    ///
    /// For work without charges that must not depend on the file of the keys and the ledger.
    ArchiveFile(PathBuf),
    /// In PostgreSQL databases, which any number of servers can share (feature `postgres`).
    Postgres {
        /// Database of the keys and the ledger.
        main: DatabaseOptions,
        /// Database of the transcripts; it may be the same one.
        archive: DatabaseOptions,
    },
    /// Like [`StorageOptions::ArchiveFile`], in a PostgreSQL database (feature `postgres`).
    ArchivePostgres(DatabaseOptions),
}

/// Connection settings of a database server.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `sslmode` and `sslrootcert` as query options.
    pub url: String,
    /// Maximum number of open connections, from 1 to 256.
    pub connections: u32,
    /// Timeout for opening a connection.
    pub connect_timeout: Duration,
    /// Timeout of a database call, retries included.
    pub timeout: Duration,
    /// Whether connections go through a pooler that assigns a server connection per transaction.
    pub pooler: bool,
}

impl DatabaseOptions {
    /// This database, with default values for the rest.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            connections: 16,
            connect_timeout: Duration::from_secs(2),
            timeout: Duration::from_secs(5),
            pooler: false,
        }
    }
}

impl fmt::Debug for DatabaseOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The URL may contain a password.
        f.debug_struct("DatabaseOptions")
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("pooler", &self.pooler)
            .finish_non_exhaustive()
    }
}

/// Number of videos that each supplier processes concurrently, over all platforms; at least 1.
///
/// Further videos wait in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConcurrencyOptions {
    /// `youtube-captions`
    pub youtube_captions: u32,
    /// `tiktok-captions`
    pub tiktok_captions: u32,
    /// `x-captions`
    pub x_captions: u32,
    /// `yt-dlp`: each video runs a Python interpreter.
    pub ytdlp: u32,
    /// `verbatim-service`
    pub verbatim_service: u32,
    /// `speech-to-text`: each video needs disk space and runs ffmpeg.
    pub speech_to_text: u32,
}

impl ConcurrencyOptions {
    /// Limit of each supplier, with its name.
    pub(crate) fn named(self) -> [(&'static str, u32); 6] {
        [
            ("youtube-captions", self.youtube_captions),
            ("tiktok-captions", self.tiktok_captions),
            ("x-captions", self.x_captions),
            ("yt-dlp", self.ytdlp),
            ("verbatim-service", self.verbatim_service),
            ("speech-to-text", self.speech_to_text),
        ]
    }
}

impl Default for ConcurrencyOptions {
    /// 32 for suppliers that only make requests, 2 for yt-dlp, 4 for speech-to-text.
    fn default() -> Self {
        Self {
            youtube_captions: 32,
            tiktok_captions: 32,
            x_captions: 32,
            ytdlp: 2,
            verbatim_service: 32,
            speech_to_text: 4,
        }
    }
}

/// Network access to the platforms (feature `upstream`).
#[derive(Clone, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// Proxies for all requests, used in rotation; empty: direct connections.
    pub proxies: Vec<String>,
    /// PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Timeout of one request.
    pub timeout: Duration,
    /// Maximum number of retries after a transient error.
    pub retries: u32,
    /// Maximum number of concurrent requests.
    pub concurrency: u32,
}

impl fmt::Debug for UpstreamOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address of a proxy may contain a password.
        f.debug_struct("UpstreamOptions")
            .field("proxies", &self.proxies.len())
            .field("ca_file", &self.ca_file)
            .field("timeout", &self.timeout)
            .field("retries", &self.retries)
            .field("concurrency", &self.concurrency)
            .finish()
    }
}

impl Default for UpstreamOptions {
    fn default() -> Self {
        Self {
            proxies: Vec::new(),
            ca_file: None,
            timeout: Duration::from_secs(20),
            retries: 2,
            concurrency: 32,
        }
    }
}

/// Client identities for YouTube.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YouTubeOptions {
    /// Client identities to try in order, such as `android@21.26.364`; empty: the built-in ones.
    pub clients: Vec<String>,
}

/// Query of X; its servers change the accepted values every few months.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XOptions {
    /// Id of the query for one post; `None`: the built-in one.
    pub query_id: Option<String>,
    /// Feature switches of the query; `None`: the built-in ones.
    ///
    /// Each is a name such as `vibe_api_enabled`, or a name with a value such as `vibe_api_enabled=false`.
    pub features: Option<Vec<String>>,
}

/// The yt-dlp program (feature `ytdlp`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YtDlpOptions {
    /// Path, or name in `PATH`; `None`: yt-dlp is not used.
    pub program: Option<PathBuf>,
}

/// Speech-to-text for videos without captions (feature `speech`, on Unix).
///
/// The service is OpenAI-compatible; the ffmpeg program decodes the audio.
#[derive(Clone, PartialEq, Eq)]
pub struct SpeechOptions {
    /// Address of the service, `/v1` included.
    pub base_url: String,
    /// Model of the service.
    pub model: String,
    /// API key, if the service needs one.
    pub api_key: Option<String>,
    /// Maximum duration of a video; longer ones are not transcribed.
    pub max_duration: Duration,
    /// Maximum size of an upload in bytes.
    pub max_bytes: u64,
    /// Maximum size of a media file from a platform, in bytes.
    pub max_download: u64,
    /// Maximum duration of one audio chunk.
    pub part: Duration,
    /// Encoding of the audio chunks.
    pub format: SoundFormat,
    /// Timeout of the service for one chunk.
    pub timeout: Duration,
    /// Maximum number of retries of a chunk after a transient error.
    pub retries: u32,
    /// Maximum number of concurrent chunks, over all videos.
    pub concurrency: u32,
    /// The ffmpeg program: a path, or a name in `PATH`.
    pub ffmpeg: PathBuf,
}

/// Another Verbatim server as a supplier, called with an API key of its lookup API (feature `service`).
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Base address, to which `/api/…` is appended.
    pub base_url: String,
    /// API key of that server: `vbk_…`.
    pub api_key: String,
    /// Timeout of one response.
    pub timeout: Duration,
}

impl ServiceOptions {
    /// The server at this address with this API key and a timeout of 60 s.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), api_key: api_key.into(), timeout: Duration::from_secs(60) }
    }
}

impl fmt::Debug for ServiceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the API key.
        f.debug_struct("ServiceOptions")
            .field("base_url", &self.base_url)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// Encoding of audio chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoundFormat {
    /// Opus in Ogg: the smallest.
    Ogg,
    /// FLAC: lossless, five times as large.
    Flac,
    /// WAV: uncompressed, ten times as large.
    Wav,
}

impl SpeechOptions {
    /// The service at this address with this model, without an API key.
    ///
    /// Defaults: videos up to 4 h, uploads up to 25 MB, media files up to 1 GB, chunks up to 10 min in Ogg, a timeout
    /// of 10 min per chunk, 3 retries, 2 concurrent chunks.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: None,
            max_duration: Duration::from_secs(4 * 3_600),
            max_bytes: 25_000_000,
            max_download: 1_000_000_000,
            part: Duration::from_secs(600),
            format: SoundFormat::Ogg,
            timeout: Duration::from_secs(600),
            retries: 3,
            concurrency: 2,
            ffmpeg: PathBuf::from("ffmpeg"),
        }
    }
}

impl fmt::Debug for SpeechOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the API key.
        f.debug_struct("SpeechOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
