//! What a [`crate::Verbatim`] is made of.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use tokio::runtime::Handle;
use transcript_core::{
    accounts::AccountsOptions,
    archive::Archive,
    chat::ChatModel,
    directory::Directory,
    engine::{AbsencePolicy, HealthPolicy, Observer},
    ledger::Ledger,
    lookup::LookupOptions,
    supplier::Supplier,
    video::Platform,
};

use crate::{chat::ChatModelOptions, payments::CheckoutOptions};

/// Everything that can be chosen. The defaults keep nothing beyond the process, and ask the platforms
/// directly.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where everything is kept.
    pub storage: StorageOptions,
    /// Who is asked for transcripts that are not archived.
    pub suppliers: SupplierOptions,
    /// How the platforms are reached.
    pub upstream: UpstreamOptions,
    /// As whom YouTube is asked.
    pub youtube: YouTubeOptions,
    /// How X is asked.
    pub x: XOptions,
    /// The yt-dlp program.
    pub ytdlp: YtDlpOptions,
    /// Who listens to videos without captions; none: nobody does.
    pub speech: Option<SpeechOptions>,
    /// Which model answers questions about videos; none: the transcript's own passages are the answers.
    pub chat: Option<ChatModelOptions>,
    /// Another Verbatim server that is asked for transcripts; none: no other.
    pub service: Option<ServiceOptions>,
    /// With how many videos at once each supplier works.
    pub at_once: AtOnceOptions,
    /// When a supplier that keeps failing rests, and for how long.
    pub health: HealthPolicy,
    /// Who hears how far fetches are, and how well suppliers are.
    pub observer: Option<Arc<dyn Observer>>,
    /// How long a caller waits for a new transcript (`limits.wait`).
    pub wait: Duration,
    /// For how long it is remembered that a video has nothing.
    pub absence: AbsencePolicy,
    /// Limits and addresses of Surface A.
    pub lookup: LookupOptions,
    /// Plans, prices and limits of Surface B.
    pub accounts: AccountsOptions,
    /// Who takes the money for packs and plans.
    pub checkout: CheckoutOptions,
    /// Whose proofs of paid plans are believed; none: nobody's, and every key is free.
    pub entitlement: Option<EntitlementOptions>,
    /// Whether a fetch that nobody pays for goes on when nobody waits for it any more.
    pub outlives: bool,
    /// What the caller brings along.
    pub own: OwnParts,
}

/// Parts that the caller brings along, in place of those that the other options name.
#[derive(Clone, Debug, Default)]
pub struct OwnParts {
    /// The archive; none: that of [`Options::storage`].
    pub archive: Option<Arc<dyn Archive>>,
    /// The ledger; none: that of [`Options::storage`].
    pub ledger: Option<Arc<dyn Ledger>>,
    /// The keys and accounts; none: those of [`Options::storage`].
    pub directory: Option<Arc<dyn Directory>>,
    /// Suppliers, which [`SupplierOptions`] names as their cards do. One of a built-in supplier's name takes its place.
    pub suppliers: Vec<Arc<dyn Supplier>>,
    /// The model that answers questions; none: that of [`Options::chat`].
    pub chat_model: Option<Arc<dyn ChatModel>>,
    /// A runtime beside the one on which the parts are opened: transcripts that are asked for from within it are fetched
    /// there ([`transcript_core::engine::Builder::beside`]).
    pub beside: Option<Handle>,
}

impl Options {
    /// Adds the sources that other options name ([`Options::ytdlp`], [`Options::service`], [`Options::speech`]) to the
    /// suppliers: whoever names one means it to be asked, after those that are there.
    pub fn add_named_sources(&mut self) {
        let named = [
            (self.ytdlp.program.is_some(), "yt-dlp"),
            (self.service.is_some(), "verbatim-service"),
            (self.speech.is_some(), "speech-to-text"),
        ];
        self.suppliers.add(named.into_iter().filter(|(is_named, _)| *is_named).map(|(_, name)| name));
    }

    /// The address that all links of both surfaces begin with.
    pub fn set_base_url(&mut self, address: &str) {
        let address = address.trim_end_matches('/');
        for place in [&mut self.lookup.base_url, &mut self.accounts.base_url] {
            address.clone_into(place);
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
            at_once: AtOnceOptions::default(),
            health: HealthPolicy::default(),
            observer: None,
            wait: Duration::from_secs(25),
            absence: AbsencePolicy::default(),
            lookup: LookupOptions::default(),
            accounts: AccountsOptions::default(),
            checkout: CheckoutOptions::default(),
            entitlement: None,
            outlives: true,
            own: OwnParts::default(),
        }
    }
}

/// Where transcripts, keys and the ledger are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StorageOptions {
    /// In memory: gone with the process.
    Memory,
    /// In memory, of which transcripts take about this many bytes at most: beyond, those of which nothing was kept
    /// for longest are forgotten.
    MemoryUpTo(u64),
    /// In SQLite files, which several processes may share (feature `sqlite`).
    Files {
        /// The file of keys and the ledger.
        main: PathBuf,
        /// The file of transcripts.
        archive: PathBuf,
    },
    /// Transcripts in a SQLite file, the rest in memory: for work that costs nobody anything, and must not
    /// depend on whether the file of keys and the ledger can be used (feature `sqlite`).
    ArchiveFile(PathBuf),
    /// In PostgreSQL databases, which any number of servers may share (feature `postgres`).
    Postgres {
        /// The database of keys and the ledger.
        main: DatabaseOptions,
        /// The database of transcripts; it may be the same one.
        archive: DatabaseOptions,
    },
    /// As [`StorageOptions::ArchiveFile`], in a PostgreSQL database (feature `postgres`).
    ArchivePostgres(DatabaseOptions),
}

/// How a database server is reached.
#[derive(Clone, PartialEq, Eq)]
pub struct DatabaseOptions {
    /// `postgres://USER:PASSWORD@HOST:PORT/DATABASE`, with `sslmode` and `sslrootcert` in its query where they are
    /// wanted.
    pub url: String,
    /// How many connections are open at the same time at most, from 1 to 256.
    pub connections: u32,
    /// How long a connection may take to open.
    pub connect_timeout: Duration,
    /// How long a call waits for the database, repeats included.
    pub timeout: Duration,
    /// Whether connections go by way of a pooler that lends a server connection for each transaction.
    pub pooler: bool,
}

impl DatabaseOptions {
    /// This database, with what is usual for the rest.
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
        // The address may carry a password.
        f.debug_struct("DatabaseOptions")
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("timeout", &self.timeout)
            .field("pooler", &self.pooler)
            .finish_non_exhaustive()
    }
}

/// The suppliers of each platform by name, in the order in which they are asked.
///
/// The names are those of `source` on the wire. This version has `youtube-captions`, `tiktok-captions`,
/// `x-captions`, for every platform and where its program is named `yt-dlp`, where [`Options::service`] names a server
/// `verbatim-service`, and where [`Options::speech`] says who listens `speech-to-text`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SupplierOptions {
    /// For the long-form video site.
    pub video_site: Vec<String>,
    /// For the short-video site.
    pub short_video: Vec<String>,
    /// For the reels site.
    pub reels: Vec<String>,
    /// For the microblog site.
    pub microblog: Vec<String>,
}

impl SupplierOptions {
    /// No supplier at all: only what is archived or imported is found.
    pub fn none() -> Self {
        Self { video_site: Vec::new(), short_video: Vec::new(), reels: Vec::new(), microblog: Vec::new() }
    }

    /// Adds built-in suppliers by name, each for every platform that it covers, after those that are there.
    /// Returns whether there is one of every name.
    pub fn add<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let mut all_known = true;
        for name in names {
            let platforms: &[Platform] = match name {
                "youtube-captions" => &[Platform::VideoSite],
                "tiktok-captions" => &[Platform::ShortVideo],
                "x-captions" => &[Platform::Microblog],
                "yt-dlp" | "verbatim-service" | "speech-to-text" => &Platform::ALL,
                _ => &[],
            };
            all_known &= !platforms.is_empty();
            self.add_for(name, platforms);
        }
        all_known
    }

    /// Adds a supplier that the caller brings along ([`OwnParts::suppliers`]), after those that are there.
    pub fn add_own(&mut self, own: &dyn Supplier) {
        let card = own.card();
        self.add_for(&card.name, &card.platforms);
    }

    fn add_for(&mut self, name: &str, platforms: &[Platform]) {
        for platform in platforms {
            match platform {
                Platform::VideoSite => &mut self.video_site,
                Platform::ShortVideo => &mut self.short_video,
                Platform::Reels => &mut self.reels,
                Platform::Microblog => &mut self.microblog,
            }
            .push(name.to_owned());
        }
    }
}

impl Default for SupplierOptions {
    fn default() -> Self {
        if !cfg!(feature = "upstream") {
            return Self::none();
        }
        let captions = |name: &str| vec![name.to_owned()];
        Self {
            video_site: captions("youtube-captions"),
            short_video: captions("tiktok-captions"),
            reels: Vec::new(),
            microblog: captions("x-captions"),
        }
    }
}

/// With how many videos at once each supplier works, of all platforms together; at least 1. The others wait in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AtOnceOptions {
    /// `youtube-captions`
    pub youtube_captions: u32,
    /// `tiktok-captions`
    pub tiktok_captions: u32,
    /// `x-captions`
    pub x_captions: u32,
    /// `yt-dlp`: each is a Python interpreter of its own.
    pub ytdlp: u32,
    /// `verbatim-service`
    pub verbatim_service: u32,
    /// `speech-to-text`: each takes room on the disk, and runs ffmpeg.
    pub speech_to_text: u32,
}

impl AtOnceOptions {
    /// Each with its supplier's name.
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

impl Default for AtOnceOptions {
    /// 32 for those that only make requests, 2 for yt-dlp, 4 for who listens.
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

/// How the platforms are reached (feature `upstream`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamOptions {
    /// Proxies through which every request leaves, used in turn; none: directly.
    pub proxies: Vec<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take.
    pub timeout: Duration,
    /// How often a request that failed in passing is repeated.
    pub retries: u32,
    /// How many requests run at once.
    pub concurrency: u32,
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

/// As whom YouTube is asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YouTubeOptions {
    /// The client identities to try, in order, such as `android@21.26.364`; none: those built in.
    pub clients: Vec<String>,
}

/// How X is asked: what its servers understand changes every few months.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct XOptions {
    /// The id of the query that gives one post; none: the one built in.
    pub query_id: Option<String>,
    /// The switches that the query is asked with, such as `vibe_api_enabled` or `vibe_api_enabled=false`; none:
    /// those built in.
    pub features: Option<Vec<String>>,
}

/// The yt-dlp program (feature `ytdlp`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YtDlpOptions {
    /// Its path, or its name in the `PATH`; none: it is not asked.
    pub program: Option<PathBuf>,
}

/// Who listens to videos without captions: an OpenAI-compatible speech-to-text service (feature `speech`, on Unix).
/// The ffmpeg program reads the sound.
#[derive(Clone, PartialEq, Eq)]
pub struct SpeechOptions {
    /// Where the service is, `/v1` included.
    pub base_url: String,
    /// Its model.
    pub model: String,
    /// Its key, where it wants one.
    pub api_key: Option<String>,
    /// Longer videos are not listened to.
    pub max_duration: Duration,
    /// The largest upload in bytes.
    pub max_bytes: u64,
    /// The largest file of a platform that is fetched, in bytes.
    pub max_download: u64,
    /// The longest part of a sound that is sent at once.
    pub part: Duration,
    /// In which form parts are sent.
    pub format: SoundFormat,
    /// How long the service may take for one part.
    pub timeout: Duration,
    /// How often a part that failed in passing is sent again.
    pub retries: u32,
    /// How many parts are sent at once, of all videos together.
    pub concurrency: u32,
    /// The ffmpeg program: a path, or a name that is looked for in `PATH`.
    pub ffmpeg: PathBuf,
}

/// Another Verbatim server as a source of transcripts (feature `service`): it is asked with a key of its look-up API.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceOptions {
    /// Its address, to which `/api/…` is added.
    pub base_url: String,
    /// A key of it: `vbk_…`.
    pub api_key: String,
    /// How long it may take to answer once.
    pub timeout: Duration,
}

impl ServiceOptions {
    /// The server at this address, asked with this key, which may take 60 s to answer.
    pub fn new(base_url: impl Into<String>, api_key: impl Into<String>) -> Self {
        Self { base_url: base_url.into(), api_key: api_key.into(), timeout: Duration::from_secs(60) }
    }
}

impl fmt::Debug for ServiceOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the key.
        f.debug_struct("ServiceOptions")
            .field("base_url", &self.base_url)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

/// In which form a service is sent sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SoundFormat {
    /// Opus in Ogg: the smallest.
    Ogg,
    /// FLAC: without loss, five times as large.
    Flac,
    /// WAV: as it is, ten times as large.
    Wav,
}

impl SpeechOptions {
    /// A service at this address with this model, without a key, with the defaults for all else: 4 h, uploads of
    /// 25 MB, files of 1 GB, parts of 10 min in Ogg, 10 min for a part, 3 retries, 2 parts at once.
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
        // Without the key.
        f.debug_struct("SpeechOptions")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Whose proofs of paid plans are believed (feature `entitlement`).
///
/// A proof is a JSON Web Token with `sub`, `plan` (which must be `plus`) and `exp`, signed by one of the keys.
#[derive(Clone, PartialEq, Eq)]
pub struct EntitlementOptions {
    /// A JSON Web Key Set, as JSON: RSA, EC (P-256, P-384), OKP (Ed25519) or oct keys.
    pub keys: String,
    /// The `aud` that a token must have; none: it is not looked at.
    pub audience: Option<String>,
    /// The `iss` that a token must have; none: it is not looked at.
    pub issuer: Option<String>,
}

impl fmt::Debug for EntitlementOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A set may hold a secret.
        f.debug_struct("EntitlementOptions")
            .field("audience", &self.audience)
            .field("issuer", &self.issuer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
