//! The name of one request, by which its log line and its answer are found.

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

/// The header that carries it, in both directions.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id that is taken over from a caller.
const LENGTH_MAX: usize = 64;

/// The name of a request.
#[derive(Clone, Debug)]
pub(crate) enum RequestId {
    /// One that was made here. It need not be unpredictable, only not repeated: the process's random number and
    /// a counter.
    Ours(u32, u64),
    /// The caller's own.
    Theirs(HeaderValue),
}

impl RequestId {
    /// The caller's own id when it is sane, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        static PROCESS: OnceLock<u32> = OnceLock::new();
        static COUNT: AtomicU64 = AtomicU64::new(1);
        if let Some(id) = headers.get(X_REQUEST_ID).filter(|id| is_sane(id.as_bytes())) {
            return Self::Theirs(id.clone());
        }
        // The low half of a randomly keyed hash: the standard library's way to a random number.
        let process = PROCESS.get_or_init(|| RandomState::new().hash_one(0) as u32);
        Self::Ours(*process, COUNT.fetch_add(1, Ordering::Relaxed))
    }

    /// The id as a header.
    pub(crate) fn header(&self) -> HeaderValue {
        match self {
            Self::Ours(process, count) => {
                let (digits, length) = digits(*process, *count);
                // Hexadecimal digits and a hyphen are always a valid header.
                let id = HeaderValue::from_bytes(digits.get(..length).unwrap_or_default());
                id.unwrap_or_else(|_| HeaderValue::from_static("unnamed"))
            }
            Self::Theirs(id) => id.clone(),
        }
    }

    /// Adds the id to a text.
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Ours(process, count) => {
                let (digits, length) = digits(*process, *count);
                to.extend_from_slice(digits.get(..length).unwrap_or_default());
            }
            Self::Theirs(id) => to.extend_from_slice(id.as_bytes()),
        }
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write(&mut text);
        // Letters, digits and a few signs of ASCII.
        f.write_str(std::str::from_utf8(&text).unwrap_or_default())
    }
}

/// Both numbers in hexadecimal digits with a hyphen between them, and how long that is: the first has eight
/// digits, the other as many as it needs. A formatter takes several times as long, for every request.
fn digits(process: u32, count: u64) -> ([u8; 25], usize) {
    let width = (u64::BITS - count.leading_zeros()).div_ceil(4).max(1);
    let digit = |number: u64, place: u32| b"0123456789abcdef"[(number >> (4 * place)) as usize & 15];
    let first = (0..8).rev().map(|place| digit(u64::from(process), place));
    let second = (0..width).rev().map(|place| digit(count, place));
    let mut text = [0; 25];
    text.iter_mut().zip(first.chain([b'-']).chain(second)).for_each(|(place, byte)| *place = byte);
    (text, 9 + width as usize)
}

fn is_sane(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b':');
    // Whoever sends a key by mistake must not find it in the log.
    let key = id.starts_with(b"vbk_") || id.starts_with(b"vba_");
    !id.is_empty() && id.len() <= LENGTH_MAX && id.iter().all(allowed) && !key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sane_ids_are_taken_over_and_others_replaced() {
        let long = "x".repeat(65);
        for (given, taken) in [
            ("abc-123_4.5:6", true),
            ("", false),
            ("a b", false),
            ("a\"b", false),
            (long.as_str(), false),
            ("vbk_0123456789", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(X_REQUEST_ID, given.parse().unwrap());
            let id = RequestId::of(&headers);
            assert_eq!(id.header() == given, taken, "{given}");
            assert!(is_sane(id.header().as_bytes()), "{id:?}");
            let mut text = Vec::new();
            id.write(&mut text);
            assert_eq!(id.header(), text.as_slice());
            assert_eq!(id.header(), id.to_string());
        }
        let none = || RequestId::of(&HeaderMap::new()).header();
        assert_ne!(none(), none());
    }

    #[test]
    fn a_new_id_is_two_numbers() {
        for (process, count) in
            [(0, 0), (1, 1), (0xABCD, 0xF), (7, 0x10), (u32::MAX, 0x1234_5678), (3, u64::MAX)]
        {
            let id = RequestId::Ours(process, count).header();
            assert_eq!(id.to_str().unwrap(), format!("{process:08x}-{count:x}"));
        }
    }
}
