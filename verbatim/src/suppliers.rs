//! From the names of suppliers to the suppliers, and to who follows short links.

use std::sync::Arc;

use transcript_core::{Clock, Error, Result, engine::Builder, supplier::Supplier, video::Platform};

#[cfg(feature = "upstream")]
use crate::SpeechOptions;
use crate::{SystemClock, facade::entitlements, options::Options};

/// What suppliers and faces tell each other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    /// The videos that other servers ask for.
    #[cfg(feature = "service")]
    pub(crate) asked: crate::service::AskedByServers,
}

/// Adds the suppliers that the options name, in their order, and who follows short links.
///
/// Without any supplier no platform is asked for anything, so short links are not followed either.
pub(crate) fn supply(
    mut engine: Builder,
    options: &Options,
    clock: Arc<dyn Clock>,
    shared: &Shared,
) -> Result<Builder> {
    if seats(options).next().is_none() {
        return Ok(engine);
    }
    let sources = Sources::open(options, clock, shared)?;
    for (platform, name) in seats(options) {
        engine = engine.supplier(platform, supplier(&sources, options, platform, name)?);
    }
    for (name, videos) in options.at_once.named() {
        engine = engine.at_once(name, videos);
    }
    Ok(sources.follow_links(engine))
}

/// The names of the suppliers of each platform, in the order in which they are asked.
fn seats(options: &Options) -> impl Iterator<Item = (Platform, &str)> {
    let names = &options.suppliers;
    let platforms = [
        (Platform::VideoSite, &names.video_site),
        (Platform::ShortVideo, &names.short_video),
        (Platform::Reels, &names.reels),
        (Platform::Microblog, &names.microblog),
    ];
    platforms
        .into_iter()
        .flat_map(|(platform, names)| names.iter().map(move |name| (platform, name.as_str())))
}

/// The supplier of this name: the caller's own, or a built-in one.
fn supplier(
    sources: &Sources,
    options: &Options,
    platform: Platform,
    name: &str,
) -> Result<Arc<dyn Supplier>> {
    match options.own.suppliers.iter().find(|own| covers(own.as_ref(), platform, name)) {
        Some(own) => Ok(Arc::clone(own)),
        None => sources.named(platform, name),
    }
}

/// Whether a supplier that the caller brought along is the one that is named for a platform.
fn covers(own: &dyn Supplier, platform: Platform, name: &str) -> bool {
    let card = own.card();
    card.name == name && card.platforms.contains(&platform)
}

impl Options {
    /// Whether the options of suppliers, payments and entitlements are sound; asks nobody.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`], naming the setting that is wrong;
    /// [`transcript_core::ErrorKind::Unsupported`] when the system trusts no certificate at all.
    pub fn check(&self) -> Result<()> {
        entitlements(self)?;
        crate::payments::check(self)?;
        crate::chat::check(self)?;
        let sources = Sources::open(self, Arc::new(SystemClock::default()), &Shared::default())?;
        for (platform, name) in seats(self) {
            supplier(&sources, self, platform, name)?;
        }
        sources.wait_for_roots()
    }
}

#[cold]
fn unknown(platform: Platform, name: &str) -> Error {
    Error::invalid(format!("there is no supplier {name:?} for {}", platform.name()))
}

/// What suppliers are made of; one transport for all of them.
#[cfg(feature = "upstream")]
struct Sources {
    http: Arc<upstream_reqwest::Http>,
    youtube: Arc<upstream_reqwest::YouTubeCaptions>,
    tiktok: Arc<upstream_reqwest::TikTokCaptions>,
    x: Arc<upstream_reqwest::XCaptions>,
    #[cfg(feature = "ytdlp")]
    ytdlp: Option<Arc<upstream_reqwest::YtDlp>>,
    links: Arc<upstream_reqwest::ShortLinks>,
    service: Option<Arc<dyn Supplier>>,
    speech: Option<Arc<dyn Supplier>>,
}

#[cfg(feature = "upstream")]
impl Sources {
    fn open(options: &Options, clock: Arc<dyn Clock>, shared: &Shared) -> Result<Self> {
        use upstream_reqwest::{
            Http, HttpOptions, ShortLinks, TikTokCaptions, XCaptions, XOptions, YouTubeCaptions,
            YouTubeOptions,
        };
        let upstream = &options.upstream;
        let http = Arc::new(Http::new(HttpOptions {
            proxies: upstream.proxies.clone(),
            ca_file: upstream.ca_file.clone(),
            timeout: upstream.timeout,
            retries: upstream.retries,
            concurrency: upstream.concurrency,
            ..HttpOptions::default()
        })?);
        let clients = &options.youtube.clients;
        let youtube = if clients.is_empty() {
            YouTubeOptions::default()
        } else {
            YouTubeOptions::with_clients(clients)?
        };
        let links = ShortLinks::new(Arc::clone(&http), Arc::clone(&clock));
        let tiktok = TikTokCaptions::new(Arc::clone(&http), Arc::clone(&clock));
        let x = XOptions::new(options.x.query_id.as_deref(), options.x.features.as_deref())?;
        let x = XCaptions::new(Arc::clone(&http), x, Arc::clone(&clock));
        #[cfg(feature = "ytdlp")]
        let ytdlp = options.ytdlp.program.as_deref().map(|program| {
            upstream_reqwest::YtDlp::new(program, Arc::clone(&http), Arc::clone(&clock)).map(Arc::new)
        });
        let youtube = YouTubeCaptions::new(Arc::clone(&http), youtube, Arc::clone(&clock));
        let mut sources = Self {
            http,
            youtube: Arc::new(youtube),
            tiktok: Arc::new(tiktok),
            x: Arc::new(x),
            #[cfg(feature = "ytdlp")]
            ytdlp: ytdlp.transpose()?,
            links: Arc::new(links),
            service: other_server(options, &clock, shared)?,
            speech: None,
        };
        if let Some(speech) = &options.speech {
            sources.speech = Some(sources.listener(speech, options, clock)?);
        }
        Ok(sources)
    }

    /// Who listens, to the videos of every platform whose files are found.
    #[cfg(all(feature = "speech", unix))]
    fn listener(
        &self,
        speech: &SpeechOptions,
        options: &Options,
        clock: Arc<dyn Clock>,
    ) -> Result<Arc<dyn Supplier>> {
        use upstream_reqwest::{InstagramVideos, MediaSource, SoundFormat, SpeechToText};
        let http = Arc::clone(&self.http);
        let instagram = InstagramVideos::new(Arc::clone(&http), Arc::clone(&clock));
        let mut videos = vec![
            Arc::clone(&self.youtube) as Arc<dyn MediaSource>,
            Arc::clone(&self.tiktok) as _,
            Arc::new(instagram) as _,
            Arc::clone(&self.x) as _,
        ];
        videos.extend(self.found_by_ytdlp());
        let speech = upstream_reqwest::SpeechOptions {
            base_url: speech.base_url.clone(),
            model: speech.model.clone(),
            api_key: speech.api_key.clone(),
            ca_file: options.upstream.ca_file.clone(),
            max_duration: speech.max_duration,
            max_bytes: speech.max_bytes,
            max_download: speech.max_download,
            part: speech.part,
            format: match speech.format {
                crate::SoundFormat::Ogg => SoundFormat::Ogg,
                crate::SoundFormat::Flac => SoundFormat::Flac,
                crate::SoundFormat::Wav => SoundFormat::Wav,
            },
            timeout: speech.timeout,
            retries: speech.retries,
            concurrency: speech.concurrency,
            ffmpeg: speech.ffmpeg.clone(),
        };
        Ok(Arc::new(SpeechToText::new(http, speech, clock, videos)?))
    }

    /// What yt-dlp finds to listen to, where it is configured.
    #[cfg(all(feature = "speech", feature = "ytdlp", unix))]
    fn found_by_ytdlp(&self) -> Vec<Arc<dyn upstream_reqwest::MediaSource>> {
        let Some(ytdlp) = &self.ytdlp else { return Vec::new() };
        let of = |platform| Arc::new(upstream_reqwest::YtDlpSound::new(Arc::clone(ytdlp), platform)) as _;
        Platform::ALL.map(of).into()
    }

    /// What yt-dlp finds to listen to: nothing in this build.
    #[cfg(all(feature = "speech", not(feature = "ytdlp"), unix))]
    fn found_by_ytdlp(&self) -> Vec<Arc<dyn upstream_reqwest::MediaSource>> {
        Vec::new()
    }

    /// Who listens: nobody in this build.
    #[cfg(not(all(feature = "speech", unix)))]
    fn listener(&self, _: &SpeechOptions, _: &Options, _: Arc<dyn Clock>) -> Result<Arc<dyn Supplier>> {
        Err(Error::new(
            transcript_core::ErrorKind::Unsupported,
            transcript_core::Retry::Never,
            "this build listens to no videos: it lacks the feature speech, or is not for Unix",
        ))
    }

    /// Waits for the certificates that the system trusts.
    fn wait_for_roots(&self) -> Result<()> {
        self.http.wait_for_roots()
    }

    /// Adds who follows short links, on each platform that has some.
    fn follow_links(&self, engine: Builder) -> Builder {
        upstream_reqwest::ShortLinks::PLATFORMS
            .into_iter()
            .fold(engine, |engine, platform| engine.resolver(platform, Arc::clone(&self.links) as _))
    }

    /// The supplier of this name, for a platform.
    fn named(&self, platform: Platform, name: &str) -> Result<Arc<dyn Supplier>> {
        match (platform, name) {
            (Platform::VideoSite, "youtube-captions") => Ok(Arc::clone(&self.youtube) as _),
            (Platform::ShortVideo, "tiktok-captions") => Ok(Arc::clone(&self.tiktok) as _),
            (Platform::Microblog, "x-captions") => Ok(Arc::clone(&self.x) as _),
            #[cfg(feature = "ytdlp")]
            (_, "yt-dlp") => match &self.ytdlp {
                Some(ytdlp) => Ok(Arc::clone(ytdlp) as _),
                None => Err(Error::invalid("yt-dlp is named as a supplier, but not where its program is")),
            },
            (_, "verbatim-service") => match &self.service {
                Some(service) => Ok(Arc::clone(service)),
                None => Err(Error::invalid(
                    "verbatim-service is named as a supplier, but not which server that is",
                )),
            },
            (platform, "speech-to-text") => match &self.speech {
                Some(speech) if speech.card().platforms.contains(&platform) => Ok(Arc::clone(speech)),
                _ => Err(unknown(platform, name)),
            },
            _ => Err(unknown(platform, name)),
        }
    }
}

/// The other server that is asked, where one is named.
#[cfg(feature = "service")]
fn other_server(
    options: &Options,
    clock: &Arc<dyn Clock>,
    shared: &Shared,
) -> Result<Option<Arc<dyn Supplier>>> {
    use upstream_reqwest::service::{ServiceOptions, ServiceSupplier};
    let Some(service) = &options.service else { return Ok(None) };
    let options = ServiceOptions {
        ca_file: options.upstream.ca_file.clone(),
        timeout: service.timeout,
        ..ServiceOptions::new(&service.base_url).with_key(&service.api_key)
    };
    let supplier = ServiceSupplier::new(&options, Arc::clone(clock), shared.asked.clone())?;
    Ok(Some(Arc::new(supplier)))
}

/// The other server that is asked: none in this build.
#[cfg(all(feature = "upstream", not(feature = "service")))]
fn other_server(options: &Options, _: &Arc<dyn Clock>, _: &Shared) -> Result<Option<Arc<dyn Supplier>>> {
    match options.service {
        None => Ok(None),
        Some(_) => Err(Error::new(
            transcript_core::ErrorKind::Unsupported,
            transcript_core::Retry::Never,
            "this build asks no other server: it lacks the feature service",
        )),
    }
}

/// A build without suppliers.
#[cfg(not(feature = "upstream"))]
struct Sources;

#[cfg(not(feature = "upstream"))]
impl Sources {
    fn open(_: &Options, _: Arc<dyn Clock>, _: &Shared) -> Result<Self> {
        Ok(Self)
    }

    fn wait_for_roots(&self) -> Result<()> {
        Ok(())
    }

    fn follow_links(&self, engine: Builder) -> Builder {
        engine
    }

    fn named(&self, platform: Platform, name: &str) -> Result<Arc<dyn Supplier>> {
        Err(unknown(platform, name))
    }
}
