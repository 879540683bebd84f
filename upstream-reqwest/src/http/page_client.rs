//! YouTube's pages, one request at a time, for programs with their own fetch logic.
//!
//! There are no retries and no cooldowns: the caller decides. The transport's guarantees hold: only the
//! platform's hosts, over https, through the named proxy or none, with bounded responses.

use std::{path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use tokio::time::{Instant, timeout_at};
use transcript_core::{Error, Result};
use url::Url;

use super::{
    HttpError, HttpOptions, HttpRequest,
    egress_pool::EgressPool,
    egress_session::{send, send_until},
};

/// The platform's hosts, including its consent page.
const HOSTS: &[&str] = &["www.youtube.com", "youtube.com", ".youtube.com"];
/// Maximum length of a page in bytes.
const PAGE_MAX: usize = 32 << 20;
/// Maximum number of redirects that are followed.
const REDIRECTS_MAX: u32 = 5;

/// Options of a [`PageClient`].
#[derive(Clone, Default)]
pub struct PageClientOptions {
    /// The proxy, as in [`HttpOptions::proxies`]; `None`: requests leave directly.
    pub proxy: Option<String>,
    /// A PEM file with root certificates that are trusted in addition to the system's.
    pub ca_file: Option<PathBuf>,
    /// Timeout of one request; `None`: 20 s.
    pub timeout: Option<Duration>,
}

// Omits the proxy, whose URL may hold credentials.
transcript_core::debug_fields!(PageClientOptions |this| { has_proxy: this.proxy.is_some(), ca_file });

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
pub struct PageFetch {
    /// The URL, on the platform.
    pub url: String,
    /// Headers in addition to those of every request.
    pub headers: Vec<PageHeader>,
    /// JSON to send with `POST`; `None`: `GET`.
    pub json: Option<String>,
    /// Text after which the rest of the page is not needed.
    ///
    /// The body of a successful response ends at most 256 bytes after it. The remainder is neither decompressed nor
    /// stored, which for a page of 1 MB is most of its cost.
    pub until: Option<String>,
}

/// A response of any status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageResponse {
    /// The HTTP status.
    pub status: u16,
    /// The body.
    pub body: Bytes,
    /// The `Retry-After` of a 429 or 5xx.
    pub retry_after: Option<Duration>,
}

/// A client of YouTube's pages. Clones share its connections.
#[derive(Clone)]
pub struct PageClient {
    pool: Arc<EgressPool>,
    timeout: Duration,
}

transcript_core::debug_fields!(PageClient { timeout });

impl PageClient {
    /// Creates a client with these options; sends no request.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] when the proxy is invalid or the file cannot be read.
    pub fn new(options: PageClientOptions) -> Result<Self> {
        let defaults = HttpOptions::default();
        let timeout = options.timeout.unwrap_or(defaults.timeout);
        let proxies = options.proxy.into_iter().collect();
        let options = HttpOptions { proxies, ca_file: options.ca_file, timeout, ..defaults };
        options.check()?;
        Ok(Self { pool: Arc::new(EgressPool::new(&options)?), timeout })
    }

    /// Sends one request, and follows redirects between the platform's hosts.
    ///
    /// # Errors
    /// [`transcript_core::ErrorKind::Invalid`] for a URL of another host or an invalid header;
    /// [`transcript_core::ErrorKind::Unavailable`] when no response arrived. Any status is a success.
    pub async fn fetch(&self, page: PageFetch) -> Result<PageResponse> {
        let until = page.until.clone();
        let mut request = request(page)?;
        let deadline = Instant::now() + self.timeout;
        for _ in 0..=REDIRECTS_MAX {
            request.check().map_err(|_| Error::invalid("the URL is not on a host of YouTube"))?;
            let route = self.pool.at(0).ok_or_else(|| Error::unexpected("there is no egress route"))?;
            let response = async {
                match &until {
                    Some(text) => send_until(route, &request, text.as_bytes()).await,
                    None => send(route, &request, None, None).await,
                }
            };
            let response = timeout_at(deadline, response).await;
            match response.unwrap_or(Err(HttpError::Timeout)) {
                Ok(response) if response.status.is_redirection() && response.location.is_some() => {
                    // A redirect does not repeat the POST.
                    request.method = Method::GET;
                    request.body = Bytes::new();
                    request.url = response.location.unwrap_or(request.url);
                }
                Ok(response) => {
                    return Ok(PageResponse {
                        status: response.status.as_u16(),
                        body: response.body,
                        retry_after: None,
                    });
                }
                Err(HttpError::Throttled(retry_after)) => {
                    return Ok(PageResponse { status: 429, body: Bytes::new(), retry_after });
                }
                Err(HttpError::Status(status, retry_after)) => {
                    return Ok(PageResponse { status, body: Bytes::new(), retry_after });
                }
                Err(fault) => return Err(unavailable(&fault)),
            }
        }
        Err(Error::unavailable("YouTube sent too many redirects."))
    }
}

#[cold]
fn unavailable(fault: &HttpError) -> Error {
    Error::unavailable(fault.supply_error(transcript_core::video::Platform::YouTube).message())
}

fn request(page: PageFetch) -> Result<HttpRequest> {
    let url = Url::parse(&page.url).map_err(|_| Error::invalid("the URL is invalid"))?;
    let mut headers = HeaderMap::new();
    for PageHeader { name, value } in page.headers {
        let name = HeaderName::try_from(name).map_err(|_| Error::invalid("a header name is invalid"))?;
        let value = HeaderValue::try_from(value).map_err(|_| Error::invalid("a header value is invalid"))?;
        headers.append(name, value);
    }
    let (method, body) = match page.json {
        Some(json) => {
            headers.insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            (Method::POST, Bytes::from(json))
        }
        None => (Method::GET, Bytes::new()),
    };
    let response_max = PAGE_MAX;
    Ok(HttpRequest { method, url, hosts: HOSTS, headers, body, response_max, has_own_rate_limit: true })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn page_client_other_host_is_invalid() {
        let pages = PageClient::new(PageClientOptions::default()).unwrap();
        for url in ["http://www.youtube.com/", "https://a.example/", "https://www.youtube.com:8/", "x"] {
            let page = PageFetch { url: url.to_owned(), headers: Vec::new(), json: None, until: None };
            let error = pages.fetch(page).await.unwrap_err();
            assert_eq!(error.kind(), transcript_core::ErrorKind::Invalid, "{url}");
        }
        assert!(
            PageClient::new(PageClientOptions { proxy: Some("nowhere".to_owned()), ..Default::default() })
                .is_err()
        );
    }
}
