//! One body in one encoding, with the headers that describe it.

use std::io::{self, Write};

use axum::{body::Body, response::Response};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderMap, HeaderValue, Method, StatusCode,
    header::{
        CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, VARY, X_CONTENT_TYPE_OPTIONS,
    },
};
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
        let bytes = Bytes::from(compressed(rendered.bytes, encoding)?);
        let digest = Sha256::digest(&bytes);
        let tag = format!("\"{}\"", URL_SAFE_NO_PAD.encode(&digest[..TAG_BYTES]));
        let etag = HeaderValue::try_from(tag).map_err(io::Error::other)?;
        let mut headers = HeaderMap::with_capacity(12);
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(rendered.kind));
        if let Some(encoding) = encoding.header() {
            headers.insert(CONTENT_ENCODING, encoding);
        }
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes.len()));
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
    pub(crate) fn response(&self, asked: &HeaderMap, method: &Method) -> Response {
        let mut headers = self.headers.clone();
        let (status, body) = if has_already(asked, &self.etag) {
            for of_the_body in [CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LENGTH] {
                headers.remove(of_the_body);
            }
            (StatusCode::NOT_MODIFIED, Body::empty())
        } else if method == Method::HEAD {
            (StatusCode::OK, Body::empty())
        } else {
            (StatusCode::OK, Body::from(self.bytes.clone()))
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }
}

fn compressed(bytes: Vec<u8>, encoding: Encoding) -> io::Result<Vec<u8>> {
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
