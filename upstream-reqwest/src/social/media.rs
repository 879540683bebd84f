//! Where the sound of a video is, for whoever listens to it.

use std::{fmt, sync::Arc, time::Duration};

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, Method, StatusCode, header};
use tokio::time::Instant;
use transcript_core::{
    supplier::{Ask, SupplyError, Watcher},
    time::Timestamp,
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use url::Url;

use super::{Details, Errand, Refusal};
use crate::http::{Answer, Http, Request, Visit, is_allowed};

/// The most addresses of one video that are kept, and requests of one download.
const ADDRESSES_MAX: usize = 6;
const REQUESTS_MAX: u32 = 12;
/// How many redirects of one address are followed.
const REDIRECTS_MAX: usize = 3;

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
        let is_known = |address: &MediaAddress| is_allowed(&address.url, hosts);
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

    /// Fetches the file from the first address that gives it.
    ///
    /// # Errors
    /// [`SupplyError`]: what was wrong with the first address, when none gives a file of at most `bytes_max`
    /// bytes within `patience`.
    pub async fn download(
        &self,
        http: &Arc<Http>,
        bytes_max: usize,
        patience: Duration,
    ) -> Result<Bytes, SupplyError> {
        let deadline = Instant::now() + patience;
        let mut visit = http.visit().at_most(REQUESTS_MAX).through(self.exit);
        let mut told = None;
        for address in &self.addresses {
            let request = Request {
                method: Method::GET,
                url: address.url.clone(),
                hosts: self.hosts,
                headers: address.headers.clone(),
                body: Bytes::new(),
                answer_max: bytes_max,
                throttled_apart: false,
            };
            match file(&mut visit, request, deadline).await {
                Ok(body) => return Ok(body),
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
        Some(Self { url, bytes: None, bitrate: None, expires: None, headers: HeaderMap::new() })
    }
}

/// The file at an address; redirects are followed among the platform's own hosts.
async fn file(visit: &mut Visit, mut request: Request, deadline: Instant) -> Result<Bytes, Refusal> {
    for _ in 0..=REDIRECTS_MAX {
        let answer = visit.send(&request, deadline).await.map_err(Refusal::Fault)?;
        match answer.location.filter(|_| answer.status.is_redirection()) {
            Some(location) => {
                if location.host_str() != request.url.host_str() {
                    // They were the other host's.
                    request.headers.remove(header::COOKIE);
                }
                request.url = location;
            }
            None => return whole(Answer { location: None, ..answer }),
        }
    }
    Err(Refusal::Unreadable("it redirects again and again".to_owned()))
}

/// The body of an answer that is a file.
fn whole(answer: Answer) -> Result<Bytes, Refusal> {
    match answer.status {
        StatusCode::OK => {}
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            return Err(Refusal::Forbidden(status.as_u16()));
        }
        status => {
            return Err(Refusal::Unreadable(format!("the video's address has HTTP {}", status.as_u16())));
        }
    }
    // Pages of refusal come as answers, too. No file of sound begins so.
    let head = answer.body.get(..answer.body.len().min(64)).unwrap_or_default();
    match head.iter().find(|c| !c.is_ascii_whitespace()) {
        None => Err(Refusal::Unreadable("the video is empty".to_owned())),
        Some(b'<' | b'{' | b'#') => Err(Refusal::Unreadable("a page came in place of the video".to_owned())),
        Some(_) => Ok(answer.body),
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
        let whole = |status: u16, body: &'static [u8]| {
            let status = StatusCode::from_u16(status).unwrap();
            whole(Answer { status, location: None, cookies: Vec::new(), body: Bytes::from_static(body) })
                .is_ok()
        };
        assert!(whole(200, b"\0\0\0\x20ftypisom"));
        for (status, body) in
            [(200, &b" <html>"[..]), (200, b"{\"a\":1}"), (200, b""), (403, b"\0\0ftyp"), (404, b"\0\0ftyp")]
        {
            assert!(!whole(status, body), "{status} {body:?}");
        }
    }
}
