//! Request ids, which connect a response with its log lines.

use std::{
    collections::hash_map::RandomState,
    fmt,
    hash::BuildHasher,
    sync::{
        OnceLock,
        atomic::{AtomicU64, Ordering},
    },
};

use http::{HeaderMap, HeaderName, HeaderValue};
use transcript_core::headers;

use super::header_name;

/// Request and response header of the id.
pub(crate) const X_REQUEST_ID: HeaderName = header_name!(headers::X_REQUEST_ID);

/// Longest accepted client id, in bytes.
const LENGTH_MAX: usize = 64;

#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    /// Generated here from a random number of the process and a counter: unique, not unpredictable.
    Generated(u32, u64),
    /// Sent by the client.
    FromClient(HeaderValue),
}

impl RequestId {
    /// Returns the client's id if it is valid, otherwise a new one.
    pub(crate) fn from_headers(headers: &HeaderMap) -> Self {
        static PROCESS: OnceLock<u32> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(1);
        let id = headers.get(X_REQUEST_ID).filter(|id| is_valid(id.as_bytes()));
        // A copy: a clone would keep the whole head in memory while the log's queue has it.
        if let Some(Ok(id)) = id.map(|id| HeaderValue::from_bytes(id.as_bytes())) {
            return Self::FromClient(id);
        }
        // The low half of a randomly keyed hash: the standard library's source of randomness.
        let process = PROCESS.get_or_init(|| RandomState::new().hash_one(0) as u32);
        Self::Generated(*process, COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// Returns the id as a header value.
    pub(crate) fn header(&self) -> HeaderValue {
        match self {
            Self::Generated(process, count) => {
                let (digits, length) = digits(*process, *count);
                // Hexadecimal digits and a hyphen are always a valid header value.
                let id = HeaderValue::from_bytes(digits.get(..length).unwrap_or_default());
                id.unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
            }
            Self::FromClient(id) => id.clone(),
        }
    }

    /// Appends the id to a text.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Generated(process, count) => {
                let (digits, length) = digits(*process, *count);
                to.extend_from_slice(digits.get(..length).unwrap_or_default());
            }
            Self::FromClient(id) => to.extend_from_slice(id.as_bytes()),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        // ASCII letters, digits and a few symbols.
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Formats both numbers in hexadecimal with a hyphen between them, and returns the length.
///
/// The first has eight digits. A formatter takes several times as long, for every request.
fn digits(process: u32, count: u64) -> ([u8; 25], usize) {
    let width = (u64::BITS - count.leading_zeros()).div_ceil(4).max(1);
    let digit = |number: u64, position: u32| b"0123456789abcdef"[(number >> (4 * position)) as usize & 15];
    let first = (0..8).rev().map(|position| digit(u64::from(process), position));
    let second = (0..width).rev().map(|position| digit(count, position));
    let mut text = [0; 25];
    text.iter_mut().zip(first.chain([b'-']).chain(second)).for_each(|(position, byte)| *position = byte);
    (text, 9 + width as usize)
}

fn is_valid(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    // A key sent by mistake must not be logged.
    let key = id
        .windows(4)
        .any(|part| [&b"vbk_"[..], b"vba_", b"vbo_"].iter().any(|prefix| part.eq_ignore_ascii_case(prefix)));
    !id.is_empty() && id.len() <= LENGTH_MAX && id.iter().all(allowed) && !key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_id_valid_is_kept_and_invalid_replaced() {
        let long = "x".repeat(65);
        for (given, kept) in [
            ("abc-123_4.5:6", true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            (long.as_str(), false),
            ("vbk_0123456789", false),
            ("key:VBA_0123456789", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, given.parse().unwrap());
            let id = RequestId::from_headers(&headers);
            assert_eq!(id.header() == given, kept, "{given}");
            assert_ne!(id.header().as_bytes().as_ptr(), headers[X_REQUEST_ID].as_bytes().as_ptr());
            assert!(is_valid(id.header().as_bytes()), "{id:?}");
            let mut text = Vec::new();
            id.write(&mut text);
            assert_eq!(id.header(), text.as_slice());
            assert_eq!(id.header(), id.to_string());
        }
        let none = || RequestId::from_headers(&HeaderMap::new()).header();
        assert_ne!(none(), none());
    }

    #[test]
    fn request_id_new_is_two_numbers() {
        for (process, count) in
            [(0, 0), (1, 1), (0xABCD, 0xF), (7, 0x10), (u32::MAX, 0x1234_5678), (3, u64::MAX)]
        {
            let id = RequestId::Generated(process, count).header();
            assert_eq!(id.to_str().unwrap(), format!("{process:08x}-{count:x}"));
        }
    }
}
