//! Reads a response body up to a limit.
//!
//! The body is decompressed here, not by the HTTP library, which copies it through small buffers: for a response of
//! about 30 KB one pass takes half the time. A larger one is decompressed while it arrives: memory holds its content
//! only.

use std::{
    io::{Read as _, Write as _},
    mem,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use flate2::{bufread, write};
use http::{HeaderMap, HeaderValue, header};
use reqwest::Response;

use super::{
    HttpError,
    body_budget::{BodyBudget, BodyShare, CountedContent, UNCOUNTED_BYTES},
};

/// The requested encoding: every platform supports it, and none of theirs decompresses faster.
pub(super) const ACCEPTED: HeaderValue = HeaderValue::from_static("gzip");

/// Bodies up to this size, as sent, are read whole and then decompressed in one pass, in bytes.
const ONE_PASS_MAX: usize = 128 << 10;

/// As [`read_counted`], without a budget: for services that the operator configured.
pub(crate) async fn read(response: Response, max: usize) -> Result<Bytes, HttpError> {
    read_counted(response, max, None).await
}

/// Reads and decompresses the whole body; [`HttpError::TooLarge`] as soon as it exceeds `max`.
///
/// [`HttpError::Busy`] as soon as it needs more memory than the budget has left.
pub(super) async fn read_counted(
    mut response: Response,
    max: usize,
    budget: Option<&BodyBudget>,
) -> Result<Bytes, HttpError> {
    let is_compressed = is_gzip(response.headers())?;
    // The announced length is checked first to avoid a useless read. The received bytes are counted as well,
    // since the announcement may be wrong. Compression makes nothing much longer.
    let announced = response.content_length().unwrap_or(0);
    if announced > max as u64 {
        return Err(HttpError::TooLarge);
    }
    let mut received = BytesMut::with_capacity(usize::try_from(announced).unwrap_or(0).min(ONE_PASS_MAX));
    let (mut large, mut length) = (None, 0_usize);
    while let Some(chunk) = response.chunk().await.map_err(|error| HttpError::from_reqwest(&error))? {
        length += chunk.len();
        // Also of a compressed body: what follows its end would otherwise be read without limit.
        if length > max {
            return Err(HttpError::TooLarge);
        }
        if large.is_none() && received.len() + chunk.len() > ONE_PASS_MAX {
            let buffer = large.insert(BodyBuffer::new(is_compressed, max, budget));
            buffer.add(&mem::take(&mut received))?;
        }
        match &mut large {
            Some(large) => large.add(&chunk)?,
            None => received.extend_from_slice(&chunk),
        }
    }
    match large {
        Some(large) => large.finish(),
        None if is_compressed => inflate(&received, max, budget),
        None => Ok(received.freeze()),
    }
}

/// A body that is read in steps, and decompressed while it arrives.
pub(super) enum BodyBuffer {
    Plain(BodyContent),
    /// With the decoder of the current member.
    Packed(Box<write::GzDecoder<BodyContent>>),
}

impl BodyBuffer {
    /// A buffer for content of at most `max` bytes.
    pub(super) fn new(is_packed: bool, max: usize, budget: Option<&BodyBudget>) -> Self {
        let content = BodyContent::new(max, budget);
        match is_packed {
            true => Self::Packed(Box::new(write::GzDecoder::new(content))),
            false => Self::Plain(content),
        }
    }

    /// The content so far.
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Plain(content) => content.bytes(),
            Self::Packed(decoder) => decoder.get_ref().bytes(),
        }
    }

    /// Adds received bytes; [`HttpError::TooLarge`] if their content exceeds the limit. The last bytes of the content
    /// may appear only after more input or the end.
    pub(super) fn add(&mut self, mut received: &[u8]) -> Result<(), HttpError> {
        let decoder = match self {
            Self::Plain(content) => {
                content.received += received.len();
                return content.add(received);
            }
            Self::Packed(decoder) => decoder,
        };
        // Each turn decompresses a few bytes, so that the content is compared with what it was made from.
        while !received.is_empty() && !decoder.get_ref().is_padded {
            match decoder.write(received) {
                // The member has ended; if it has not, it cannot be finished.
                Ok(0) => {
                    decoder.try_finish().map_err(|_| decoder.get_mut().take_fault())?;
                    let content = decoder.get_mut();
                    if received.first() == Some(&0) {
                        content.is_padded = true;
                    } else {
                        let content = mem::replace(content, BodyContent::new(0, None));
                        **decoder = write::GzDecoder::new(content);
                    }
                }
                Ok(length) => {
                    decoder.get_mut().received += length;
                    received = received.get(length..).unwrap_or_default();
                }
                Err(_) => return Err(decoder.get_mut().take_fault()),
            }
        }
        check_padding(received)
    }

    /// The whole content, after the last byte arrived.
    pub(super) fn finish(self) -> Result<Bytes, HttpError> {
        let content = match self {
            Self::Plain(content) => content,
            // An empty body is empty whatever its headers say.
            Self::Packed(decoder) if decoder.get_ref().received == 0 => return Ok(Bytes::new()),
            Self::Packed(mut decoder) => {
                decoder.try_finish().map_err(|_| decoder.get_mut().take_fault())?;
                decoder.finish().map_err(|_| HttpError::CutOff)?
            }
        };
        Ok(match content.counted {
            Some(counted) => content.share.attach(counted),
            None => content.bytes.into(),
        })
    }
}

/// The content of a body, in memory that is counted.
pub(super) struct BodyContent {
    /// What is not counted.
    bytes: Vec<u8>,
    /// All of it, once it is counted.
    counted: Option<CountedContent>,
    max: usize,
    /// Length as sent.
    received: usize,
    share: BodyShare,
    /// Whether zeros follow the last member.
    is_padded: bool,
    /// Why the last bytes were not added.
    fault: Option<HttpError>,
}

impl BodyContent {
    fn new(max: usize, budget: Option<&BodyBudget>) -> Self {
        let share = BodyShare::new(budget);
        Self { bytes: Vec::new(), counted: None, max, received: 0, share, is_padded: false, fault: None }
    }

    /// Why decompression failed.
    fn take_fault(&mut self) -> HttpError {
        self.fault.take().unwrap_or(HttpError::CutOff)
    }

    fn bytes(&self) -> &[u8] {
        self.counted.as_ref().map_or(&self.bytes, CountedContent::as_ref)
    }

    fn add(&mut self, more: &[u8]) -> Result<(), HttpError> {
        let length = self.bytes().len() + more.len();
        if length > self.max {
            return Err(HttpError::TooLarge);
        }
        let is_extended = self.share.cover(length, self.received)?;
        match &mut self.counted {
            Some(counted) => counted.add(more)?,
            None if is_extended => {
                let counted = self.counted.insert(CountedContent::new(self.max)?);
                counted.add(&mem::take(&mut self.bytes))?;
                counted.add(more)?;
            }
            None => self.bytes.extend_from_slice(more),
        }
        Ok(())
    }
}

impl std::io::Write for BodyContent {
    fn write(&mut self, more: &[u8]) -> std::io::Result<usize> {
        self.add(more).map_err(|fault| {
            self.fault = Some(fault);
            std::io::Error::other("the content is not read on")
        })?;
        Ok(more.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Destination of a body that is too large for memory.
#[async_trait]
pub(crate) trait BodySink: Send {
    /// Starts a body, of `of` bytes if announced; data of an earlier attempt is discarded.
    async fn begin(&mut self, of: Option<u64>) -> Result<(), HttpError>;

    /// Writes the next bytes.
    async fn write(&mut self, bytes: Bytes) -> Result<(), HttpError>;
}

/// Writes the whole body to `sink`; [`HttpError::TooLarge`] as soon as it exceeds `max`.
///
/// The body must not be compressed.
pub(super) async fn write_to(
    mut response: Response,
    max: usize,
    sink: &mut dyn BodySink,
) -> Result<(), HttpError> {
    if is_gzip(response.headers())? {
        return Err(HttpError::Encoded);
    }
    let announced = response.content_length();
    let max = max as u64;
    if announced.is_some_and(|length| length > max) {
        return Err(HttpError::TooLarge);
    }
    sink.begin(announced).await?;
    let mut length = 0_u64;
    while let Some(chunk) = response.chunk().await.map_err(|error| HttpError::from_reqwest(&error))? {
        length += chunk.len() as u64;
        if length > max {
            return Err(HttpError::TooLarge);
        }
        sink.write(chunk).await?;
    }
    Ok(())
}

/// Whether a body is gzip; [`HttpError::Encoded`] for any other encoding.
pub(super) fn is_gzip(headers: &HeaderMap) -> Result<bool, HttpError> {
    let mut names = headers.get_all(header::CONTENT_ENCODING).iter();
    let is =
        |name: &HeaderValue, known: &str| name.as_bytes().trim_ascii().eq_ignore_ascii_case(known.as_bytes());
    match (names.next(), names.next()) {
        (None, _) => Ok(false),
        (Some(name), None) if is(name, "gzip") || is(name, "x-gzip") => Ok(true),
        (Some(name), None) if is(name, "identity") || is(name, "") => Ok(false),
        _ => Err(HttpError::Encoded),
    }
}

/// Decompresses gzip data of at most `max` bytes.
fn inflate(body: &[u8], max: usize, budget: Option<&BodyBudget>) -> Result<Bytes, HttpError> {
    // An empty body is empty whatever its headers say.
    if body.is_empty() {
        return Ok(Bytes::new());
    }
    // The last four bytes of gzip data are the claimed length of its last member.
    let claimed = body.last_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes));
    match inflate_from(&mut &*body, usize::try_from(claimed).unwrap_or(0), max.min(UNCOUNTED_BYTES)) {
        // What is counted is decompressed in steps.
        Err(HttpError::TooLarge) if max > UNCOUNTED_BYTES => {
            let mut buffer = BodyBuffer::new(true, max, budget);
            buffer.add(body)?;
            buffer.finish()
        }
        result => result,
    }
}

/// Decompresses gzip data of at most `max` bytes, which is probably `claimed` bytes long.
fn inflate_from(body: &mut &[u8], claimed: usize, max: usize) -> Result<Bytes, HttpError> {
    let mut whole = Vec::with_capacity(claimed.min(max) + 1);
    loop {
        let limit = (max - whole.len()) as u64 + 1;
        let member = bufread::GzDecoder::new(&mut *body).take(limit).read_to_end(&mut whole);
        member.map_err(|_| HttpError::CutOff)?;
        if whole.len() > max {
            return Err(HttpError::TooLarge);
        }
        if matches!(body.first(), None | Some(0)) {
            return check_padding(body).map(|()| whole.into());
        }
    }
}

/// Checks what follows the last member: zeros are ignored, as `gzip` does.
fn check_padding(rest: &[u8]) -> Result<(), HttpError> {
    if rest.iter().all(|byte| *byte == 0) { Ok(()) } else { Err(HttpError::CutOff) }
}

#[cfg(test)]
mod tests {
    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzipped(body: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(body).unwrap();
        encoder.finish().unwrap()
    }

    fn inflate(body: &[u8], max: usize) -> Result<Bytes, HttpError> {
        super::inflate(body, max, None)
    }

    /// Decompresses gzip data that arrives in pieces of this size.
    fn read(packed: &[u8], piece: usize, max: usize) -> Result<Bytes, HttpError> {
        let mut buffer = BodyBuffer::new(true, max, None);
        packed.chunks(piece).try_for_each(|received| buffer.add(received))?;
        buffer.finish()
    }

    #[test]
    fn inflate_body_within_limit_is_restored() {
        let body: Vec<u8> = (0..300_000_u32).map(|n| (n % 251) as u8).collect();
        let packed = gzipped(&body);
        assert_eq!(inflate(&packed, body.len()).unwrap(), body);
        assert_eq!(inflate(&packed, body.len() - 1), Err(HttpError::TooLarge));
        assert_eq!(inflate(&gzipped(b""), 0).unwrap(), "");
        assert_eq!(inflate(b"", 10).unwrap(), "");
    }

    /// A counting reader of the compressed data: the rest of a bomb is not even read.
    #[test]
    fn inflate_bomb_stops_at_limit() {
        let bomb = gzipped(&vec![0; 64 << 20]);
        assert!(bomb.len() * 1_000 < 64 << 20, "{}", bomb.len());
        for max in [0, 1_000, 1 << 20] {
            let mut left = &bomb[..];
            assert_eq!(inflate_from(&mut left, 0, max), Err(HttpError::TooLarge));
            let read = bomb.len() - left.len();
            assert!(read <= max / 500 + 1_000, "{read} of {} bytes for {max}", bomb.len());
        }
        // Data in data is decompressed once.
        assert_eq!(inflate(&gzipped(&bomb), 1 << 20).unwrap(), bomb);
    }

    #[test]
    fn inflate_damaged_data_is_cut_off() {
        let packed = gzipped(&[7; 1_000]);
        for length in 1..packed.len() {
            assert_eq!(inflate(&packed[..length], 1_000), Err(HttpError::CutOff), "{length}");
        }
        // The method, the checksum and the length; a false length allocates no memory.
        for offset in [2, packed.len() - 8, packed.len() - 1] {
            let mut damaged = packed.clone();
            damaged[offset] ^= 0x80;
            assert_eq!(inflate(&damaged, 1_000), Err(HttpError::CutOff), "{offset}");
        }
        assert_eq!(inflate(b"not gzip", 1_000), Err(HttpError::CutOff));
    }

    #[test]
    fn gzip_members_are_all_read() {
        let content = b"one, two and three";
        let packed = [gzipped(b"one, "), gzipped(b""), gzipped(b"two and "), gzipped(b"three")].concat();
        assert_eq!(inflate(&packed, content.len()).unwrap(), &content[..]);
        assert_eq!(inflate(&packed, content.len() - 1), Err(HttpError::TooLarge));
        for piece in [1, 7, usize::MAX] {
            assert_eq!(read(&packed, piece, content.len()).unwrap(), &content[..]);
            assert_eq!(read(&packed, piece, content.len() - 1), Err(HttpError::TooLarge));
        }
        for zeros in [1, 9, 600] {
            let padded = [&packed[..], &vec![0; zeros][..]].concat();
            assert_eq!(inflate(&padded, content.len()).unwrap(), &content[..]);
            for piece in [1, 7, packed.len(), usize::MAX] {
                assert_eq!(read(&padded, piece, content.len()).unwrap(), &content[..], "{zeros} {piece}");
            }
        }
        // Of a part that is no member, it is unknown what it had.
        let after_zeros = [&[0; 9][..], &packed[..]].concat();
        let ends: [&[u8]; 6] =
            [&packed[..5], &packed[..packed.len() - 1], b"more", b"\x1f\x8b", b"\0\0x", &after_zeros];
        for end in ends {
            let cut_off = [&packed[..], end].concat();
            assert_eq!(inflate(&cut_off, 1_000), Err(HttpError::CutOff), "{end:?}");
            for piece in [1, 7, usize::MAX] {
                assert_eq!(read(&cut_off, piece, 1_000), Err(HttpError::CutOff), "{end:?} {piece}");
            }
        }
    }

    #[test]
    fn body_buffer_holds_whole_content_within_limit() {
        let body: Vec<u8> = (0..300_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 25) as u8).collect();
        let packed = gzipped(&body);
        for piece in [1, 5_000, usize::MAX] {
            assert_eq!(read(&packed, piece, body.len()).unwrap(), body);
            assert_eq!(read(&packed, piece, body.len() - 1), Err(HttpError::TooLarge));
            assert_eq!(read(&packed[..packed.len() - 1], piece, body.len()), Err(HttpError::CutOff));
            assert_eq!(read(b"", piece, 0).unwrap(), "");
        }
        let mut damaged = packed.clone();
        damaged[packed.len() - 5] ^= 1;
        assert_eq!(read(&damaged, 5_000, body.len()), Err(HttpError::CutOff), "the checksum");
        let mut bomb = BodyBuffer::new(true, 1_000, None);
        assert_eq!(bomb.add(&gzipped(&vec![0; 64 << 20])), Err(HttpError::TooLarge));
        assert!(bomb.bytes().len() <= 1_000, "{}", bomb.bytes().len());
    }

    #[test]
    fn body_buffer_takes_budget_for_honest_data_only() {
        let words = "and the same words as in every other line of these captions ".repeat(4);
        let line = |number: u32| format!("{} {words}\n", number.wrapping_mul(2_654_435_761));
        let body: String = (0..20_000).map(line).collect();
        let (packed, max) = (gzipped(body.as_bytes()), 32 << 20);
        assert!((20..100).contains(&(body.len() / packed.len())), "{} bytes", packed.len());
        let read = |is_packed: bool, sent: &[u8], budget: &BodyBudget| {
            let mut buffer = BodyBuffer::new(is_packed, max, Some(budget));
            buffer.add(sent)?;
            buffer.finish()
        };
        let units = (body.len() - UNCOUNTED_BYTES).div_ceil(1 << 20);
        for (total, expect) in
            [(2 * units, Ok(Bytes::from(body.clone()))), (2 * units - 1, Err(HttpError::Busy))]
        {
            let budget = BodyBudget::new(total);
            let first = read(false, body.as_bytes(), &budget).unwrap();
            assert!(read(true, &packed, &budget) == expect, "{total} units");
            assert!(super::inflate(&packed, max, Some(&budget)) == expect, "{total} units, at once");
            assert_eq!(first.len(), body.len());
        }
        // The last part of the content leaves the decoder at the end.
        let (content, _) = body.as_bytes().split_at(UNCOUNTED_BYTES + 1_000);
        assert_eq!(read(true, &gzipped(content), &BodyBudget::new(0)), Err(HttpError::Busy));
        // A bomb ends before it takes any.
        let bomb = gzipped(&vec![0; 32 << 20]);
        assert_eq!(read(true, &bomb, &BodyBudget::new(0)), Err(HttpError::TooLarge));
        assert_eq!(super::inflate(&bomb, max, Some(&BodyBudget::new(0))), Err(HttpError::TooLarge));
    }

    #[test]
    fn content_encoding_only_gzip_is_accepted() {
        for (names, expect) in [
            (&[][..], Ok(false)),
            (&["gzip"], Ok(true)),
            (&[" X-GZip "], Ok(true)),
            (&["identity"], Ok(false)),
            (&[""], Ok(false)),
            (&["br"], Err(HttpError::Encoded)),
            (&["gzip, gzip"], Err(HttpError::Encoded)),
            (&["gzip", "gzip"], Err(HttpError::Encoded)),
        ] {
            let mut headers = HeaderMap::new();
            for name in names {
                headers.append(header::CONTENT_ENCODING, HeaderValue::from_static(name));
            }
            assert_eq!(is_gzip(&headers), expect, "{names:?}");
        }
    }
}
