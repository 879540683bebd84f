//! One body in one encoding, with the headers that describe it.

use std::{
    collections::HashMap,
    io::{self, Write},
    sync::{Arc, LazyLock, Mutex, PoisonError},
};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, Method, Response, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};
use http_body_util::Full;
use sha2::{Digest, Sha256};
use transcript_core::{
    archive::{StoredTranscript, view::SegmentPage},
    captions::TextFormat,
};

use super::{ResponseVariant, precondition::is_not_modified, shared::SharedHeaders};
use crate::api::{BudgetedBytes, ContentEncoding, CorsRule, ReservedBytes, ResponseFormat, X_REQUEST_ID};

/// The request headers a lookup response depends on.
pub(crate) const VARIES_BY: HeaderValue = HeaderValue::from_static("accept-encoding, authorization");

/// Levels that compress a body of 60 KB in a few milliseconds at most.
///
/// A body is compressed once, but every caller can request new videos.
const ZSTD_LEVEL: i32 = 3;
const BROTLI_QUALITY: i32 = 5;
const GZIP_LEVEL: u32 = 6;

/// Memory of a body besides its bytes.
const SMALL_PARTS: u64 = 256;
/// Number of digest bytes in a tag.
const TAG_BYTES: usize = 18;

/// A body before it is compressed.
#[derive(Debug)]
pub(crate) struct RenderedBody {
    /// Media type.
    pub(crate) kind: &'static str,
    /// Content.
    pub(crate) bytes: Vec<u8>,
}

/// Length of a body before it is rendered and compressed, approximately.
pub(crate) fn rendered_length(stored: &StoredTranscript, variant: ResponseVariant) -> usize {
    let view = variant.view;
    // Rendering reports a cursor of another transcript.
    let segments = SegmentPage::select(stored, view).map(|page| page.of(stored)).unwrap_or_default();
    let per_segment = match variant.format {
        ResponseFormat::Json => 64,
        ResponseFormat::Page => 32,
        ResponseFormat::Text(TextFormat::Text | TextFormat::Markdown) => 8,
        ResponseFormat::Text(_) => 48,
    };
    let text: usize = segments.iter().map(|segment| segment.text.len() + per_segment).sum();
    let words: usize = segments.iter().map(|segment| segment.words.len()).sum();
    // Chunks have the text once more.
    let copies = if view.chunk.is_some() { 2 } else { 1 };
    copies * text + if view.words { 64 * words } else { 0 }
}

/// A body as it is sent.
#[derive(Debug)]
pub(crate) struct CachedBody {
    bytes: Bytes,
    etag: HeaderValue,
    /// All response headers for a caller without a key, with an empty tag.
    headers: Arc<HeaderMap>,
    /// `None` if shared caches may not store the responses.
    shared: Option<SharedHeaders>,
}

/// Returns the headers of all bodies of a media type and an encoding, in one map: it takes a kilobyte.
fn common_headers(kind: &'static str, encoding: ContentEncoding) -> Arc<HeaderMap> {
    type CommonHeaders = HashMap<(&'static str, ContentEncoding), Arc<HeaderMap>>;
    static HEADERS: LazyLock<Mutex<CommonHeaders>> = LazyLock::new(Mutex::default);
    let mut known = HEADERS.lock().unwrap_or_else(PoisonError::into_inner);
    let headers = known.entry((kind, encoding)).or_insert_with(|| Arc::new(headers(kind, encoding)));
    Arc::clone(headers)
}

fn headers(kind: &'static str, encoding: ContentEncoding) -> HeaderMap {
    // Spare capacity: cloning a larger map exceeds the allocator's size class.
    let mut headers = HeaderMap::with_capacity(9);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if let Some(encoding) = encoding.header() {
        headers.insert(CONTENT_ENCODING, encoding);
    }
    // Each response inserts its own tag and id; the slots are reserved here so that a clone of the map does not grow.
    headers.insert(ETAG, HeaderValue::from_static(""));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(VARY, VARIES_BY);
    CorsRule::open("").apply(None, false, &mut headers);
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_REQUEST_ID, HeaderValue::from_static(""));
    headers
}

/// Memory that a body of this length takes: the allocator's sizes are a quarter of a power of two apart.
pub(super) fn memory_bytes(length: usize) -> u64 {
    let step = (length.max(1).next_power_of_two() >> 3).max(16);
    length.next_multiple_of(step) as u64 + SMALL_PARTS
}

impl CachedBody {
    /// Compresses a body and derives its tag from the digest of the compressed bytes.
    ///
    /// The tag therefore differs for every encoding, format and rendering version of this program.
    ///
    /// # Errors
    /// The compressor failed.
    pub(crate) fn render(rendered: RenderedBody, encoding: ContentEncoding) -> io::Result<Self> {
        let bytes = compress(rendered.bytes, encoding)?;
        let digest = Sha256::digest(&bytes);
        Self::with_digest(rendered.kind, bytes, encoding, &digest)
    }

    /// Wraps a compressed body. The tag is derived from `digest`, which must identify the bytes.
    ///
    /// # Errors
    /// Never: the encoded digest is a valid header value.
    pub(super) fn with_digest(
        kind: &'static str,
        bytes: Vec<u8>,
        encoding: ContentEncoding,
        digest: &[u8],
    ) -> io::Result<Self> {
        let bytes = Bytes::from(bytes);
        let digest = digest.get(..TAG_BYTES).unwrap_or(digest);
        let etag = HeaderValue::try_from(format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest)));
        let etag = etag.map_err(io::Error::other)?;
        Ok(Self { bytes, etag, headers: common_headers(kind, encoding), shared: None })
    }

    /// The body, in responses with these headers for shared caches.
    pub(super) fn with_shared(self, shared: Option<SharedHeaders>) -> Self {
        Self { shared, ..self }
    }

    /// The body whose bytes have their reservation with them, in the cache and on connections, if they are large.
    pub(super) fn with_reservation(self, reserved: Option<ReservedBytes>) -> Self {
        Self { bytes: BudgetedBytes::new(self.bytes, reserved).into_bytes(), ..self }
    }

    /// The bytes that are sent.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes.clone()
    }

    pub(super) fn memory_bytes(&self) -> u64 {
        memory_bytes(self.bytes.len())
    }

    /// Returns a 200 response with this body, or 304 if the client has it.
    ///
    /// Dates and ranges are ignored: the tag is more precise, and a complete body is always a correct response.
    pub(crate) fn response(&self, request_headers: &HeaderMap, method: &Method) -> Response<Full<Bytes>> {
        let Self { bytes, etag, headers, shared } = self;
        let mut headers = HeaderMap::clone(headers);
        headers.insert(ETAG, etag.clone());
        if let Some(shared) = shared {
            shared.apply(request_headers, &mut headers);
        }
        let (status, body) = if is_not_modified(request_headers, etag) {
            for header in [CONTENT_TYPE, CONTENT_ENCODING] {
                headers.remove(header);
            }
            (StatusCode::NOT_MODIFIED, Full::default())
        } else if method == Method::HEAD {
            // A response with a body gets its length from the body.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            (StatusCode::OK, Full::default())
        } else {
            (StatusCode::OK, Full::new(bytes.clone()))
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// Compresses a body.
///
/// # Errors
/// The compressor failed.
pub(crate) fn compress(bytes: Vec<u8>, encoding: ContentEncoding) -> io::Result<Vec<u8>> {
    let mut compressed = match encoding {
        ContentEncoding::Identity => bytes,
        ContentEncoding::Zstd => zstd::bulk::compress(&bytes, ZSTD_LEVEL)?,
        ContentEncoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
            encoder.write_all(&bytes)?;
            encoder.finish()?
        }
        ContentEncoding::Brotli => {
            let parameters =
                brotli::enc::BrotliEncoderParams { quality: BROTLI_QUALITY, ..Default::default() };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut bytes.as_slice(), &mut out, &parameters)?;
            out
        }
    };
    // The compressors reserve for the worst case; a cached body is counted by its length.
    compressed.shrink_to_fit();
    Ok(compressed)
}
