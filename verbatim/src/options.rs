//! Options of a [`crate::Verbatim`].

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use tokio::runtime::Handle;
#[cfg(feature = "accounts")]
use transcript_core::accounts::AccountsOptions;
#[cfg(feature = "chat")]
use transcript_core::chat::{ChatModel, Embedder};
#[cfg(feature = "lookup")]
use transcript_core::lookup::LookupOptions;
use transcript_core::{
    archive::Archive,
    engine::{AbsencePolicy, BreakerPolicy, EngineObserver},
    supplier::Supplier,
};
#[cfg(feature = "lookup")]
use transcript_core::{directory::Directory, ledger::Ledger};
#[cfg(feature = "upstream")]
use upstream_reqwest::HttpOptions;
#[cfg(feature = "speech")]
use upstream_reqwest::SpeechOptions;
#[cfg(feature = "service")]
use upstream_reqwest::service::ServiceOptions;
#[cfg(feature = "chat-model")]
use upstream_reqwest::{ChatModelOptions, EmbeddingsOptions};

mod builder;
#[cfg(feature = "lookup")]
mod entitlement;
mod registration;
mod suppliers;

#[cfg(feature = "lookup")]
pub use entitlement::EntitlementOptions;
#[cfg(feature = "lookup")]
pub(crate) use entitlement::entitlements;
pub use suppliers::SupplierOptions;

/// Options of the facade.
///
/// The defaults store nothing beyond the process and fetch directly from the platforms. The fields are public; a method
/// that begins with `with_` sets one of the usual ones, or several that belong together:
///
/// ```
/// use std::time::Duration;
///
/// use verbatim::{Options, StorageOptions};
///
/// let options = Options::default()
///     .with_storage(StorageOptions::in_folder("/var/lib/transcripts"))
///     .with_wait(Duration::from_secs(60));
/// options.check().unwrap();
/// ```
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct Options {
    /// Where data is stored.
    pub storage: StorageOptions,
    /// Suppliers of transcripts that are not archived.
    pub suppliers: SupplierOptions,
    /// Network access to the platforms (feature `upstream`).
    #[cfg(feature = "upstream")]
    pub upstream: HttpOptions,
    /// Client identities for YouTube.
    pub youtube: YouTubeOptions,
    /// Query of X.
    pub x: XOptions,
    /// The yt-dlp program. It is called for the platforms whose suppliers name it: `with_ytdlp` does both.
    pub ytdlp: YtDlpOptions,
    /// Speech-to-text for videos without captions; `None`: disabled (feature `speech`, on Unix).
    ///
    /// It is called for the platforms whose suppliers name it: [`Options::with_speech`] does both. Without a `ca_file`
    /// it uses that of [`Options::upstream`], as `chat`, `service` and `checkout` do.
    #[cfg(feature = "speech")]
    pub speech: Option<SpeechOptions>,
    /// Model that answers questions about videos; `None`: the answers are passages of the transcript (feature
    /// `chat-model`).
    #[cfg(feature = "chat-model")]
    pub chat: Option<ChatModelOptions>,
    /// Embedding model of a service, which finds passages by their meaning; `None`: they are found by words (feature
    /// `chat-model`).
    #[cfg(feature = "chat-model")]
    pub embeddings: Option<EmbeddingsOptions>,
    /// Folder of a static embedding model in model2vec format, in place of that of a service; `None`: no such model
    /// (feature `static-embeddings`).
    #[cfg(feature = "static-embeddings")]
    pub embedding_model: Option<PathBuf>,
    /// Another Verbatim server as a supplier, called with a key of its lookup API; `None`: no other server (feature
    /// `service`).
    ///
    /// It is called for the platforms whose suppliers name it: [`Options::with_service`] does both.
    #[cfg(feature = "service")]
    pub service: Option<ServiceOptions>,
    /// Number of videos that each supplier processes concurrently.
    pub concurrency: ConcurrencyOptions,
    /// How many fetches may wait for each supplier (`limits.fetches`).
    #[default(1_000)]
    pub waiting_fetches: u32,
    /// When and for how long the circuit breaker of a failing supplier opens.
    pub breaker: BreakerPolicy,
    /// Observer of the progress of fetches and of the state of suppliers.
    pub observer: Option<Arc<dyn EngineObserver>>,
    /// How long a caller waits for a new transcript (`limits.wait`).
    #[default(Duration::from_secs(25))]
    pub wait: Duration,
    /// How long absences are stored.
    pub absence: AbsencePolicy,
    /// Limits and addresses of the lookup API (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub lookup: LookupOptions,
    /// Plans, prices and limits of the v1 API (feature `accounts`).
    #[cfg(feature = "accounts")]
    pub accounts: AccountsOptions,
    /// Payment provider for packs and plans (feature `payments`).
    #[cfg(feature = "payments")]
    pub checkout: PaymentOptions,
    /// Keys that sign entitlements; `None`: no entitlement is accepted, and every key is free (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub entitlement: Option<EntitlementOptions>,
    /// Whether a fetch without payment continues, and is archived, after its last waiter disconnects or was dropped.
    #[default(true)]
    pub detach_unpaid: bool,
    /// Ports of the caller.
    pub custom: CustomPorts,
}

/// Ports of the caller, in place of those that the other options select.
///
/// [`Options::with_archive`], [`Options::with_supplier`] and similar methods set them. A port that would never be
/// called is an error of [`crate::Verbatim::open`].
#[derive(Clone, Debug, Default)]
pub struct CustomPorts {
    /// The archive; `None`: that of [`Options::storage`], which must not select one itself then: with
    /// [`StorageOptions::Files`] and [`StorageOptions::Postgres`], only keys and ledger are stored there.
    pub archive: Option<Arc<dyn Archive>>,
    /// The ledger; `None`: that of [`Options::storage`] (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The keys and accounts; `None`: those of [`Options::storage`] (feature `lookup`).
    #[cfg(feature = "lookup")]
    pub directory: Option<Arc<dyn Directory>>,
    /// Suppliers; [`SupplierOptions`] must name them like built-in ones. One with a built-in name replaces it.
    ///
    /// [`Options::with_supplier`] adds and names one.
    pub suppliers: Vec<Arc<dyn Supplier>>,
    /// The model that answers questions; `None`: that of [`Options::chat`] (feature `chat`).
    #[cfg(feature = "chat")]
    pub chat_model: Option<Arc<dyn ChatModel>>,
    /// Timeout of an answer of `chat_model`, longer than zero; `None`: 60 s (feature `chat`).
    ///
    /// The embedding model may take half of it.
    #[cfg(feature = "chat")]
    pub chat_timeout: Option<Duration>,
    /// The embedding model that finds passages by their meaning; `None`: that of the other options (feature `chat`).
    #[cfg(feature = "chat")]
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Runtime of the caller, in addition to the one on which the ports are opened.
    ///
    /// Transcripts requested from within it are fetched there
    /// ([`transcript_core::engine::EngineBuilder::caller_runtime`]).
    pub caller_runtime: Option<Handle>,
}

impl Options {
    /// Adds `yt-dlp`, `verbatim-service` and `speech-to-text` as suppliers if their options are set.
    ///
    /// They are called after the suppliers already listed.
    pub fn add_named_sources(&mut self) {
        let named = [
            (self.ytdlp.program.is_some(), "yt-dlp"),
            #[cfg(feature = "service")]
            (self.service.is_some(), "verbatim-service"),
            #[cfg(feature = "speech")]
            (self.speech.is_some(), "speech-to-text"),
        ];
        self.suppliers.add(named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, name)| name));
    }

    /// Sets the base address of all links in both APIs.
    #[cfg(feature = "lookup")]
    pub fn set_base_url(&mut self, address: &str) {
        let address = address.trim_end_matches('/');
        address.clone_into(&mut self.lookup.base_url);
        #[cfg(feature = "accounts")]
        address.clone_into(&mut self.accounts.base_url);
    }
}

/// Storage of transcripts, keys and the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum StorageOptions {
    /// In memory; lost when the process ends.
    #[default]
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

impl StorageOptions {
    /// SQLite files in a folder, with the names that the command uses for its data folder: `verbatim.db` and
    /// `archive.db`. A missing folder is created, with those above it.
    pub fn in_folder(folder: impl AsRef<Path>) -> Self {
        let folder = folder.as_ref();
        Self::Files { main: folder.join("verbatim.db"), archive: folder.join("archive.db") }
    }
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

// The URL may contain a password.
transcript_core::debug_fields!(DatabaseOptions { connections, connect_timeout, timeout, pooler });

/// Payment provider for packs and plans.
#[cfg(feature = "payments")]
#[derive(Clone, Debug, Default)]
pub enum PaymentOptions {
    /// No provider: nothing is sold.
    #[default]
    None,
    /// A built-in checkout without payment, for tests: every visitor of its pages gets free credits.
    ///
    /// Plans without a price have one of [`crate::SAMPLE_PRICES`] there.
    Sandbox,
    /// Stripe (feature `upstream`). The plans and the address of this service are those of [`Options::accounts`].
    #[cfg(feature = "upstream")]
    Stripe(Box<upstream_reqwest::StripeOptions>),
}

/// Number of videos that each supplier processes concurrently, over all platforms; at least 1.
///
/// Further videos wait in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, smart_default::SmartDefault)]
pub struct ConcurrencyOptions {
    /// `youtube-captions`
    #[default(32)]
    pub youtube_captions: u32,
    /// `tiktok-captions`
    #[default(32)]
    pub tiktok_captions: u32,
    /// `x-captions`
    #[default(32)]
    pub x_captions: u32,
    /// `yt-dlp`: each video runs a Python interpreter.
    #[default(2)]
    pub ytdlp: u32,
    /// `verbatim-service`
    #[default(32)]
    pub verbatim_service: u32,
    /// `speech-to-text`: each video needs disk space and runs ffmpeg.
    #[default(4)]
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

/// Client identities for YouTube.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YouTubeOptions {
    /// Client identities to try in order, such as `android@21.26.364`; empty: the built-in ones.
    pub clients: Vec<String>,
    /// The version of the website's client, for playlists, channels and searches; `None`: the built-in one.
    pub web_version: Option<String>,
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

#[cfg(test)]
mod tests;
