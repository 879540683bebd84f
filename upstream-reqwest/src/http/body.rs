//! Reading an answer, up to its limit.
//!
//! Compression is undone here rather than by the HTTP library, which copies what it undoes through small
//! buffers: an answer of some 30 KB is there at once anyway, and one pass over it takes half the time.

use std::io::Read as _;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use flate2::bufread::GzDecoder;
use http::{HeaderMap, HeaderValue, header};
use reqwest::Response;

use super::HttpFault;

/// What we ask for: every platform has it, and nothing that they have is undone in less time.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip");

/// A compressed body above this size is undone on a thread where nobody else waits, in bytes.
const AT_ONCE_MAX: usize = 128 << 10;

/// The whole body, decompressed; [`HttpFault::TooLarge`] as soon as it is known to be longer than `max`.
pub(crate) async fn read(mut response: Response, max: usize) -> Result<Bytes, HttpFault> {
    let is_compressed = is_gzip(response.headers())?;
    // What is announced is looked at first, so that nothing is read in vain; what comes is counted anyway,
    // since an announcement may be wrong. Nothing gets longer by being compressed, or not by much.
    let announced = response.content_length().unwrap_or(0);
    if announced > max as u64 {
        return Err(HttpFault::TooLarge);
    }
    let mut body = BytesMut::with_capacity(usize::try_from(announced).unwrap_or(0).min(AT_ONCE_MAX));
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() > max => return Err(HttpFault::TooLarge),
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
            Ok(None) => break,
            Err(error) => return Err(HttpFault::of(&error)),
        }
    }
    match is_compressed {
        false => Ok(body.freeze()),
        true if body.len() <= AT_ONCE_MAX => inflate(&body, max),
        true => {
            let inflating = tokio::task::spawn_blocking(move || inflate(&body, max));
            inflating.await.unwrap_or(Err(HttpFault::CutOff))
        }
    }
}

/// Where a body goes that is too long for memory.
#[async_trait]
pub(crate) trait Sink: Send {
    /// A body begins, of `of` bytes where that is announced; what came before does not count any more.
    async fn begin(&mut self, of: Option<u64>) -> Result<(), HttpFault>;

    /// The next bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<(), HttpFault>;
}

/// Pours the whole body into `sink`; [`HttpFault::TooLarge`] as soon as it is known to be longer than `max`.
/// It must not be compressed.
pub(super) async fn pour(mut response: Response, max: usize, sink: &mut dyn Sink) -> Result<(), HttpFault> {
    if is_gzip(response.headers())? {
        return Err(HttpFault::Encoded);
    }
    let announced = response.content_length();
    let max = max as u64;
    if announced.is_some_and(|length| length > max) {
        return Err(HttpFault::TooLarge);
    }
    sink.begin(announced).await?;
    let mut length = 0_u64;
    while let Some(chunk) = response.chunk().await.map_err(|error| HttpFault::of(&error))? {
        length += chunk.len() as u64;
        if length > max {
            return Err(HttpFault::TooLarge);
        }
        sink.write(chunk).await?;
    }
    Ok(())
}

/// Whether a body is compressed; [`HttpFault::Encoded`] when it is in a way that we did not ask for.
pub(super) fn is_gzip(headers: &HeaderMap) -> Result<bool, HttpFault> {
    let mut names = headers.get_all(header::CONTENT_ENCODING).iter();
    let is =
        |name: &HeaderValue, known: &str| name.as_bytes().trim_ascii().eq_ignore_ascii_case(known.as_bytes());
    match (names.next(), names.next()) {
        (None, _) => Ok(false),
        (Some(name), None) if is(name, "gzip") || is(name, "x-gzip") => Ok(true),
        (Some(name), None) if is(name, "identity") || is(name, "") => Ok(false),
        _ => Err(HttpFault::Encoded),
    }
}

/// What was compressed with gzip, at most `max` bytes of it.
fn inflate(body: &[u8], max: usize) -> Result<Bytes, HttpFault> {
    // Nothing is sent as it is, whatever its headers say.
    if body.is_empty() {
        return Ok(Bytes::new());
    }
    // The last bytes tell the length, if nobody lied.
    let told = body.last_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    let mut whole = Vec::with_capacity(usize::try_from(told).unwrap_or(0).min(max) + 1);
    let limit = u64::try_from(max).unwrap_or(u64::MAX).saturating_add(1);
    match GzDecoder::new(body).take(limit).read_to_end(&mut whole) {
        Ok(length) if length > max => Err(HttpFault::TooLarge),
        Ok(_) => Ok(whole.into()),
        Err(_) => Err(HttpFault::CutOff),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzipped(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn what_was_compressed_comes_back_within_its_limit() {
        let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let packed = gzipped(&body);
        assert_eq!(inflate(&packed, body.len()).unwrap(), body);
        assert_eq!(inflate(&packed, body.len() - 1), Err(HttpFault::TooLarge));
        assert_eq!(inflate(&gzipped(b""), 0).unwrap(), "");
        assert_eq!(inflate(b"", 10).unwrap(), "");
    }

    #[test]
    fn damage_is_noticed_wherever_it_is() {
        let packed = gzipped(&[7; 1_000]);
        for length in 1..packed.len() {
            assert_eq!(inflate(&packed[..length], 1_000), Err(HttpFault::CutOff), "{length}");
        }
        // The method, the checksum and the length; a length that is a lie makes no room.
        for place in [2, packed.len() - 8, packed.len() - 1] {
            let mut damaged = packed.clone();
            damaged[place] ^= 0x80;
            assert_eq!(inflate(&damaged, 1_000), Err(HttpFault::CutOff), "{place}");
        }
        assert_eq!(inflate(b"not gzip", 1_000), Err(HttpFault::CutOff));
    }

    #[test]
    fn only_what_was_asked_for_is_undone() {
        for (names, expect) in [
            (&[][..], Ok(false)),
            (&["gzip"], Ok(true)),
            (&[" X-GZip "], Ok(true)),
            (&["identity"], Ok(false)),
            (&[""], Ok(false)),
            (&["br"], Err(HttpFault::Encoded)),
            (&["gzip, gzip"], Err(HttpFault::Encoded)),
            (&["gzip", "gzip"], Err(HttpFault::Encoded)),
        ] {
            let mut headers = HeaderMap::new();
            for name in names {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(name));
            }
            assert_eq!(is_gzip(&headers), expect, "{names:?}");
        }
    }
}
