//! Media sources: URLs and downloads of videos, for speech-to-text.

use std::{
    fmt,
    io::{self, SeekFrom},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode, header};
use tokio::{
    fs::File,
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
    time::Instant,
};
use transcript_core::{
    supplier::{SupplyError, SupplyMonitor, SupplyRequest},
    transcript::{LanguageTag, VideoMetadata},
    video::{Platform, VideoId},
};
use url::Url;

use super::{PlatformSession, SocialFailure, TrackDetails};
use crate::http::{BodySink, EgressSession, HttpError, HttpRequest, HttpTransport, is_allowed};

/// Maximum number of URLs per video, and of requests per download.
const ADDRESSES_MAX: usize = 6;
const REQUESTS_MAX: u32 = 12;
/// Maximum number of redirects per URL.
const REDIRECTS_MAX: usize = 3;
/// Name of the download stage, and number of bytes between two progress reports.
const STAGE: &str = "audio";
const REPORT_INTERVAL: u64 = 256 << 10;
/// Number of leading bytes of a file that are checked.
const HEAD_MAX: usize = 64;
/// How much shorter than stated audio may be: the larger of five seconds and a twentieth.
const MISSING_MAX_MS: u64 = 5_000;
const MISSING_RATIO: u64 = 20;

/// Source of the media of one platform's videos.
#[async_trait]
pub trait MediaSource: fmt::Debug + Send + Sync + 'static {
    /// The platform.
    fn platform(&self) -> Platform;

    /// Finds the audio of a video. The track selector is ignored.
    ///
    /// # Errors
    /// [`SupplyError`], with the reasons of a supplier: there is no video, it has no audio, access is restricted,
    /// or the platform does not respond.
    async fn media(&self, request: &SupplyRequest, monitor: &dyn SupplyMonitor)
    -> Result<Media, SupplyError>;
}

/// A video with media URLs.
#[derive(Clone, Debug)]
pub struct Media {
    /// The video.
    pub video: VideoId,
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its author.
    pub author: Option<String>,
    /// Its length in milliseconds, if the platform states it.
    pub duration_ms: Option<u64>,
    /// What else the platform states of it, within the limits of metadata.
    pub metadata: VideoMetadata,
    /// The spoken language, if the platform states it.
    pub language: Option<LanguageTag>,
    /// Whether it has audio, if the platform states it. A video known to be silent is an error instead.
    pub has_audio: Option<bool>,
    /// URLs of its files: the smallest first, all with the same audio.
    pub addresses: Vec<MediaAddress>,
    /// Allowed hosts of the URLs.
    pub(crate) hosts: &'static [&'static str],
    /// Egress route of the platform's response: the URLs may be valid for that route only.
    pub(crate) route: Option<usize>,
}

/// A URL of a video's file.
#[derive(Clone)]
pub struct MediaAddress {
    /// The URL. It is signed, so it is a secret.
    pub url: Url,
    /// Size of the file in bytes, if the platform states it.
    pub bytes: Option<u64>,
    /// Bits per second, if the platform states it.
    pub bitrate: Option<u64>,
    pub(crate) headers: HeaderMap,
    /// URLs of the following parts, if the platform splits the file.
    pub(crate) rest: Vec<Url>,
}

impl Media {
    /// Creates the media from the URLs found in a session.
    ///
    /// `addresses` are in download order; each gets these headers and its cookies of the session.
    pub(crate) fn found(
        session: &PlatformSession<'_>,
        request: &SupplyRequest,
        details: TrackDetails,
        addresses: Vec<MediaAddress>,
        hosts: &'static [&'static str],
        headers: &HeaderMap,
    ) -> Result<Self, SocialFailure> {
        let is_known = |address: &MediaAddress| address.all().all(|url| is_allowed(url, hosts));
        let mut addresses: Vec<_> = addresses.into_iter().filter(is_known).take(ADDRESSES_MAX).collect();
        for address in &mut addresses {
            address.headers = headers.clone();
            if let Some(cookies) = session.cookies_for(&address.url) {
                address.headers.insert(header::COOKIE, cookies);
            }
        }
        if addresses.is_empty() {
            return Err(SocialFailure::Unreadable("it names no video URL on its own hosts".to_owned()));
        }
        Ok(Self {
            video: request.video.clone(),
            title: details.title,
            author: details.author,
            duration_ms: details.duration_ms,
            metadata: details.metadata.cleaned(details.duration_ms),
            language: None,
            has_audio: None,
            addresses,
            hosts,
            route: session.route(),
        })
    }

    /// Downloads the video's file into `file`, which is truncated first, and returns its size in bytes.
    ///
    /// The URLs are tried in order. Progress is reported in bytes, as the stage `audio`.
    ///
    /// # Errors
    /// [`SupplyError`] of the first URL, when none provides a file of at most `bytes_max` bytes within
    /// `timeout`.
    pub async fn download(
        &self,
        http: &Arc<HttpTransport>,
        monitor: &dyn SupplyMonitor,
        file: &mut File,
        bytes_max: u64,
        timeout: Duration,
    ) -> Result<u64, SupplyError> {
        let deadline = Instant::now() + timeout;
        let parts = self.addresses.iter().map(|address| address.rest.len()).max().unwrap_or(0);
        let requests_max = REQUESTS_MAX.saturating_add(u32::try_from(parts).unwrap_or(u32::MAX));
        let mut egress = http.session().with_request_limit(requests_max).with_route(self.route);
        let mut first_failure = None;
        for address in &self.addresses {
            let mut headers = address.headers.clone();
            // Bodies that are streamed to a file are not decompressed.
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let response_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
            let request = HttpRequest::get(address.url.clone(), self.hosts, headers, response_max);
            let mut download = FileDownload::new(file, monitor, address.bytes);
            match download_parts(&mut egress, request, &address.rest, deadline, &mut download).await {
                Ok(()) => return Ok(download.written),
                Err(failure) => {
                    tracing::debug!(video = %self.video, ?failure, "media URL failed");
                    first_failure.get_or_insert(failure);
                }
            }
        }
        let none = || SocialFailure::Unreadable("the video has no URL".to_owned());
        Err(first_failure.unwrap_or_else(none).error(self.video.platform()))
    }
}

impl MediaAddress {
    /// A URL without metadata; `None` if it is invalid.
    pub(crate) fn at(base: &str, address: &str) -> Option<Self> {
        let url = Url::parse(base).and_then(|base| base.join(address)).ok()?;
        Some(Self::in_parts(url, Vec::new()))
    }

    /// The URL of a file's first part, with the URLs of its other parts.
    pub(crate) fn in_parts(url: Url, rest: Vec<Url>) -> Self {
        Self { url, bytes: None, bitrate: None, headers: HeaderMap::new(), rest }
    }

    fn all(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(&self.rest)
    }
}

/// Whether audio of this length is much shorter than stated: a part of it is missing.
pub(crate) fn is_shorter(length_ms: u64, stated_ms: u64) -> bool {
    stated_ms.saturating_sub(length_ms) > MISSING_MAX_MS.max(stated_ms / MISSING_RATIO)
}

/// A download in progress.
struct FileDownload<'a> {
    file: &'a mut File,
    monitor: &'a dyn SupplyMonitor,
    /// Expected size in bytes, if the platform states it.
    expected: Option<u64>,
    of: u64,
    /// Number of bytes of the previous parts.
    kept: u64,
    written: u64,
    reported: u64,
    head: Vec<u8>,
}

impl<'a> FileDownload<'a> {
    fn new(file: &'a mut File, monitor: &'a dyn SupplyMonitor, expected: Option<u64>) -> Self {
        Self { file, monitor, expected, of: 0, kept: 0, written: 0, reported: 0, head: Vec::new() }
    }

    fn report(&mut self) {
        self.reported = self.written;
        // The size that the platform states may be wrong.
        let of = if self.written > self.of { 0 } else { self.of };
        self.monitor.report_progress(STAGE, self.written, of);
    }

    /// Completes the file: flushes it and checks that it is not a page.
    async fn finish(&mut self) -> Result<(), SocialFailure> {
        self.file.flush().await.map_err(|error| SocialFailure::Transport(disk_full(&error)))?;
        self.report();
        check_head(&self.head)
    }
}

#[async_trait]
impl BodySink for FileDownload<'_> {
    async fn begin(&mut self, of: Option<u64>) -> Result<(), HttpError> {
        // The total size of all parts is unknown.
        self.of = of.or(self.expected).filter(|_| self.kept == 0).unwrap_or(0);
        self.written = self.kept;
        self.head.clear();
        // Earlier data may still be buffered.
        self.file.flush().await.map_err(|error| disk_full(&error))?;
        self.file.set_len(self.kept).await.map_err(|error| disk_full(&error))?;
        self.file.seek(SeekFrom::Start(self.kept)).await.map_err(|error| disk_full(&error))?;
        self.report();
        Ok(())
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), HttpError> {
        let missing = HEAD_MAX.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
        self.file.write_all(&bytes).await.map_err(|error| disk_full(&error))?;
        self.written += bytes.len() as u64;
        if self.written.abs_diff(self.reported) >= REPORT_INTERVAL {
            self.report();
        }
        Ok(())
    }
}

/// Reports a write error. The system's message contains no path.
fn disk_full(error: &io::Error) -> HttpError {
    tracing::warn!(%error, "media file write failed");
    HttpError::DiskFull
}

/// Downloads a file in all its parts, in order. Together they have at most `response_max` bytes.
async fn download_parts(
    egress: &mut EgressSession,
    request: HttpRequest,
    rest: &[Url],
    deadline: Instant,
    download: &mut FileDownload<'_>,
) -> Result<(), SocialFailure> {
    download_file(egress, request.clone(), deadline, download).await?;
    for part in rest {
        if download.monitor.is_cancelled() {
            return Err(SocialFailure::Cancelled);
        }
        download.kept = download.written;
        let kept = usize::try_from(download.kept).unwrap_or(usize::MAX);
        let response_max = request.response_max.saturating_sub(kept);
        let request = HttpRequest { url: part.clone(), response_max, ..request.clone() };
        download_file(egress, request, deadline, download).await?;
    }
    Ok(())
}

/// Downloads the file at a URL; follows redirects among the platform's own hosts.
async fn download_file(
    egress: &mut EgressSession,
    mut request: HttpRequest,
    deadline: Instant,
    download: &mut FileDownload<'_>,
) -> Result<(), SocialFailure> {
    for _ in 0..=REDIRECTS_MAX {
        let response =
            egress.download(&request, deadline, download).await.map_err(SocialFailure::Transport)?;
        match response.location.filter(|_| response.status.is_redirection()) {
            Some(location) => {
                if location.host_str() != request.url.host_str() {
                    // The cookies belong to the previous host.
                    request.headers.remove(header::COOKIE);
                }
                request.url = location;
            }
            None => {
                check_status(response.status)?;
                return download.finish().await;
            }
        }
    }
    Err(SocialFailure::Unreadable("it sent too many redirects".to_owned()))
}

/// Checks that a response with this status is a complete file.
fn check_status(status: StatusCode) -> Result<(), SocialFailure> {
    match status {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(SocialFailure::Forbidden(status.as_u16())),
        status => {
            Err(SocialFailure::Unreadable(format!("the video's URL returned HTTP {}", status.as_u16())))
        }
    }
}

/// Checks by its first bytes that the data is a media file.
///
/// Error pages may have status 200; no media file begins like a page.
fn check_head(head: &[u8]) -> Result<(), SocialFailure> {
    match head.iter().find(|c| !c.is_ascii_whitespace()) {
        None => Err(SocialFailure::Unreadable("the video is empty".to_owned())),
        Some(b'<' | b'{' | b'#') => {
            Err(SocialFailure::Unreadable("a page arrived in place of the video".to_owned()))
        }
        Some(_) => Ok(()),
    }
}

// Omits the query, which holds signatures, and the headers, which hold cookies.
transcript_core::debug_fields!(MediaAddress |this| { host: this.url.host_str(), bytes, bitrate });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_url_debug_hides_signature_and_cookies() {
        let mut address = MediaAddress::at("https://a.example", "/b?signature=hush").unwrap();
        address.headers.insert(header::COOKIE, "tt_chain_token=hush".parse().unwrap());
        assert!(!format!("{address:?}").contains("hush"));
    }

    #[test]
    fn media_file_page_is_rejected() {
        assert!(check_head(b"\0\0\0\x20ftypisom").is_ok());
        for head in [&b" <html>"[..], b"{\"a\":1}", b"#EXTM3U", b"", b" \n"] {
            assert!(check_head(head).is_err(), "{head:?}");
        }
        for (status, expect) in [(200, true), (206, false), (204, false), (403, false), (404, false)] {
            assert_eq!(check_status(StatusCode::from_u16(status).unwrap()).is_ok(), expect, "{status}");
        }
    }
}
