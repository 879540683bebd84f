//! Response cache of `GET /api/v1/transcript`: bodies are rendered once and charged on every use.
//!
//! The body of a transcript is the same for all callers; caller-specific values are in the headers. As for the lookup
//! API there are two bounded caches: queries with the content digest and the archive's change counter at that time, and
//! bodies by content digest. A body is sent after its charge is durable, and only while the counter, read within the
//! last 50 ms, is unchanged.

use std::io;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use bytes::Bytes;
use http::{
    HeaderMap, HeaderValue, Method,
    header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY},
    request::Parts,
};
use quick_cache::{Weighter, sync::Cache};
use transcript_core::{
    accounts::{CachedCharge, PreparedTranscript},
    video::VideoId,
};

use super::{
    V1ErrorResponse, X_CACHE, X_CREDITS_REMAINING,
    admission::{IDEMPOTENCY_KEY, error_response, finish},
    contain_panic, rate,
};
use crate::{
    response_cache::{CacheUsage, ContentEncoding, compress},
    routes::{AppState, JSON, bearer::bearer},
};

/// Path of the cached route.
pub(crate) const PATH: &str = "/api/v1/transcript";
/// Size limit of the bodies, in bytes.
const BODIES_MAX: u64 = 32 << 20;
/// Size limit of the queries, in bytes.
const QUERIES_MAX: u64 = 4 << 20;
/// Longer queries are not cached.
const QUERY_LENGTH_MAX: usize = 512;
/// Approximate overhead of an entry, in bytes.
const OVERHEAD: u64 = 256;

type QueryDigest = [u8; 32];

/// Result of a cached query.
#[derive(Clone, Debug)]
struct KnownQuery {
    content_sha256: QueryDigest,
    video: VideoId,
    /// Change counter of the archive, read before the transcript.
    changes: u64,
}

#[derive(Clone, Debug)]
struct QueryWeighter;

impl Weighter<Box<str>, KnownQuery> for QueryWeighter {
    fn weight(&self, query: &Box<str>, _: &KnownQuery) -> u64 {
        query.len() as u64 + OVERHEAD
    }
}

impl Weighter<(QueryDigest, ContentEncoding), Bytes> for QueryWeighter {
    fn weight(&self, _: &(QueryDigest, ContentEncoding), body: &Bytes) -> u64 {
        body.len() as u64 + OVERHEAD
    }
}

/// Response cache of one server process.
#[derive(Debug)]
pub(crate) struct V1ResponseCache {
    queries: Cache<Box<str>, KnownQuery, QueryWeighter>,
    bodies: Cache<(QueryDigest, ContentEncoding), Bytes, QueryWeighter>,
}

impl Default for V1ResponseCache {
    fn default() -> Self {
        Self {
            queries: Cache::with_weighter(
                (QUERIES_MAX / (2 * OVERHEAD)) as usize,
                QUERIES_MAX,
                QueryWeighter,
            ),
            bodies: Cache::with_weighter((BODIES_MAX >> 14) as usize, BODIES_MAX, QueryWeighter),
        }
    }
}

impl V1ResponseCache {
    /// Stores a query and its body, with the change counter read before the lookup.
    pub(super) fn insert(&self, query: &str, ready: &PreparedTranscript, changes: u64, body: &[u8]) {
        let Ok(content_sha256) = ready.stored.content_sha256.as_slice().try_into() else { return };
        if query.len() > QUERY_LENGTH_MAX || !ready.from_cache {
            return;
        }
        let key = (content_sha256, ContentEncoding::Identity);
        if self.bodies.get(&key).is_none() {
            self.bodies.insert(key, Bytes::copy_from_slice(body));
        }
        let video = ready.stored.transcript.video.clone();
        self.queries.insert(query.into(), KnownQuery { content_sha256, video, changes });
    }

    /// Entries and bytes of the cache.
    pub(crate) fn usage(&self) -> CacheUsage {
        CacheUsage {
            entries: self.bodies.len() as u64,
            bytes: self.bodies.weight(),
            bytes_max: self.bodies.capacity(),
        }
    }

    /// Body in this encoding, compressed from the unencoded body if missing.
    async fn body(&self, content_sha256: QueryDigest, encoding: ContentEncoding) -> Option<Bytes> {
        if let Some(body) = self.bodies.get(&(content_sha256, encoding)) {
            return Some(body);
        }
        let whole = self.bodies.get(&(content_sha256, ContentEncoding::Identity))?;
        let compress_body = async {
            let compressed = tokio::task::spawn_blocking(move || compress(whole.to_vec(), encoding)).await;
            compressed.map_err(io::Error::other).flatten().map(Bytes::from)
        };
        let compressed = self.bodies.get_or_insert_async(&(content_sha256, encoding), compress_body).await;
        compressed.inspect_err(|error| tracing::warn!(%error, "response compression failed")).ok()
    }
}

/// Responds from the cache after charging the caller, before the router runs.
/// `None` if the response is not cached; then nothing was charged.
pub(crate) async fn respond_cached(app: &AppState, head: &Parts) -> Option<Response> {
    if head.uri.path() != PATH || head.method != Method::GET || head.headers.contains_key(IDEMPOTENCY_KEY) {
        return None;
    }
    let known = app.ready.queries.get(head.uri.query().unwrap_or_default())?;
    if app.bodies.changes().await? != known.changes {
        return None;
    }
    // A caller that rejects all encodings gets the unencoded body, as on all v1 routes.
    let encoding = ContentEncoding::negotiate(&head.headers).unwrap_or(ContentEncoding::Identity);
    let body = app.ready.body(known.content_sha256, encoding).await?;
    Some(contain_panic(answer(app, &known.video, encoding, body, &head.headers)).await)
}

async fn answer(
    app: &AppState,
    video: &VideoId,
    encoding: ContentEncoding,
    body: Bytes,
    headers: &HeaderMap,
) -> Response {
    let bearer = bearer(headers);
    match app.accounts.charge_cached(bearer.as_deref(), video).await {
        Ok(CachedCharge { rate, paid: Ok(left) }) => {
            let mut response = Response::new(Body::from(body));
            let to = response.headers_mut();
            // Reserves once for these headers and those of every response.
            to.reserve(10);
            to.insert(CONTENT_TYPE, HeaderValue::from_static(JSON));
            if let Some(encoding) = encoding.header() {
                to.insert(CONTENT_ENCODING, encoding);
            }
            to.insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
            to.insert(X_CACHE, HeaderValue::from_static("HIT"));
            if let Some(left) = left {
                to.insert(X_CREDITS_REMAINING, HeaderValue::from(left));
            }
            to.extend(rate::fields(&rate));
            response
        }
        Ok(CachedCharge { rate, paid: Err(error) }) => {
            finish(rate, Err(V1ErrorResponse::from(error))).into_response()
        }
        Err(error) => error_response(error, bearer.is_some()),
    }
}
