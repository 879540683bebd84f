//! Response cache of archived transcripts: rendered once, compressed once, sent without copying.
//!
//! The body of an archived transcript is the same for all callers without a key of the lookup API, for all callers of
//! the v1 API, and for all visitors of its page. One [`ReadCache`] holds them: what a query selects, valid while the
//! archive's change counter is unchanged, and bodies by digest of their content, form and encoding, which never become
//! invalid.
//!
//! If the archive stores a transcript in wire form, a missing body is built around the stored bytes ([`wrap`]): for
//! clients that accept zstd nothing is decompressed, parsed or compressed. This costs little more than sending a cached
//! body, so such a body is admitted on its second request only.
//!
//! The reservation of a large body is part of its bytes, so it counts while the cache or a connection holds them, and
//! sending it reserves nothing. Bodies for the cache have their own memory ([`build`]).

mod body;
mod build;
mod precondition;
mod shared;
mod v1;
mod wrap;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use axum::response::IntoResponse;
use bytes::Bytes;
use http::{
    HeaderMap, HeaderName, HeaderValue, Method, Response,
    header::{AUTHORIZATION, CACHE_CONTROL},
};
use http_body_util::{Either, Full};
use quick_cache::Equivalent;
use sha2::{Digest, Sha256};
use transcript_core::{
    archive::{StoredTranscript, view::TranscriptView},
    headers,
    lookup::{AttributionTag, Lookup, LookupResponse},
    video::VideoId,
    wire::lookup::TranscriptResult,
};
use verbatim::read_cache::{FormCost, FormKey, ReadCache, ReadCacheBudget, ReadCacheUsage};

pub(crate) use body::{CachedBody, RenderedBody, VARIES_BY, compress, rendered_length};
use build::{BuildError, WrappedBody};
use shared::SharedHeaders;
pub(crate) use shared::{SharedCaching, restrict_shared_caches};
use v1::V1Source;
pub(crate) use v1::{V1Body, V1Selection};
pub(crate) use verbatim::read_cache::CHANGE_COUNTER_AGE_MAX as EXPIRE;

use crate::{
    api::{
        ByteBudget, ContentEncoding, CorsRule, LookupQuery, ProblemResponse, ResponseBody, ResponseFormat,
        ResultOrigin, header_name,
    },
    messages::PageLanguage,
};

const X_VERBATIM_HOP: HeaderName = header_name!(headers::X_VERBATIM_HOP);

/// A body that is cheap to build saves half of the time of a response, so few are held. One that must be compressed
/// or rendered takes milliseconds.
const BUDGET: ReadCacheBudget =
    ReadCacheBudget { selections: 8 << 20, cheap_forms: 24 << 20, costly_forms: 22 << 20 };
/// Memory of large bodies that are being built for the cache, or are still being sent after their removal from it.
const REMOVED_MAX: u64 = 16 << 20;
/// Longest query that is cached, in bytes.
const QUERY_LENGTH_MAX: usize = 512;

/// Variant of a response: the request parameters besides the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ResponseVariant {
    /// The format.
    pub(crate) format: ResponseFormat,
    /// The `src` tag in the watch URL.
    pub(crate) src: Option<AttributionTag>,
    /// What the response contains of the transcript.
    pub(crate) view: TranscriptView,
    /// Whether Markdown begins with front matter.
    pub(crate) frontmatter: bool,
    /// Language of a page.
    pub(crate) language: PageLanguage,
}

impl ResponseVariant {
    /// The whole transcript in this format.
    pub(crate) fn plain(format: ResponseFormat, src: Option<AttributionTag>) -> Self {
        Self {
            format,
            src,
            view: TranscriptView::default(),
            frontmatter: false,
            language: PageLanguage::default(),
        }
    }
}

/// Route whose queries are cached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum CachedRoute {
    /// Transcripts of the lookup API.
    Lookup,
    /// Transcripts of the v1 API.
    V1,
    /// Watch pages.
    Page,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct QueryKey {
    route: CachedRoute,
    query: Box<str>,
}

/// A [`QueryKey`] that is looked up. Both hash alike.
#[derive(Debug, Hash)]
struct QueryRef<'a> {
    route: CachedRoute,
    query: &'a str,
}

impl Equivalent<QueryKey> for QueryRef<'_> {
    fn equivalent(&self, key: &QueryKey) -> bool {
        self.route == key.route && *self.query == *key.query
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum BodyForm {
    Lookup(ResponseVariant),
    V1,
}

/// The body that a query selects, in any encoding.
#[derive(Clone, Debug)]
struct Selection {
    body_sha256: [u8; 32],
    form: BodyForm,
    /// How to build the body of the v1 API.
    source: Option<Arc<V1Source>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BodyKey {
    body_sha256: [u8; 32],
    form: BodyForm,
    encoding: ContentEncoding,
}

impl FormKey for BodyKey {
    fn cost(&self) -> FormCost {
        let is_json = match self.form {
            BodyForm::Lookup(variant) => variant.format == ResponseFormat::Json,
            BodyForm::V1 => true,
        };
        // Stored bodies are zstd, which is decompressed as fast as a row is found.
        let is_cheap = is_json && matches!(self.encoding, ContentEncoding::Zstd | ContentEncoding::Identity);
        if is_cheap { FormCost::Cheap } else { FormCost::Costly }
    }
}

/// How responses are cached.
#[derive(Clone, Debug)]
pub(crate) struct ResponseCacheOptions {
    /// `None` if shared caches may not store responses.
    pub(crate) shared_caching: Option<SharedCaching>,
    /// How long bodies are sent while the archive cannot be read.
    pub(crate) stale_max: Duration,
}

/// Response cache of one server.
#[derive(Debug)]
pub(crate) struct ResponseCache {
    cache: ReadCache<QueryKey, Selection, BodyKey, Arc<CachedBody>>,
    lookup: Lookup,
    /// `None` if shared caches may not store responses.
    shared_caching: Option<SharedCaching>,
    /// Memory of the large bodies of the cache. A removed body stays in it while it is being sent.
    pub(crate) cached_budget: ByteBudget,
    /// Memory of large bodies that are built for one response: of the lookup API and pages, and of the v1 API.
    budgets: (ByteBudget, ByteBudget),
}

impl ResponseCache {
    /// Creates an empty cache over this lookup's archive.
    ///
    /// Bodies that are not cached take memory of `budgets`: of the lookup API and pages, and of the v1 API. While the
    /// archive cannot be read, bodies that were valid within the last `stale_max` are sent.
    pub(crate) fn new(
        lookup: Lookup,
        budgets: (ByteBudget, ByteBudget),
        options: ResponseCacheOptions,
    ) -> Self {
        let ResponseCacheOptions { shared_caching, stale_max } = options;
        let cache = ReadCache::new(lookup.transcripts().clone(), BUDGET, stale_max);
        let cached_budget = ByteBudget::new(BUDGET.forms() + REMOVED_MAX);
        Self { cache, lookup, shared_caching, cached_budget, budgets }
    }

    /// Whether shared caches may store responses.
    pub(crate) fn is_shared(&self) -> bool {
        self.shared_caching.is_some()
    }

    fn shared_headers(&self, video: &VideoId) -> Option<SharedHeaders> {
        self.shared_caching.as_ref()?.for_video(video)
    }

    /// Returns the cached response to a query if it is valid at `now`. Neither waits nor copies the body.
    ///
    /// `None` for a request with a key, whose response is its own, and for one of another server.
    pub(crate) fn get(
        &self,
        (route, query): (CachedRoute, &str),
        headers: &HeaderMap,
        method: &Method,
        now: Instant,
    ) -> Option<Response<Full<Bytes>>> {
        if query.len() > QUERY_LENGTH_MAX || is_own(headers) {
            return None;
        }
        let selection = self.cache.selection(&QueryRef { route, query }, now.into())?;
        let key = selection.key(ContentEncoding::negotiate(headers)?);
        let mut response = self.cache.form(&key)?.response(headers, method);
        if self.is_shared() && self.cache.monitor().changes(now.into()).is_none() {
            // The archive cannot be read: the video may be withdrawn, and purged already.
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        Some(response)
    }

    /// Builds the response to a query of the lookup API without a key from a body in wire form.
    ///
    /// `None` means that the route must answer. The response is 503 if there is no memory for the body.
    pub(crate) async fn build_archived(
        &self,
        query: &str,
        headers: &HeaderMap,
        method: &Method,
        now: Instant,
    ) -> Option<(Response<ResponseBody>, ResultOrigin)> {
        if is_own(headers) {
            return None;
        }
        let options = LookupQuery::parse(query).ok()?;
        let encoding = ContentEncoding::negotiate(headers)?;
        // Read before the archive, so that a concurrent change is detected.
        let changes = match self.cache.monitor().changes(now.into()) {
            Some(changes) => changes,
            None => {
                let changes = self.changes().await;
                let found = self.get((CachedRoute::Lookup, query), headers, method, Instant::now());
                if let Some(ready) = found {
                    return Some((ready.map(Either::Left), ResultOrigin::Ready));
                }
                changes?
            }
        };
        if options.format != ResponseFormat::Json || !options.is_plain() {
            return None;
        }
        let archived = self.lookup.archived_response(&options.reference, options.src).await?;
        let before = TranscriptResult::from(&archived).before_segments().ok()?;
        let form = BodyForm::Lookup(ResponseVariant::plain(options.format, options.src));
        let body_sha256 = digest(&archived.body.content_sha256, &before)?;
        let selection = Selection { body_sha256, form, source: None };
        let shared = self.shared_headers(&archived.video);
        let key = selection.key(encoding);
        let body = match self.get_or_wrap(before, archived.body, key, shared).await? {
            Ok(body) => body,
            Err(exhausted) => {
                let mut refused = exhausted.into_response();
                // The router, which adds these headers, is not called.
                CorsRule::open("").apply(None, false, refused.headers_mut());
                return Some((refused.map(Either::Right), ResultOrigin::Nothing));
            }
        };
        let response = match body {
            WrappedBody::Cached(body) => {
                self.store((CachedRoute::Lookup, query), selection, changes);
                body.response(headers, method)
            }
            WrappedBody::Single(body) => body.response(headers, method),
        };
        Some((response.map(Either::Left), ResultOrigin::Stored))
    }

    /// Returns the archive's change counter, read within the last 50 ms.
    ///
    /// `None` if it cannot be read; then nothing is added to the cache.
    pub(crate) async fn changes(&self) -> Option<u64> {
        self.cache.monitor().read().await
    }

    /// Returns the body of a response that contains this transcript.
    ///
    /// The first request renders it on a blocking thread; concurrent requests wait for the same body.
    ///
    /// # Errors
    /// 503 if there is no memory for it, 500 if rendering or compression fails.
    pub(crate) async fn get_or_render(
        &self,
        stored: &StoredTranscript,
        answer: &LookupResponse,
        variant: ResponseVariant,
        encoding: ContentEncoding,
        render: impl FnOnce(&LookupResponse, ResponseVariant) -> RenderedBody + Send + 'static,
    ) -> Result<Arc<CachedBody>, ProblemResponse> {
        let body_sha256 = digest_of(stored, answer).ok_or_else(ProblemResponse::fault)?;
        let key = BodyKey { body_sha256, form: BodyForm::Lookup(variant), encoding };
        if let Some(body) = self.cache.form(&key) {
            return Ok(body);
        }
        let answer = answer.clone();
        let shared = self.shared_headers(&stored.transcript.video);
        let build = move || Ok(CachedBody::render(render(&answer, variant), encoding)?.with_shared(shared));
        let length = rendered_length(stored, variant);
        self.build_elsewhere(&key, length, true, build).await.map_err(|error| match error {
            BuildError::Exhausted(refusal) => refusal,
            BuildError::Failed(error) => {
                tracing::error!(%error, "response body failed");
                ProblemResponse::fault()
            }
        })
    }

    /// Caches the response that a query selects, valid while the archive's change counter is `changes`.
    pub(crate) fn insert_query(
        &self,
        query: (CachedRoute, &str),
        stored: &StoredTranscript,
        answer: &LookupResponse,
        variant: ResponseVariant,
        changes: u64,
    ) {
        if let Some(body_sha256) = digest_of(stored, answer) {
            let selection = Selection { body_sha256, form: BodyForm::Lookup(variant), source: None };
            self.store(query, selection, changes);
        }
    }

    /// Returns the fill level of the cache, for the bodies of the v1 API or all others.
    pub(crate) fn usage(&self, is_v1: bool) -> ReadCacheUsage {
        self.cache.usage(|key| (key.form == BodyForm::V1) == is_v1)
    }

    /// Requires a new reading of the archive before a cached body is sent: this process has changed the archive.
    pub(crate) fn require_reading(&self) {
        self.cache.require_reading();
    }

    /// Responses that were sent although the archive could not be read.
    pub(crate) fn stale_responses(&self) -> u64 {
        self.cache.stale_uses()
    }

    /// Size limit of all bodies.
    pub(crate) fn bytes_max(&self) -> u64 {
        self.cache.budget().forms()
    }

    fn store(&self, (route, query): (CachedRoute, &str), selection: Selection, changes: u64) {
        if query.len() <= QUERY_LENGTH_MAX {
            let bytes = query.len() as u64 + selection.source.as_ref().map_or(0, |source| source.bytes());
            self.cache.insert_selection(QueryKey { route, query: query.into() }, bytes, selection, changes);
        }
    }
}

impl Selection {
    fn key(&self, encoding: ContentEncoding) -> BodyKey {
        BodyKey { body_sha256: self.body_sha256, form: self.form, encoding }
    }
}

/// Whether the response depends on more than the query: it is for a key or for another server.
fn is_own(headers: &HeaderMap) -> bool {
    headers.contains_key(AUTHORIZATION) || headers.contains_key(X_VERBATIM_HOP)
}

/// Digest of what a body contains: the transcript, and the rest of the response. `None` if that of the content is not
/// one.
///
/// The content digest has the title, author and track, but not the details, which change without it.
fn digest(content_sha256: &[u8], rest: &[u8]) -> Option<[u8; 32]> {
    let content: [u8; 32] = content_sha256.try_into().ok()?;
    Some(Sha256::new().chain_update(content).chain_update(rest).finalize().into())
}

/// As [`digest`], of a body that is not rendered yet.
fn digest_of(stored: &StoredTranscript, answer: &LookupResponse) -> Option<[u8; 32]> {
    let rest = serde_json::to_vec(&(&*stored.details, &answer.requested_language)).ok()?;
    digest(&stored.content_sha256, &rest)
}
