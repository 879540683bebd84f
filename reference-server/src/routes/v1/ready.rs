//! Ready bodies of `GET /api/v1/transcript`: made once, compressed once, and charged for each time.
//!
//! A transcript for credits is the same bytes for everybody who pays; what is the caller's own is in the headers.
//! As on Surface A two bounded caches hold them: what a query meant, with the archive's count of changes when that
//! was found, and the bodies under the digests of their content. A body is sent once its charge is on the disk, and
//! only while that count, read within the last 50 ms, is the same.

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
    accounts::{AtHand, TranscriptReady},
    video::VideoId,
};

use super::{
    Denial, X_CACHE, X_CREDITS_REMAINING, contained,
    door::{IDEMPOTENCY_KEY, out, refused},
    rate,
};
use crate::{
    bodies::{Encoding, Kept, compressed},
    routes::{App, JSON, bearer::bearer},
};

/// Where they are asked for.
pub(crate) const PATH: &str = "/api/v1/transcript";
/// How many bytes of bodies are kept.
const BODIES_MAX: u64 = 32 << 20;
/// How many bytes of queries are kept, with what they meant.
const QUERIES_MAX: u64 = 4 << 20;
/// Longer queries are answered, but not remembered.
const QUERY_LENGTH_MAX: usize = 512;
/// What an entry takes beside its bytes, about.
const OVERHEAD: u64 = 256;

type Digest = [u8; 32];

/// What a query meant.
#[derive(Clone, Debug)]
struct Known {
    content_sha256: Digest,
    video: VideoId,
    /// The archive's count of changes, read before the transcript was.
    changes: u64,
}

#[derive(Clone, Debug)]
struct Bytewise;

impl Weighter<Box<str>, Known> for Bytewise {
    fn weight(&self, query: &Box<str>, _: &Known) -> u64 {
        query.len() as u64 + OVERHEAD
    }
}

impl Weighter<(Digest, Encoding), Bytes> for Bytewise {
    fn weight(&self, _: &(Digest, Encoding), body: &Bytes) -> u64 {
        body.len() as u64 + OVERHEAD
    }
}

/// The ready bodies for credits of one server.
#[derive(Debug)]
pub(crate) struct ReadyTranscripts {
    queries: Cache<Box<str>, Known, Bytewise>,
    bodies: Cache<(Digest, Encoding), Bytes, Bytewise>,
}

impl Default for ReadyTranscripts {
    fn default() -> Self {
        Self {
            queries: Cache::with_weighter((QUERIES_MAX / (2 * OVERHEAD)) as usize, QUERIES_MAX, Bytewise),
            bodies: Cache::with_weighter((BODIES_MAX >> 14) as usize, BODIES_MAX, Bytewise),
        }
    }
}

impl ReadyTranscripts {
    /// Remembers what a query meant, and the body of its answer, when the archive had counted this many changes.
    pub(super) fn remember(&self, query: &str, ready: &TranscriptReady, changes: u64, body: &[u8]) {
        let Ok(content_sha256) = ready.stored.content_sha256.as_slice().try_into() else { return };
        if query.len() > QUERY_LENGTH_MAX || !ready.from_cache {
            return;
        }
        let key = (content_sha256, Encoding::Identity);
        if self.bodies.get(&key).is_none() {
            self.bodies.insert(key, Bytes::copy_from_slice(body));
        }
        let video = ready.stored.transcript.video.clone();
        self.queries.insert(query.into(), Known { content_sha256, video, changes });
    }

    /// How much is kept.
    pub(crate) fn kept(&self) -> Kept {
        Kept {
            entries: self.bodies.len() as u64,
            bytes: self.bodies.weight(),
            bytes_max: self.bodies.capacity(),
        }
    }

    /// The body in this encoding, made of the one as it is.
    async fn body(&self, content_sha256: Digest, encoding: Encoding) -> Option<Bytes> {
        if let Some(body) = self.bodies.get(&(content_sha256, encoding)) {
            return Some(body);
        }
        let whole = self.bodies.get(&(content_sha256, Encoding::Identity))?;
        let make = async {
            let made = tokio::task::spawn_blocking(move || compressed(whole.to_vec(), encoding)).await;
            made.map_err(io::Error::other).flatten().map(Bytes::from)
        };
        let made = self.bodies.get_or_insert_async(&(content_sha256, encoding), make).await;
        made.inspect_err(|error| tracing::warn!(%error, "a body could not be compressed")).ok()
    }
}

/// The answer to a request for a transcript that is ready, once it is charged: sent before the router is asked. None
/// where it is not ready, and nothing was charged.
pub(crate) async fn charged(app: &App, head: &Parts) -> Option<Response> {
    if head.uri.path() != PATH || head.method != Method::GET || head.headers.contains_key(IDEMPOTENCY_KEY) {
        return None;
    }
    let known = app.ready.queries.get(head.uri.query().unwrap_or_default())?;
    if app.bodies.changes().await? != known.changes {
        return None;
    }
    // Whoever refuses all encodings is sent the body as it is, like everything else here.
    let encoding = Encoding::chosen(&head.headers).unwrap_or(Encoding::Identity);
    let body = app.ready.body(known.content_sha256, encoding).await?;
    Some(contained(answer(app, &known.video, encoding, body, &head.headers)).await)
}

async fn answer(
    app: &App,
    video: &VideoId,
    encoding: Encoding,
    body: Bytes,
    headers: &HeaderMap,
) -> Response {
    let bearer = bearer(headers);
    match app.accounts.charge_at_hand(bearer.as_deref(), video).await {
        Ok(AtHand { rate, paid: Ok(left) }) => {
            let mut response = Response::new(Body::from(body));
            let to = response.headers_mut();
            // In one piece, and with room for what every answer gets.
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
        Ok(AtHand { rate, paid: Err(denied) }) => out(rate, Err(Denial::from(denied))).into_response(),
        Err(denied) => refused(denied, bearer.is_some()),
    }
}
