//! Response cache of `GET /api/v1/transcript`: bodies are rendered once and charged on every use.
//!
//! The body of a transcript is the same for all callers; caller-specific values are in the headers. As for the lookup
//! API there are two bounded caches: queries with the content digest and the archive's change counter at that time, and
//! bodies by content digest. A body is sent after its charge is durable, and only while the counter, read within the
//! last 50 ms, is unchanged.

use std::io;

use bytes::Bytes;
use quick_cache::{Weighter, sync::Cache};
use transcript_core::{accounts::PreparedTranscript, video::VideoId};

use super::{CacheUsage, body::compress};
use crate::api::ContentEncoding;

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
pub(crate) struct KnownQuery {
    /// Digest of the transcript's content.
    pub(crate) content_sha256: QueryDigest,
    /// The video.
    pub(crate) video: VideoId,
    /// Change counter of the archive, read before the transcript.
    pub(crate) changes: u64,
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
    /// Returns what a query means, if it is cached.
    pub(crate) fn query(&self, query: &str) -> Option<KnownQuery> {
        self.queries.get(query)
    }

    /// Stores a query and its body, with the change counter read before the lookup.
    pub(crate) fn insert(&self, query: &str, ready: &PreparedTranscript, changes: u64, body: &[u8]) {
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
    pub(crate) async fn body(&self, content_sha256: QueryDigest, encoding: ContentEncoding) -> Option<Bytes> {
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
