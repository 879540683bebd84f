//! Creates the configured suppliers by name, and the resolver of short links.

use std::sync::Arc;

use transcript_core::{Clock, Error, Result, engine::EngineBuilder, supplier::Supplier, video::Platform};

#[cfg(feature = "lookup")]
use crate::options::entitlements;
use crate::{SystemClock, options::Options};

/// State that suppliers and front ends share.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedTransports {
    /// The videos that other servers request.
    #[cfg(feature = "service")]
    pub(crate) peer_requests: crate::service::PeerRequests,
}

/// Adds the configured suppliers in their order, and the resolver of short links.
///
/// Without suppliers short links are not resolved either: no platform is contacted.
pub(crate) fn add_suppliers(
    mut engine: EngineBuilder,
    options: &Options,
    clock: Arc<dyn Clock>,
    shared: &SharedTransports,
) -> Result<EngineBuilder> {
    options.warn_of_unused_suppliers();
    if supplier_names(options).next().is_none() {
        return Ok(engine);
    }
    let factory = SupplierFactory::open(options, clock, shared)?;
    factory.preload_roots();
    for (platform, name) in supplier_names(options) {
        engine = engine.supplier(platform, supplier(&factory, options, platform, name)?);
    }
    for (name, videos) in options.concurrency.named() {
        engine = engine.concurrency(name, videos);
    }
    let engine = factory.add_video_listers(engine, options);
    Ok(factory.add_link_resolvers(engine, options))
}

/// Supplier names of each platform, in the order in which they are called.
fn supplier_names(options: &Options) -> impl Iterator<Item = (Platform, &str)> {
    Platform::ALL.into_iter().flat_map(|platform| {
        options.suppliers.for_platform(platform).iter().map(move |name| (platform, name.as_str()))
    })
}

/// Whether a platform has a supplier with one of these names.
#[cfg(feature = "upstream")]
fn has_supplier(options: &Options, platform: Platform, names: &[&str]) -> bool {
    options.suppliers.for_platform(platform).iter().any(|name| names.contains(&name.as_str()))
}

/// The supplier of this name: the caller's, or a built-in one.
fn supplier(
    factory: &SupplierFactory,
    options: &Options,
    platform: Platform,
    name: &str,
) -> Result<Arc<dyn Supplier>> {
    match options.custom.suppliers.iter().find(|custom| is_match(custom.as_ref(), platform, name)) {
        Some(custom) => Ok(Arc::clone(custom)),
        None => factory.named(platform, name),
    }
}

/// Whether a supplier of the caller has this name and supports this platform.
fn is_match(custom: &dyn Supplier, platform: Platform, name: &str) -> bool {
    let info = custom.info();
    info.name == name && info.platforms.contains(&platform)
}

impl Options {
    /// Checks the options of suppliers, payments and entitlements, and the caller's ports, without network access.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the invalid setting; [`transcript_core::ErrorKind::Unsupported`]
    /// if the system trusts no certificate.
    pub fn check(&self) -> Result<()> {
        self.check_registration()?;
        #[cfg(feature = "lookup")]
        entitlements(self)?;
        #[cfg(feature = "payments")]
        crate::payments::check(self)?;
        #[cfg(feature = "chat")]
        crate::chat::check(self)?;
        let factory =
            SupplierFactory::open(self, Arc::new(SystemClock::default()), &SharedTransports::default())?;
        for (platform, name) in supplier_names(self) {
            supplier(&factory, self, platform, name)?;
        }
        // Without a thread: a program may fork between this check and its first call.
        factory.load_roots()
    }
}

#[cold]
fn unknown(platform: Platform, name: &str) -> Error {
    Error::invalid(format!("there is no supplier {name:?} for {}", platform.name()))
}

/// Creates the built-in suppliers; all share one transport.
#[cfg(feature = "upstream")]
struct SupplierFactory {
    http: Arc<upstream_reqwest::HttpTransport>,
    youtube: Arc<upstream_reqwest::YouTubeCaptions>,
    tiktok: Arc<upstream_reqwest::TikTokCaptions>,
    x: Arc<upstream_reqwest::XCaptions>,
    #[cfg(feature = "ytdlp")]
    ytdlp: Option<Arc<upstream_reqwest::YtDlp>>,
    links: Arc<upstream_reqwest::HttpShortLinkResolver>,
    lists: Arc<upstream_reqwest::YouTubeLists>,
    #[cfg(feature = "service")]
    service: Option<Arc<dyn Supplier>>,
    #[cfg(feature = "speech")]
    speech: Option<Arc<dyn Supplier>>,
}

#[cfg(feature = "upstream")]
impl SupplierFactory {
    fn open(options: &Options, clock: Arc<dyn Clock>, shared: &SharedTransports) -> Result<Self> {
        use upstream_reqwest::{
            ClientIdentity, HttpShortLinkResolver, HttpTransport, TikTokCaptions, XCaptions, XOptions,
            YouTubeCaptions, YouTubeLists, YouTubeOptions,
        };
        let http = Arc::new(HttpTransport::new(options.upstream.clone())?);
        let clients = &options.youtube.clients;
        let mut youtube = if clients.is_empty() {
            YouTubeOptions::default()
        } else {
            YouTubeOptions::with_clients(clients)?
        };
        if let Some(version) = &options.youtube.web_version {
            youtube.list_client = ClientIdentity::web(version)?;
        }
        let links = HttpShortLinkResolver::new(Arc::clone(&http), Arc::clone(&clock));
        let tiktok = TikTokCaptions::new(Arc::clone(&http), Arc::clone(&clock));
        let x = XOptions::new(options.x.query_id.as_deref(), options.x.features.as_deref())?;
        let x = XCaptions::new(Arc::clone(&http), x, Arc::clone(&clock));
        #[cfg(feature = "ytdlp")]
        let ytdlp = options.ytdlp.program.as_deref().map(|program| {
            upstream_reqwest::YtDlp::new(program, Arc::clone(&http), Arc::clone(&clock)).map(Arc::new)
        });
        let lists = YouTubeLists::new(Arc::clone(&http), youtube.clone(), Arc::clone(&clock));
        let youtube = YouTubeCaptions::new(Arc::clone(&http), youtube, Arc::clone(&clock));
        let factory = Self {
            http,
            youtube: Arc::new(youtube),
            tiktok: Arc::new(tiktok),
            x: Arc::new(x),
            #[cfg(feature = "ytdlp")]
            ytdlp: ytdlp.transpose()?,
            links: Arc::new(links),
            lists: Arc::new(lists),
            #[cfg(feature = "service")]
            service: other_server(options, &clock, shared)?,
            #[cfg(feature = "speech")]
            speech: None,
        };
        let _ = shared;
        #[cfg(feature = "speech")]
        if let Some(speech) = &options.speech {
            let speech = Some(factory.speech_supplier(speech, options, clock)?);
            return Ok(Self { speech, ..factory });
        }
        Ok(factory)
    }

    /// Speech-to-text for the videos of every platform whose media files are found.
    #[cfg(all(feature = "speech", unix))]
    fn speech_supplier(
        &self,
        speech: &upstream_reqwest::SpeechOptions,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Supplier>> {
        use upstream_reqwest::{InstagramMedia, MediaSource, SpeechToText};
        let http = Arc::clone(&self.http);
        let instagram = InstagramMedia::new(Arc::clone(&http), Arc::clone(&clock));
        let mut videos = vec![
            Arc::clone(&self.youtube) as Arc<dyn MediaSource>,
            Arc::clone(&self.tiktok) as _,
            Arc::new(instagram) as _,
            Arc::clone(&self.x) as _,
        ];
        videos.extend(self.ytdlp_media());
        let ca_file = speech.ca_file.clone().or_else(|| options.upstream.ca_file.clone());
        let speech = upstream_reqwest::SpeechOptions { ca_file, ..speech.clone() };
        Ok(Arc::new(SpeechToText::new(http, speech, clock, videos)?))
    }

    /// Media found by yt-dlp, if it is configured.
    #[cfg(all(feature = "speech", feature = "ytdlp", unix))]
    fn ytdlp_media(&self) -> Vec<Arc<dyn upstream_reqwest::MediaSource>> {
        let Some(ytdlp) = &self.ytdlp else { return Vec::new() };
        let of = |platform| Arc::new(upstream_reqwest::YtDlpMedia::new(Arc::clone(ytdlp), platform)) as _;
        Platform::ALL.map(of).into()
    }

    /// Media found by yt-dlp: none in this build.
    #[cfg(all(feature = "speech", not(feature = "ytdlp"), unix))]
    fn ytdlp_media(&self) -> Vec<Arc<dyn upstream_reqwest::MediaSource>> {
        Vec::new()
    }

    /// Speech-to-text: unavailable on this system.
    #[cfg(all(feature = "speech", not(unix)))]
    fn speech_supplier(
        &self,
        _: &upstream_reqwest::SpeechOptions,
        _: &Options,
        _: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Supplier>> {
        Err(Error::unsupported(
            "this build cannot transcribe audio: it lacks the feature speech, or is not for Unix",
        ))
    }

    /// Loads the certificates that the system trusts.
    fn load_roots(&self) -> Result<()> {
        self.http.load_roots()
    }

    /// Starts to load them on a separate thread.
    fn preload_roots(&self) {
        self.http.preload_roots();
    }

    /// Adds the resolver of short links for each platform that has some.
    ///
    /// If all suppliers are the caller's, a platform without one is not contacted.
    fn add_link_resolvers(&self, engine: EngineBuilder, options: &Options) -> EngineBuilder {
        let is_custom = |(platform, name)| {
            options.custom.suppliers.iter().any(|custom| is_match(custom.as_ref(), platform, name))
        };
        let has_built_in = !supplier_names(options).all(is_custom);
        upstream_reqwest::HttpShortLinkResolver::PLATFORMS
            .into_iter()
            .filter(|platform| has_built_in || !options.suppliers.for_platform(*platform).is_empty())
            .fold(engine, |engine, platform| engine.link_resolver(platform, Arc::clone(&self.links) as _))
    }

    /// Adds the listers of platforms with a supplier that requests the platform itself.
    fn add_video_listers(&self, engine: EngineBuilder, options: &Options) -> EngineBuilder {
        let own = ["youtube-captions", "yt-dlp", "speech-to-text"];
        let engine = match has_supplier(options, Platform::YouTube, &own) {
            true => engine.video_lister(Platform::YouTube, Arc::clone(&self.lists) as _),
            false => engine,
        };
        self.add_ytdlp_listers(engine, options)
    }

    /// Adds yt-dlp for TikTok's profiles, and behind the lister of YouTube.
    #[cfg(feature = "ytdlp")]
    fn add_ytdlp_listers(&self, mut engine: EngineBuilder, options: &Options) -> EngineBuilder {
        use upstream_reqwest::YtDlpLists;
        let Some(ytdlp) = &self.ytdlp else { return engine };
        if has_supplier(options, Platform::TikTok, &["yt-dlp"]) {
            let profiles = YtDlpLists::new(Arc::clone(ytdlp));
            engine = engine.video_lister(Platform::TikTok, Arc::new(profiles));
        }
        if has_supplier(options, Platform::YouTube, &["yt-dlp"]) {
            let lists = YtDlpLists::after(Arc::clone(&self.lists), Arc::clone(ytdlp));
            engine = engine.video_lister(Platform::YouTube, Arc::new(lists));
        }
        engine
    }

    #[cfg(not(feature = "ytdlp"))]
    fn add_ytdlp_listers(&self, engine: EngineBuilder, _: &Options) -> EngineBuilder {
        engine
    }

    /// The built-in supplier of this name, for a platform.
    fn named(&self, platform: Platform, name: &str) -> Result<Arc<dyn Supplier>> {
        match (platform, name) {
            (Platform::YouTube, "youtube-captions") => Ok(Arc::clone(&self.youtube) as _),
            (Platform::TikTok, "tiktok-captions") => Ok(Arc::clone(&self.tiktok) as _),
            (Platform::X, "x-captions") => Ok(Arc::clone(&self.x) as _),
            #[cfg(feature = "ytdlp")]
            (_, "yt-dlp") => match &self.ytdlp {
                Some(ytdlp) => Ok(Arc::clone(ytdlp) as _),
                None => Err(Error::invalid("yt-dlp is configured as a supplier, but its program is not set")),
            },
            #[cfg(feature = "service")]
            (_, "verbatim-service") => match &self.service {
                Some(service) => Ok(Arc::clone(service)),
                None => Err(Error::invalid(
                    "verbatim-service is configured as a supplier, but its server is not set",
                )),
            },
            #[cfg(feature = "speech")]
            (platform, "speech-to-text") => match &self.speech {
                Some(speech) if speech.info().platforms.contains(&platform) => Ok(Arc::clone(speech)),
                _ => Err(unknown(platform, name)),
            },
            _ => Err(unknown(platform, name)),
        }
    }
}

/// The other server as a supplier, if it is configured.
#[cfg(feature = "service")]
fn other_server(
    options: &Options,
    clock: &Arc<dyn Clock>,
    shared: &SharedTransports,
) -> Result<Option<Arc<dyn Supplier>>> {
    use upstream_reqwest::service::{ServiceOptions, ServiceSupplier};
    let Some(service) = &options.service else { return Ok(None) };
    let ca_file = service.ca_file.clone().or_else(|| options.upstream.ca_file.clone());
    let options = ServiceOptions { ca_file, ..service.clone() };
    let supplier = ServiceSupplier::new(&options, Arc::clone(clock), shared.peer_requests.clone())?;
    Ok(Some(Arc::new(supplier)))
}

/// A build without suppliers.
#[cfg(not(feature = "upstream"))]
struct SupplierFactory;

#[cfg(not(feature = "upstream"))]
impl SupplierFactory {
    fn open(_: &Options, _: Arc<dyn Clock>, _: &SharedTransports) -> Result<Self> {
        Ok(Self)
    }

    fn load_roots(&self) -> Result<()> {
        Ok(())
    }

    fn preload_roots(&self) {}

    fn add_link_resolvers(&self, engine: EngineBuilder, _: &Options) -> EngineBuilder {
        engine
    }

    fn add_video_listers(&self, engine: EngineBuilder, _: &Options) -> EngineBuilder {
        engine
    }

    fn named(&self, platform: Platform, name: &str) -> Result<Arc<dyn Supplier>> {
        Err(unknown(platform, name))
    }
}
