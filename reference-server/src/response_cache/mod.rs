//! Response cache of archived transcripts: rendered once, compressed once, sent without copying.
//!
//! The response for an archived transcript is the same for all callers without a key. Two bounded caches store it.
//! One maps a query string to the content's digest and to the archive's change counter at that time. The other
//! maps a content digest to bodies, which never become invalid and are evicted when they are unused.
//!
//! If the archive stores a transcript in wire form, a missing response is built around the stored bytes ([`wrap`]):
//! for clients that accept zstd nothing is decompressed, parsed or compressed. This costs little more than sending
//! a cached body, so an entry is admitted on its second request only ([`admission`]).
//!
//! Operator commands change the archive from other processes. Before a cached response is sent, the change counter
//! must have been read within the last 50 ms and be equal to the entry's ([`freshness`]).

mod admission;
mod body;
mod freshness;
mod precondition;
mod v1;
mod wrap;

use std::{io, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header::AUTHORIZATION, request::Parts};
use http_body_util::Full;
use quick_cache::{Weighter, sync::Cache};
use transcript_core::{
    archive::StoredTranscript,
    lookup::{ArchivedResponse, AttributionTag, Lookup, LookupResponse},
};

pub(crate) use body::{CachedBody, RenderedBody, VARIES_BY, compress};
pub(crate) use freshness::EXPIRE;
pub(crate) use v1::V1ResponseCache;

use crate::api::{
    ContentEncoding, LookupQuery, ProblemResponse, ResponseFormat, ResultOrigin, TRANSCRIPT_PATH,
};
use admission::AdmissionFilter;
use freshness::ChangeMonitor;

/// Capacity for bodies, in bytes.
const BODIES_MAX: u64 = 64 << 20;
/// Capacity for queries, in bytes.
const QUERIES_MAX: u64 = 8 << 20;
/// Longest query that is cached, in bytes.
const QUERY_LENGTH_MAX: usize = 512;
/// Approximate overhead of an entry, in bytes.
const OVERHEAD: u64 = 256;

/// Variant of a response: the request parameters besides the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResponseVariant {
    /// The format.
    pub(crate) format: ResponseFormat,
    /// The `src` tag in the watch URL.
    pub(crate) src: Option<AttributionTag>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct CachedBodyKey {
    content_sha256: [u8; 32],
    variant: ResponseVariant,
    encoding: ContentEncoding,
}

/// Fill level of the body cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheUsage {
    /// Number of bodies.
    pub(crate) entries: u64,
    /// Their size, in bytes.
    pub(crate) bytes: u64,
    /// The capacity, in bytes.
    pub(crate) bytes_max: u64,
}

/// The response that a query selects.
#[derive(Clone, Copy, Debug)]
struct CachedQuery {
    content_sha256: [u8; 32],
    variant: ResponseVariant,
    /// The archive's change counter, read before the transcript was.
    changes: u64,
}

#[derive(Clone, Debug)]
struct ByteWeighter;

impl Weighter<CachedBodyKey, Arc<CachedBody>> for ByteWeighter {
    fn weight(&self, _: &CachedBodyKey, body: &Arc<CachedBody>) -> u64 {
        body.length() + 4 * OVERHEAD
    }
}

impl Weighter<Box<str>, CachedQuery> for ByteWeighter {
    fn weight(&self, query: &Box<str>, _: &CachedQuery) -> u64 {
        query.len() as u64 + OVERHEAD
    }
}

/// Response cache of one server.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    queries: Cache<Box<str>, CachedQuery, ByteWeighter>,
    bodies: Cache<CachedBodyKey, Arc<CachedBody>, ByteWeighter>,
    admission: AdmissionFilter,
    freshness: Arc<ChangeMonitor>,
    lookup: Lookup,
}

impl ResponseCache {
    /// Creates an empty cache over this lookup's archive.
    pub(crate) fn new(lookup: Lookup) -> Self {
        let transcripts = lookup.transcripts().clone();
        Self {
            lookup,
            admission: AdmissionFilter::default(),
            queries: Cache::with_weighter((QUERIES_MAX / (2 * OVERHEAD)) as usize, QUERIES_MAX, ByteWeighter),
            bodies: Cache::with_weighter((BODIES_MAX >> 14) as usize, BODIES_MAX, ByteWeighter),
            freshness: Arc::new(ChangeMonitor::new(transcripts)),
        }
    }

    /// Returns the cached response to a request if it is valid at `now`. Neither waits nor copies the body.
    pub(crate) fn get<B>(&self, request: &Request<B>, now: Instant) -> Option<Response<Full<Bytes>>> {
        if request.uri().path() != TRANSCRIPT_PATH || !matches!(*request.method(), Method::GET | Method::HEAD)
        {
            return None;
        }
        self.get_for_query(request.uri().query()?, request.headers(), request.method(), now)
    }

    /// Like [`Self::get`], for a query at [`TRANSCRIPT_PATH`].
    pub(crate) fn get_for_query(
        &self,
        query: &str,
        headers: &HeaderMap,
        method: &Method,
        now: Instant,
    ) -> Option<Response<Full<Bytes>>> {
        if query.len() > QUERY_LENGTH_MAX || headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let CachedQuery { content_sha256, variant, changes } = self.queries.get(query)?;
        if self.freshness.changes(now)? != changes {
            return None;
        }
        let key = CachedBodyKey { content_sha256, variant, encoding: ContentEncoding::negotiate(headers)? };
        Some(self.bodies.get(&key)?.response(headers, method))
    }

    /// Builds the response to an uncached request without a key from a body in wire form.
    ///
    /// `None` means that the route must answer.
    pub(crate) async fn build_archived(
        &self,
        head: &Parts,
        now: Instant,
    ) -> Option<(Response<Full<Bytes>>, ResultOrigin)> {
        if head.uri.path() != TRANSCRIPT_PATH || !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let (query, headers) = (head.uri.query()?, &head.headers);
        if headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let query_options = LookupQuery::parse(query)
            .ok()
            .filter(|query_options| query_options.format == ResponseFormat::Json)?;
        let encoding = ContentEncoding::negotiate(headers)?;
        // Read before the archive, so that a concurrent change is detected.
        let changes = match self.freshness.changes(now) {
            Some(changes) => changes,
            None => {
                let changes = self.freshness.read().await?;
                if let Some(ready) = self.get_for_query(query, headers, &head.method, Instant::now()) {
                    return Some((ready, ResultOrigin::Ready));
                }
                changes
            }
        };
        let answer = self.lookup.archived_response(&query_options.reference, query_options.src).await?;
        let content_sha256 = answer.body.content_sha256.as_slice().try_into().ok()?;
        let variant = ResponseVariant { format: query_options.format, src: query_options.src };
        let key = CachedBodyKey { content_sha256, variant, encoding };
        if encoding == ContentEncoding::Zstd && !self.admission.admit(&content_sha256) {
            let body = wrap::wrap(&answer, encoding).inspect_err(log_failure).ok()?;
            return Some((body.into_response(headers, &head.method), ResultOrigin::Stored));
        }
        let body = self.get_or_wrap(answer, key).await.inspect_err(log_failure).ok()?;
        self.store_query(query, CachedQuery { content_sha256, variant, changes });
        Some((body.response(headers, &head.method), ResultOrigin::Stored))
    }

    /// Returns the cached body of this key, or builds it from the stored bytes.
    async fn get_or_wrap(&self, answer: ArchivedResponse, key: CachedBodyKey) -> io::Result<Arc<CachedBody>> {
        let encoding = key.encoding;
        if !wrap::is_cheap(&answer, encoding) {
            let make = render_blocking(move || wrap::wrap(&answer, encoding));
            return self.bodies.get_or_insert_async(&key, make).await;
        }
        if let Some(body) = self.bodies.get(&key) {
            return Ok(body);
        }
        let body = Arc::new(wrap::wrap(&answer, encoding)?);
        self.bodies.insert(key, Arc::clone(&body));
        Ok(body)
    }

    /// Returns the archive's change counter, read within the last 50 ms.
    ///
    /// `None` if it cannot be read; then nothing is sent from the cache and nothing is added to it.
    pub(crate) async fn changes(&self) -> Option<u64> {
        self.freshness.read().await
    }

    /// Returns the body of a response that contains this transcript.
    ///
    /// The first request renders it on a blocking thread; concurrent requests wait for the same body.
    ///
    /// # Errors
    /// 500 if rendering or compression fails.
    pub(crate) async fn get_or_render(
        &self,
        stored: &StoredTranscript,
        answer: &LookupResponse,
        variant: ResponseVariant,
        encoding: ContentEncoding,
        render: fn(&LookupResponse, ResponseFormat) -> RenderedBody,
    ) -> Result<Arc<CachedBody>, ProblemResponse> {
        let content_sha256 = digest(stored).ok_or_else(ProblemResponse::fault)?;
        let answer = answer.clone();
        let make = render_blocking(move || CachedBody::render(render(&answer, variant.format), encoding));
        let made =
            self.bodies.get_or_insert_async(&CachedBodyKey { content_sha256, variant, encoding }, make).await;
        made.map_err(|error| {
            tracing::error!(%error, "response body failed");
            ProblemResponse::fault()
        })
    }

    /// Caches the response that a query selects, valid while the archive's change counter is `changes`.
    pub(crate) fn insert_query(
        &self,
        query: &str,
        stored: &StoredTranscript,
        variant: ResponseVariant,
        changes: u64,
    ) {
        if let Some(content_sha256) = digest(stored) {
            self.store_query(query, CachedQuery { content_sha256, variant, changes });
        }
    }

    /// Returns the fill level of the body cache.
    pub(crate) fn usage(&self) -> CacheUsage {
        CacheUsage {
            entries: self.bodies.len() as u64,
            bytes: self.bodies.weight(),
            bytes_max: self.bodies.capacity(),
        }
    }

    fn store_query(&self, query: &str, entry: CachedQuery) {
        if query.len() <= QUERY_LENGTH_MAX {
            self.queries.insert(query.into(), entry);
        }
    }
}

fn log_failure(error: &io::Error) {
    tracing::warn!(%error, "stored response body failed");
}

/// Builds a body on a blocking thread. The panic hook has logged a panic.
async fn render_blocking(
    make: impl FnOnce() -> io::Result<CachedBody> + Send + 'static,
) -> io::Result<Arc<CachedBody>> {
    tokio::task::spawn_blocking(make).await.map_err(io::Error::other).flatten().map(Arc::new)
}

/// The content digest as a key; it always has 32 bytes.
fn digest(stored: &StoredTranscript) -> Option<[u8; 32]> {
    stored.content_sha256.as_slice().try_into().ok()
}
