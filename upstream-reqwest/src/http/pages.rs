//! YouTube's pages, one request at a time, as a program asks for them that follows a way of its own.
//!
//! Nothing is tried again and no exit rests: whoever asks decides. What the transport guarantees holds all the same:
//! only the platform's own hosts, over https, through the proxy that was named or none, with bounded answers.

use std::{fmt, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::{Instant, timeout_at};
use transcript_core::{Error, Result};
use url::Url;

use super::{
    HttpFault, HttpOptions, Request,
    exits::Exits,
    visit::{send, send_until},
};

/// The platform's hosts: its own, and that on which consent is asked for.
const HOSTS: &[&str] = &["www.youtube.com", "youtube.com", ".youtube.com"];
/// The most bytes of a page that are read.
const PAGE_MAX: usize = 32 << 20;
/// How many redirects are followed.
const REDIRECTS_MAX: u32 = 5;

/// How pages are asked for.
#[derive(Clone, Default)]
pub struct PagesOptions {
    /// The proxy, as in [`HttpOptions::proxies`]; none: requests leave directly.
    pub proxy: Option<String>,
    /// A PEM file with root certificates that are trusted beside the system's.
    pub ca_file: Option<PathBuf>,
    /// How long one request may take; none: 20 s.
    pub timeout: Option<Duration>,
}

impl fmt::Debug for PagesOptions {
    /// Without the proxy, whose address may hold credentials.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PagesOptions")
            .field("has_proxy", &self.proxy.is_some())
            .field("ca_file", &self.ca_file)
            .finish_non_exhaustive()
    }
}

/// One header of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageHeader {
    /// Its name.
    pub name: String,
    /// Its value.
    pub value: String,
}

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageAsk {
    /// The address, on the platform.
    pub url: String,
    /// What goes along beside what every request has.
    pub headers: Vec<PageHeader>,
    /// The JSON to post; none: the page is got.
    pub json: Option<String>,
    /// A text after which no more of the page is wanted: the body of a good answer then ends within 256 bytes after
    /// it. The rest is neither decompressed nor kept, which for a page of a megabyte is most of what it costs.
    pub until: Option<String>,
}

/// An answer, whatever its status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// Which wait a 429 or 5xx named.
    pub retry_after: Option<Duration>,
}

/// A client of YouTube's pages. A clone is a handle to the same connections.
#[derive(Clone)]
pub struct Pages {
    exits: Arc<Exits>,
    timeout: Duration,
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pages").field("timeout", &self.timeout).finish_non_exhaustive()
    }
}

impl Pages {
    /// A client with these options. Nobody is asked yet.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the proxy is none or the file cannot be used.
    pub fn new(options: PagesOptions) -> Result<Self> {
        let defaults = HttpOptions::default();
        let timeout = options.timeout.unwrap_or(defaults.timeout);
        let proxies = options.proxy.into_iter().collect();
        let options = HttpOptions { proxies, ca_file: options.ca_file, timeout, ..defaults };
        options.check()?;
        Ok(Self { exits: Arc::new(Exits::new(&options)?), timeout })
    }

    /// Asks once, and follows redirects between the platform's hosts.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] for an address elsewhere or a header that is none;
    /// [`transcript_core::ErrorKind::Unavailable`] when no answer came. A status is no error.
    pub async fn ask(&self, ask: PageAsk) -> Result<Page> {
        let until = ask.until.clone();
        let mut request = request(ask)?;
        let deadline = Instant::now() + self.timeout;
        for _ in 0..=REDIRECTS_MAX {
            request.check().map_err(|_| Error::invalid("this address is none of YouTube's"))?;
            let exit = self.exits.at(0).ok_or_else(|| Error::unexpected("there is no way out"))?;
            let answer = async {
                match &until {
                    Some(text) => send_until(exit, &request, text.as_bytes()).await,
                    None => send(exit, &request, None).await,
                }
            };
            let answer = timeout_at(deadline, answer).await;
            match answer.unwrap_or(Err(HttpFault::Timeout)) {
                Ok(answer) if answer.status.is_redirection() && answer.location.is_some() => {
                    // What is posted is not posted elsewhere.
                    request.method = Method::GET;
                    request.body = Bytes::new();
                    request.url = answer.location.unwrap_or(request.url);
                }
                Ok(answer) => {
                    return Ok(Page { status: answer.status.as_u16(), body: answer.body, retry_after: None });
                }
                Err(HttpFault::Throttled(retry_after)) => {
                    return Ok(Page { status: 429, body: Bytes::new(), retry_after });
                }
                Err(HttpFault::Status(status, retry_after)) => {
                    return Ok(Page { status, body: Bytes::new(), retry_after });
                }
                Err(fault) => return Err(unavailable(&fault)),
            }
        }
        Err(Error::unavailable("YouTube led in a circle."))
    }
}

#[cold]
fn unavailable(fault: &HttpFault) -> Error {
    Error::unavailable(fault.supply_error(transcript_core::video::Platform::VideoSite).message())
}

fn request(ask: PageAsk) -> Result<Request> {
    let url = Url::parse(&ask.url).map_err(|_| Error::invalid("this is no address"))?;
    let mut headers = HeaderMap::new();
    for PageHeader { name, value } in ask.headers {
        let name = HeaderName::try_from(name).map_err(|_| Error::invalid("this is no header's name"))?;
        let value = HeaderValue::try_from(value).map_err(|_| Error::invalid("this is no header's value"))?;
        headers.append(name, value);
    }
    let (method, body) = match ask.json {
        Some(json) => {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            (Method::POST, Bytes::from(json))
        }
        None => (Method::GET, Bytes::new()),
    };
    let answer_max = PAGE_MAX;
    Ok(Request { method, url, hosts: HOSTS, headers, body, answer_max, throttled_apart: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_platform_is_asked() {
        let pages = Pages::new(PagesOptions::default()).unwrap();
        for url in ["http://www.youtube.com/", "https://a.example/", "https://www.youtube.com:8/", "x"] {
            let ask = PageAsk { url: url.to_owned(), headers: Vec::new(), json: None, until: None };
            let error = pages.ask(ask).await.unwrap_err();
            assert_eq!(error.kind(), transcript_core::ErrorKind::Invalid, "{url}");
        }
        assert!(
            Pages::new(PagesOptions { proxy: Some("nowhere".to_owned()), ..Default::default() }).is_err()
        );
    }
}
