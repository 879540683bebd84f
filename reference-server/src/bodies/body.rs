//! One body in one encoding, with the headers that describe it.

use std::io::{self, Write};

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

use super::{Encoding, precondition::has_already};
use crate::http::{CorsRule, X_REQUEST_ID};

/// What an answer to a look-up depends on, beside its address.
pub(crate) const VARIES_BY: HeaderValue = HeaderValue::from_static("accept-encoding, authorization");

/// Compression happens once, but anybody can have it happen for another video: so the levels are those at
/// which a body of 60 KB takes a few milliseconds at most.
const ZSTD_LEVEL: i32 = 3;
const BROTLI_QUALITY: i32 = 5;
const GZIP_LEVEL: u32 = 6;

/// How many bytes of a body's digest are in its tag.
const TAG_BYTES: usize = 18;

/// A body before it is compressed.
#[derive(Debug)]
pub(crate) struct Rendered {
    /// Its media type.
    pub(crate) kind: &'static str,
    /// Its bytes.
    pub(crate) bytes: Vec<u8>,
}

/// A body as it is sent.
#[derive(Debug)]
pub(crate) struct ReadyBody {
    bytes: Bytes,
    etag: HeaderValue,
    /// All that goes with it to a caller without a key.
    headers: HeaderMap,
}

impl ReadyBody {
    /// Compresses a body, and names it by the digest of what is sent: so the tag is another one for
    /// every encoding, format, and version of this program that writes it differently.
    ///
    /// # Errors
    /// The compressor's.
    pub(super) fn make(rendered: Rendered, encoding: Encoding) -> io::Result<Self> {
        let bytes = compressed(rendered.bytes, encoding)?;
        let digest = Sha256::digest(&bytes);
        Self::named(rendered.kind, bytes, encoding, &digest)
    }

    /// A body that is compressed already. Its name is made of a digest over whatever tells its bytes from
    /// all others.
    ///
    /// # Errors
    /// None; one that headers have.
    pub(super) fn named(
        kind: &'static str,
        bytes: Vec<u8>,
        encoding: Encoding,
        digest: &[u8],
    ) -> io::Result<Self> {
        let bytes = Bytes::from(bytes);
        let digest = digest.get(..TAG_BYTES).unwrap_or(digest);
        let etag = HeaderValue::try_from(format!("\"{}\"", URL_SAFE_NO_PAD.encode(digest)));
        let etag = etag.map_err(io::Error::other)?;
        // One more, and a copy of the map is too large for what the allocator keeps at hand.
        let mut headers = HeaderMap::with_capacity(9);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(encoding) = encoding.header() {
            headers.insert(CONTENT_ENCODING, encoding);
        }
        headers.insert(ETAG, etag.clone());
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
        headers.insert(VARY, VARIES_BY);
        CorsRule::open("").apply(None, false, &mut headers);
        headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        // Each answer has its own; the place is taken here, so that a copy of the map need not grow.
        headers.insert(X_REQUEST_ID, HeaderValue::from_static(""));
        Ok(Self { bytes, etag, headers })
    }

    /// Its length in bytes.
    pub(super) fn length(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// The answer that has this body, or says that the caller has it already. Dates and ranges are not
    /// looked at: the tag says more, and a whole body is always a right answer.
    pub(crate) fn response(&self, asked: &HeaderMap, method: &Method) -> Response<Full<Bytes>> {
        let once = Self { bytes: self.bytes.clone(), etag: self.etag.clone(), headers: self.headers.clone() };
        once.into_response(asked, method)
    }

    /// The same, for a body that is sent once.
    pub(super) fn into_response(self, asked: &HeaderMap, method: &Method) -> Response<Full<Bytes>> {
        let Self { bytes, etag, mut headers } = self;
        let (status, body) = if has_already(asked, &etag) {
            for of_the_body in [CONTENT_TYPE, CONTENT_ENCODING] {
                headers.remove(of_the_body);
            }
            (StatusCode::NOT_MODIFIED, Full::default())
        } else if method == Method::HEAD {
            // Where there is a body, its length is told with it.
            headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
            (StatusCode::OK, Full::default())
        } else {
            (StatusCode::OK, Full::new(bytes))
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

/// A body in an encoding.
///
/// # Errors
/// The compressor's.
pub(crate) fn compressed(bytes: Vec<u8>, encoding: Encoding) -> io::Result<Vec<u8>> {
    match encoding {
        Encoding::Identity => Ok(bytes),
        Encoding::Zstd => zstd::bulk::compress(&bytes, ZSTD_LEVEL),
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::new(GZIP_LEVEL));
            encoder.write_all(&bytes)?;
            encoder.finish()
        }
        Encoding::Brotli => {
            let parameters =
                brotli::enc::BrotliEncoderParams { quality: BROTLI_QUALITY, ..Default::default() };
            let mut out = Vec::new();
            brotli::BrotliCompress(&mut bytes.as_slice(), &mut out, &parameters)?;
            Ok(out)
        }
    }
}
