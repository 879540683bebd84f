//! Where the sound of a video is, for whoever listens to it.

use std::{
    fmt,
    io::{self, SeekFrom},
    sync::Arc,
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use tokio::{
    fs::File,
    io::{AsyncSeekExt as _, AsyncWriteExt as _},
    time::Instant,
};
use transcript_core::{
    supplier::{Ask, SupplyError, Watcher},
    time::Timestamp,
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use url::Url;

use super::{Details, Errand, Refusal};
use crate::http::{Http, HttpFault, Request, Sink, Visit, is_allowed};

/// The most addresses of one video that are kept, and requests of one download.
const ADDRESSES_MAX: usize = 6;
const REQUESTS_MAX: u32 = 12;
/// How many redirects of one address are followed.
const REDIRECTS_MAX: usize = 3;
/// The name of the stage in which a file is fetched, and how many bytes come between two reports of it.
const STAGE: &str = "audio";
const TELL_EVERY: u64 = 256 << 10;
/// How much of a file's beginning is looked at.
const HEAD_MAX: usize = 64;

/// A platform's videos, as something to listen to.
#[async_trait]
pub trait MediaSource: fmt::Debug + Send + Sync + 'static {
    /// The platform.
    fn platform(&self) -> Platform;

    /// Finds where the sound of a video is. The wish does not matter.
    ///
    /// # Errors
    /// [`SupplyError`], with the same reasons as a supplier's: there is no video, or none with sound, or
    /// nobody may see it, or the platform does not answer.
    async fn media(&self, ask: &Ask, watcher: &dyn Watcher) -> Result<Media, SupplyError>;
}

/// A video that can be listened to.
#[derive(Clone, Debug)]
pub struct Media {
    /// The video.
    pub video: VideoId,
    /// Its title, where it has one.
    pub title: Option<String>,
    /// Who made it.
    pub author: Option<String>,
    /// How long it is, in milliseconds, where the platform says so.
    pub duration_ms: Option<u64>,
    /// The language that is spoken, where the platform says so.
    pub language: Option<LanguageTag>,
    /// Whether it has sound, where the platform says so. A video that is known to have none is a failure.
    pub has_audio: Option<bool>,
    /// Where it is: the smallest file first, all with the same sound.
    pub addresses: Vec<MediaAddress>,
    /// The hosts that these may lead to.
    pub(crate) hosts: &'static [&'static str],
    /// The way out through which the platform told of it: addresses may be good for that one only.
    pub(crate) exit: Option<usize>,
}

/// One address of a video's file.
#[derive(Clone)]
pub struct MediaAddress {
    /// The address. It is signed, so it is nobody else's business.
    pub url: Url,
    /// The file's length in bytes, where the platform says so.
    pub bytes: Option<u64>,
    /// Its bits a second, where the platform says so.
    pub bitrate: Option<u64>,
    /// When it runs out, where it says so.
    pub expires: Option<Timestamp>,
    pub(crate) headers: HeaderMap,
    /// What comes after it in the same file, where a platform has it in parts only.
    pub(crate) rest: Vec<Url>,
}

impl Media {
    /// What was found on an errand. `addresses` come in the order in which they are asked; each gets these
    /// headers, and the cookies of the errand that belong to it.
    pub(crate) fn found(
        errand: &Errand<'_>,
        ask: &Ask,
        details: Details,
        addresses: Vec<MediaAddress>,
        hosts: &'static [&'static str],
        headers: &HeaderMap,
    ) -> Result<Self, Refusal> {
        let is_known = |address: &MediaAddress| address.all().all(|url| is_allowed(url, hosts));
        let mut addresses: Vec<_> = addresses.into_iter().filter(is_known).take(ADDRESSES_MAX).collect();
        for address in &mut addresses {
            address.headers = headers.clone();
            if let Some(cookies) = errand.cookies_for(&address.url) {
                address.headers.insert(header::COOKIE, cookies);
            }
        }
        if addresses.is_empty() {
            return Err(Refusal::Unreadable("it names no address of the video that is its own".to_owned()));
        }
        Ok(Self {
            video: ask.video.clone(),
            title: details.title,
            author: details.author,
            duration_ms: details.duration_ms,
            language: None,
            has_audio: None,
            addresses,
            hosts,
            exit: errand.exit(),
        })
    }

    /// Fetches the video's file into `file`, which is emptied before, from the first address that gives it, and
    /// returns its length in bytes. The watcher hears how far it is, in bytes, as the stage `audio`.
    ///
    /// # Errors
    /// [`SupplyError`]: what was wrong with the first address, when none gives a file of at most `bytes_max`
    /// bytes within `patience`.
    pub async fn download(
        &self,
        http: &Arc<Http>,
        watcher: &dyn Watcher,
        file: &mut File,
        bytes_max: u64,
        patience: Duration,
    ) -> Result<u64, SupplyError> {
        let deadline = Instant::now() + patience;
        let parts = self.addresses.iter().map(|address| address.rest.len()).max().unwrap_or(0);
        let requests_max = REQUESTS_MAX.saturating_add(u32::try_from(parts).unwrap_or(u32::MAX));
        let mut visit = http.visit().at_most(requests_max).through(self.exit);
        let mut told = None;
        for address in &self.addresses {
            let mut headers = address.headers.clone();
            // What is poured into a file is not undone.
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static("identity"));
            let request = Request {
                method: Method::GET,
                url: address.url.clone(),
                hosts: self.hosts,
                headers,
                body: Bytes::new(),
                answer_max: usize::try_from(bytes_max).unwrap_or(usize::MAX),
                throttled_apart: false,
            };
            let mut filing = Filing::new(file, watcher, address.bytes);
            match gather(&mut visit, request, &address.rest, deadline, &mut filing).await {
                Ok(()) => return Ok(filing.written),
                Err(refusal) => {
                    tracing::debug!(video = %self.video, ?refusal, "no file at this address");
                    told.get_or_insert(refusal);
                }
            }
        }
        let none = || Refusal::Unreadable("the video has no address".to_owned());
        Err(told.unwrap_or_else(none).error(self.video.platform()))
    }
}

impl MediaAddress {
    /// An address of which nothing else is known; none when it is none.
    pub(crate) fn at(base: &str, address: &str) -> Option<Self> {
        let url = Url::parse(base).and_then(|base| base.join(address)).ok()?;
        Some(Self::in_parts(url, Vec::new()))
    }

    /// The address of a file of which this is the first part, and these are the others.
    pub(crate) fn in_parts(url: Url, rest: Vec<Url>) -> Self {
        Self { url, bytes: None, bitrate: None, expires: None, headers: HeaderMap::new(), rest }
    }

    fn all(&self) -> impl Iterator<Item = &Url> {
        std::iter::once(&self.url).chain(&self.rest)
    }
}

/// A file that is being fetched.
struct Filing<'a> {
    file: &'a mut File,
    watcher: &'a dyn Watcher,
    /// How long it is to be, where somebody says so.
    expected: Option<u64>,
    of: u64,
    /// How much is there of the parts before this one.
    kept: u64,
    written: u64,
    told: u64,
    head: Vec<u8>,
}

impl<'a> Filing<'a> {
    fn new(file: &'a mut File, watcher: &'a dyn Watcher, expected: Option<u64>) -> Self {
        Self { file, watcher, expected, of: 0, kept: 0, written: 0, told: 0, head: Vec::new() }
    }

    fn tell(&mut self) {
        self.told = self.written;
        self.watcher.stage(STAGE, self.written, self.of);
    }

    /// The end of the file: everything is where it can be read, and is no page.
    async fn finish(&mut self) -> Result<(), Refusal> {
        self.file.flush().await.map_err(|error| Refusal::Fault(no_room(&error)))?;
        self.tell();
        is_file(&self.head)
    }
}

#[async_trait]
impl Sink for Filing<'_> {
    async fn begin(&mut self, of: Option<u64>) -> Result<(), HttpFault> {
        // How long all parts are together nobody says.
        self.of = of.or(self.expected).filter(|_| self.kept == 0).unwrap_or(0);
        self.written = self.kept;
        self.head.clear();
        // What was written before may still be on its way.
        self.file.flush().await.map_err(|error| no_room(&error))?;
        self.file.set_len(self.kept).await.map_err(|error| no_room(&error))?;
        self.file.seek(SeekFrom::Start(self.kept)).await.map_err(|error| no_room(&error))?;
        self.tell();
        Ok(())
    }

    async fn write(&mut self, bytes: Bytes) -> Result<(), HttpFault> {
        let missing = HEAD_MAX.saturating_sub(self.head.len()).min(bytes.len());
        self.head.extend_from_slice(bytes.get(..missing).unwrap_or_default());
        self.file.write_all(&bytes).await.map_err(|error| no_room(&error))?;
        self.written += bytes.len() as u64;
        if self.written.abs_diff(self.told) >= TELL_EVERY {
            self.tell();
        }
        Ok(())
    }
}

/// A file that cannot be written. What the system says of it names no path.
fn no_room(error: &io::Error) -> HttpFault {
    tracing::warn!(%error, "a file could not be put down");
    HttpFault::NoRoom
}

/// Fetches a file in all its parts, one after the other. Together they have at most the bytes of the request.
async fn gather(
    visit: &mut Visit,
    request: Request,
    rest: &[Url],
    deadline: Instant,
    filing: &mut Filing<'_>,
) -> Result<(), Refusal> {
    pour(visit, request.clone(), deadline, filing).await?;
    for part in rest {
        if filing.watcher.cancelled() {
            return Err(Refusal::Cancelled);
        }
        filing.kept = filing.written;
        let kept = usize::try_from(filing.kept).unwrap_or(usize::MAX);
        let answer_max = request.answer_max.saturating_sub(kept);
        let request = Request { url: part.clone(), answer_max, ..request.clone() };
        pour(visit, request, deadline, filing).await?;
    }
    Ok(())
}

/// Fetches the file at an address; redirects are followed among the platform's own hosts.
async fn pour(
    visit: &mut Visit,
    mut request: Request,
    deadline: Instant,
    filing: &mut Filing<'_>,
) -> Result<(), Refusal> {
    for _ in 0..=REDIRECTS_MAX {
        let answer = visit.download(&request, deadline, filing).await.map_err(Refusal::Fault)?;
        match answer.location.filter(|_| answer.status.is_redirection()) {
            Some(location) => {
                if location.host_str() != request.url.host_str() {
                    // They were the other host's.
                    request.headers.remove(header::COOKIE);
                }
                request.url = location;
            }
            None => {
                has_file(answer.status)?;
                return filing.finish().await;
            }
        }
    }
    Err(Refusal::Unreadable("it redirects again and again".to_owned()))
}

/// Whether an answer of this status is a whole file.
fn has_file(status: StatusCode) -> Result<(), Refusal> {
    match status {
        StatusCode::OK => Ok(()),
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Refusal::Forbidden(status.as_u16())),
        status => Err(Refusal::Unreadable(format!("the video's address has HTTP {}", status.as_u16()))),
    }
}

/// Whether a file begins as one. Pages of refusal come as answers, too, and no file of sound begins so.
fn is_file(head: &[u8]) -> Result<(), Refusal> {
    match head.iter().find(|c| !c.is_ascii_whitespace()) {
        None => Err(Refusal::Unreadable("the video is empty".to_owned())),
        Some(b'<' | b'{' | b'#') => Err(Refusal::Unreadable("a page came in place of the video".to_owned())),
        Some(_) => Ok(()),
    }
}

impl fmt::Debug for MediaAddress {
    /// Without the query, which holds signatures, and without the headers, which hold cookies.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MediaAddress")
            .field("host", &self.url.host_str())
            .field("bytes", &self.bytes)
            .field("bitrate", &self.bitrate)
            .field("expires", &self.expires)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_and_cookies_are_not_shown() {
        let mut address = MediaAddress::at("https://a.example", "/b?signature=hush").unwrap();
        address.headers.insert(header::COOKIE, "tt_chain_token=hush".parse().unwrap());
        assert!(!format!("{address:?}").contains("hush"));
    }

    #[test]
    fn pages_are_no_files() {
        assert!(is_file(b"\0\0\0\x20ftypisom").is_ok());
        for head in [&b" <html>"[..], b"{\"a\":1}", b"#EXTM3U", b"", b" \n"] {
            assert!(is_file(head).is_err(), "{head:?}");
        }
        for (status, expect) in [(200, true), (206, false), (204, false), (403, false), (404, false)] {
            assert_eq!(has_file(StatusCode::from_u16(status).unwrap()).is_ok(), expect, "{status}");
        }
    }
}
