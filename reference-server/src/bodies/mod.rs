//! Ready bodies of archived answers: made once, compressed once, and sent as they are.
//!
//! An archived transcript is the same for everybody who sends no key, so the second caller's answer is the
//! first one's bytes. Two bounded caches hold them. One says what a query meant, under its own letters: the
//! content's digest, and the count of the archive's changes when that was found. The other has the bodies,
//! each under the digest of its content: those never become untrue, they only stop being asked for.
//!
//! What is not ready is made ready. Where the archive stores a transcript as it is sent, an answer is put
//! around it ([`stored`]): for callers who accept zstd nothing is decompressed, read or compressed. That costs
//! little more than to send what is ready, so only what is asked for again is kept ([`doorkeeper`]).
//!
//! An operator's command changes the archive from another process. So before anything is sent from here,
//! the archive's count of changes must have been read within the last 50 ms, and be the same as when the
//! answer was found ([`freshness`]).

mod accept;
mod body;
mod doorkeeper;
mod freshness;
mod precondition;
mod stored;

use std::{io, sync::Arc, time::Instant};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, header::AUTHORIZATION, request::Parts};
use http_body_util::Full;
use quick_cache::{Weighter, sync::Cache};
use transcript_core::{
    archive::StoredTranscript,
    lookup::{Lookup, LookupAnswer, SourceTag, StoredAnswer},
};

pub(crate) use accept::Encoding;
pub(crate) use body::{ReadyBody, Rendered, VARIES_BY, compressed};
pub(crate) use freshness::EXPIRE;

use crate::{
    http::Refusal,
    metrics::CameFrom,
    routes::{Format, LookupQuery},
};
use doorkeeper::Doorkeeper;
use freshness::Freshness;

/// The only path whose answers are kept.
pub(crate) const PATH: &str = "/api/transcript";
/// How many bytes of bodies are kept.
const BODIES_MAX: u64 = 64 << 20;
/// How many bytes of queries are kept, with what they meant.
const QUERIES_MAX: u64 = 8 << 20;
/// Longer queries are answered, but not remembered.
const QUERY_LENGTH_MAX: usize = 512;
/// What an entry takes beside its bytes, about.
const OVERHEAD: u64 = 256;

/// The form of a body: what was asked, beside the video.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Form {
    /// The format.
    pub(crate) format: Format,
    /// The tag in the watch address.
    pub(crate) src: Option<SourceTag>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct BodyKey {
    content_sha256: [u8; 32],
    form: Form,
    encoding: Encoding,
}

/// How much is kept ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kept {
    /// How many bodies.
    pub(crate) entries: u64,
    /// What they take, in bytes.
    pub(crate) bytes: u64,
    /// What they may take, in bytes.
    pub(crate) bytes_max: u64,
}

/// What a query meant.
#[derive(Clone, Copy, Debug)]
struct Known {
    content_sha256: [u8; 32],
    form: Form,
    /// The archive's count of changes, read before the transcript was.
    changes: u64,
}

#[derive(Clone, Debug)]
struct Bytewise;

impl Weighter<BodyKey, Arc<ReadyBody>> for Bytewise {
    fn weight(&self, _: &BodyKey, body: &Arc<ReadyBody>) -> u64 {
        body.length() + 4 * OVERHEAD
    }
}

impl Weighter<Box<str>, Known> for Bytewise {
    fn weight(&self, query: &Box<str>, _: &Known) -> u64 {
        query.len() as u64 + OVERHEAD
    }
}

/// The ready bodies of one server.
#[derive(Debug)]
pub(crate) struct Bodies {
    queries: Cache<Box<str>, Known, Bytewise>,
    bodies: Cache<BodyKey, Arc<ReadyBody>, Bytewise>,
    doorkeeper: Doorkeeper,
    freshness: Arc<Freshness>,
    lookup: Lookup,
}

impl Bodies {
    /// None yet, of what this look-up's archive holds.
    pub(crate) fn new(lookup: Lookup) -> Self {
        let transcripts = lookup.transcripts().clone();
        Self {
            lookup,
            doorkeeper: Doorkeeper::default(),
            queries: Cache::with_weighter((QUERIES_MAX / (2 * OVERHEAD)) as usize, QUERIES_MAX, Bytewise),
            bodies: Cache::with_weighter((BODIES_MAX >> 14) as usize, BODIES_MAX, Bytewise),
            freshness: Arc::new(Freshness::new(transcripts)),
        }
    }

    /// The ready answer to a request, where there is one that is known to be true `now`. Nothing is waited
    /// for, and nothing is copied.
    pub(crate) fn ready<B>(&self, request: &Request<B>, now: Instant) -> Option<Response<Full<Bytes>>> {
        if request.uri().path() != PATH || !matches!(*request.method(), Method::GET | Method::HEAD) {
            return None;
        }
        self.found(request.uri().query()?, request.headers(), request.method(), now)
    }

    /// The same for a query that was asked at [`PATH`].
    pub(crate) fn found(
        &self,
        query: &str,
        headers: &HeaderMap,
        method: &Method,
        now: Instant,
    ) -> Option<Response<Full<Bytes>>> {
        if query.len() > QUERY_LENGTH_MAX || headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let Known { content_sha256, form, changes } = self.queries.get(query)?;
        if self.freshness.changes(now)? != changes {
            return None;
        }
        let key = BodyKey { content_sha256, form, encoding: Encoding::chosen(headers)? };
        Some(self.bodies.get(&key)?.response(headers, method))
    }

    /// The answer to a request that was not ready, where an archived transcript is stored as it is sent and
    /// the request has no key; and whether it was made meanwhile. With none nothing is said: the route has the answer.
    pub(crate) async fn archived(
        &self,
        head: &Parts,
        now: Instant,
    ) -> Option<(Response<Full<Bytes>>, CameFrom)> {
        if head.uri.path() != PATH || !matches!(head.method, Method::GET | Method::HEAD) {
            return None;
        }
        let (query, headers) = (head.uri.query()?, &head.headers);
        if headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let asked = LookupQuery::read(query).ok().filter(|asked| asked.format == Format::Json)?;
        let encoding = Encoding::chosen(headers)?;
        // Read before the archive is, so that a change in between shows.
        let changes = match self.freshness.changes(now) {
            Some(changes) => changes,
            None => {
                let changes = self.freshness.read().await?;
                if let Some(ready) = self.found(query, headers, &head.method, Instant::now()) {
                    return Some((ready, CameFrom::Ready));
                }
                changes
            }
        };
        let answer = self.lookup.stored(&asked.reference, asked.src).await?;
        let content_sha256 = answer.body.content_sha256.as_slice().try_into().ok()?;
        let form = Form { format: asked.format, src: asked.src };
        let key = BodyKey { content_sha256, form, encoding };
        if encoding == Encoding::Zstd && !self.doorkeeper.has_seen(&content_sha256) {
            let once = stored::around(&answer, encoding).inspect_err(not_sent).ok()?;
            return Some((once.into_response(headers, &head.method), CameFrom::Stored));
        }
        let body = self.around(answer, key).await.inspect_err(not_sent).ok()?;
        self.remember(query, Known { content_sha256, form, changes });
        Some((body.response(headers, &head.method), CameFrom::Stored))
    }

    /// The ready body with this key, made from what is stored where there is none.
    async fn around(&self, answer: StoredAnswer, key: BodyKey) -> io::Result<Arc<ReadyBody>> {
        let encoding = key.encoding;
        if !stored::is_cheap(&answer, encoding) {
            let make = away(move || stored::around(&answer, encoding));
            return self.bodies.get_or_insert_async(&key, make).await;
        }
        if let Some(body) = self.bodies.get(&key) {
            return Ok(body);
        }
        let body = Arc::new(stored::around(&answer, encoding)?);
        self.bodies.insert(key, Arc::clone(&body));
        Ok(body)
    }

    /// The archive's count of changes, read within the last 50 ms. None when it cannot be read: nothing is
    /// sent from here then, and nothing is remembered.
    pub(crate) async fn changes(&self) -> Option<u64> {
        self.freshness.read().await
    }

    /// The body of an answer that has this transcript. Whoever asks first has it made, away from the
    /// threads that serve; others who ask meanwhile wait for the same one.
    ///
    /// # Errors
    /// 500 when it cannot be made.
    pub(crate) async fn of(
        &self,
        stored: &StoredTranscript,
        answer: &LookupAnswer,
        form: Form,
        encoding: Encoding,
        render: fn(&LookupAnswer, Format) -> Rendered,
    ) -> Result<Arc<ReadyBody>, Refusal> {
        let content_sha256 = digest(stored).ok_or_else(Refusal::fault)?;
        let answer = answer.clone();
        let make = away(move || ReadyBody::make(render(&answer, form.format), encoding));
        let made = self.bodies.get_or_insert_async(&BodyKey { content_sha256, form, encoding }, make).await;
        made.map_err(|error| {
            tracing::error!(%error, "a body could not be made");
            Refusal::fault()
        })
    }

    /// Remembers what a query meant, with what this transcript was when the archive had counted this many
    /// changes.
    pub(crate) fn means(&self, query: &str, stored: &StoredTranscript, form: Form, changes: u64) {
        if let Some(content_sha256) = digest(stored) {
            self.remember(query, Known { content_sha256, form, changes });
        }
    }

    /// How much is kept.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            entries: self.bodies.len() as u64,
            bytes: self.bodies.weight(),
            bytes_max: self.bodies.capacity(),
        }
    }

    fn remember(&self, query: &str, known: Known) {
        if query.len() <= QUERY_LENGTH_MAX {
            self.queries.insert(query.into(), known);
        }
    }
}

fn not_sent(error: &io::Error) {
    tracing::warn!(%error, "a stored body could not be sent as it is");
}

/// Makes a body away from the threads that serve. A panic has been logged by its hook.
async fn away(make: impl FnOnce() -> io::Result<ReadyBody> + Send + 'static) -> io::Result<Arc<ReadyBody>> {
    tokio::task::spawn_blocking(make).await.map_err(io::Error::other).flatten().map(Arc::new)
}

/// The digest as a key; it always has 32 bytes.
fn digest(stored: &StoredTranscript) -> Option<[u8; 32]> {
    stored.content_sha256.as_slice().try_into().ok()
}
