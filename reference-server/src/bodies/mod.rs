//! Ready bodies of archived answers: made once, compressed once, and sent as they are.
//!
//! An archived transcript is the same for everybody who sends no key, so the second caller's answer is the
//! first one's bytes. Two bounded caches hold them. One says what a query meant, under its own letters: the
//! content's digest, and the count of the archive's changes when that was found. The other has the bodies,
//! each under the digest of its content: those never become untrue, they only stop being asked for.
//!
//! An operator's command changes the archive from another process. So before anything is sent from here,
//! the archive's count of changes must have been read within the last 50 ms, and be the same as when the
//! answer was found ([`freshness`]).

mod accept;
mod body;
mod freshness;
mod precondition;

use std::{sync::Arc, time::Instant};

use axum::response::Response;
use http::{HeaderMap, Method, Request, header::AUTHORIZATION};
use quick_cache::{Weighter, sync::Cache};
use transcript_core::{
    archive::StoredTranscript,
    engine::Transcripts,
    lookup::{LookupAnswer, SourceTag},
};

pub(crate) use accept::Encoding;
pub(crate) use body::{ReadyBody, Rendered, VARIES_BY};
pub(crate) use freshness::EXPIRE;

use crate::{http::Refusal, routes::Format};
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
    freshness: Arc<Freshness>,
}

impl Bodies {
    /// None yet, of what this engine's archive holds.
    pub(crate) fn new(transcripts: Transcripts) -> Self {
        Self {
            queries: Cache::with_weighter((QUERIES_MAX / (2 * OVERHEAD)) as usize, QUERIES_MAX, Bytewise),
            bodies: Cache::with_weighter((BODIES_MAX >> 14) as usize, BODIES_MAX, Bytewise),
            freshness: Arc::new(Freshness::new(transcripts)),
        }
    }

    /// The ready answer to a request, where there is one that is known to be true `now`. Nothing is waited
    /// for, and nothing is copied.
    pub(crate) fn ready<B>(&self, request: &Request<B>, now: Instant) -> Option<Response> {
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
    ) -> Option<Response> {
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
        let make = async {
            let answer = answer.clone();
            let making = move || ReadyBody::make(render(&answer, form.format), encoding);
            match tokio::task::spawn_blocking(making).await {
                Ok(Ok(body)) => Ok(Arc::new(body)),
                Ok(Err(error)) => {
                    tracing::error!(%error, "a body could not be compressed");
                    Err(Refusal::fault())
                }
                // The panic hook has logged what and where.
                Err(_) => Err(Refusal::fault()),
            }
        };
        self.bodies.get_or_insert_async(&BodyKey { content_sha256, form, encoding }, make).await
    }

    /// Remembers what a query meant when the archive had counted this many changes.
    pub(crate) fn remember(&self, query: &str, stored: &StoredTranscript, form: Form, changes: u64) {
        if let Some(content_sha256) = digest(stored)
            && query.len() <= QUERY_LENGTH_MAX
        {
            self.queries.insert(query.into(), Known { content_sha256, form, changes });
        }
    }
}

/// The digest as a key; it always has 32 bytes.
fn digest(stored: &StoredTranscript) -> Option<[u8; 32]> {
    stored.content_sha256.as_slice().try_into().ok()
}
