//! `Accept-Encoding`: the encoding of a response body (RFC 9110, 12.5.3).

use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};

/// Encoding of a body, in order of preference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ContentEncoding {
    Zstd,
    /// `br`
    Brotli,
    Gzip,
    /// Not compressed.
    Identity,
}

/// Maximum number of codings that are read; no client has more.
const CODINGS_MAX: usize = 32;
/// A weight of 1, in thousandths.
const ONE: u16 = 1_000;

impl ContentEncoding {
    const ALL: [Self; 4] = [Self::Zstd, Self::Brotli, Self::Gzip, Self::Identity];

    /// The value of `Content-Encoding`, or `None` if the body is not compressed.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Brotli => Some(HeaderValue::from_static("br")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
            Self::Identity => None,
        }
    }

    fn from_name(name: &str) -> Option<Self> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        if is("zstd") {
            Some(Self::Zstd)
        } else if is("br") {
            Some(Self::Brotli)
        } else if is("gzip") || is("x-gzip") {
            Some(Self::Gzip)
        } else if is("identity") {
            Some(Self::Identity)
        } else {
            None
        }
    }

    /// Returns the encoding with the highest weight, or `None` if the client refuses all.
    ///
    /// Unreadable elements are ignored.
    pub(crate) fn negotiate(headers: &HeaderMap) -> Option<Self> {
        let mut weights = [None; Self::ALL.len()];
        let mut others = None;
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for element in values.flat_map(|value| value.split(',')).take(CODINGS_MAX) {
            let (name, parameters) = element.split_once(';').unwrap_or((element, ""));
            let Some(weight) = weight(parameters) else { continue };
            let name = name.trim();
            if name == "*" {
                others = Some(weight);
            } else if let Some(encoding) = Self::from_name(name) {
                weights[encoding as usize] = Some(weight);
            }
        }
        let weight = |encoding: Self| match (weights[encoding as usize], others, encoding) {
            (Some(weight), _, _) | (None, Some(weight), _) => weight,
            // Identity is acceptable unless it is refused by name; named codings are preferred to it.
            (None, None, Self::Identity) => 1,
            (None, None, _) => 0,
        };
        // `max_by_key` returns the last of equals, so the order is reversed.
        let best = Self::ALL.into_iter().rev().max_by_key(|encoding| weight(*encoding));
        best.filter(|encoding| weight(*encoding) > 0)
    }
}

/// Returns the weight of a coding in thousandths, 1,000 without parameters, or `None` if it is invalid.
fn weight(parameters: &str) -> Option<u16> {
    let parameters = parameters.trim();
    if parameters.is_empty() {
        return Some(ONE);
    }
    let (name, value) = parameters.split_once('=')?;
    if !name.trim_end().eq_ignore_ascii_case("q") {
        return None;
    }
    let (whole, part) = value.trim_start().split_once('.').unwrap_or((value.trim_start(), ""));
    if part.len() > 3 || !part.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let part = part.bytes().chain([b'0'; 3]).take(3).fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'));
    match (whole, part) {
        ("0", part) => Some(part),
        ("1", 0) => Some(ONE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(values: &[&str], expect: Option<ContentEncoding>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(ContentEncoding::negotiate(&headers), expect, "{values:?}");
    }

    #[test]
    fn accept_encoding_highest_weight_is_selected() {
        use ContentEncoding::{Brotli, Gzip, Identity, Zstd};
        check(&[], Some(Identity));
        check(&[""], Some(Identity));
        check(&["gzip"], Some(Gzip));
        check(&["GZip ; Q=1.000"], Some(Gzip));
        check(&["x-gzip"], Some(Gzip));
        check(&["gzip, deflate, br, zstd"], Some(Zstd));
        check(&["gzip", "br"], Some(Brotli));
        check(&["gzip;q=0.9, br;q=0.8, zstd;q=0.899"], Some(Gzip));
        check(&["gzip;q=0.001"], Some(Gzip));
        check(&["deflate, compress"], Some(Identity));
        check(&["identity, gzip;q=0.5"], Some(Identity));
        check(&["identity, gzip"], Some(Gzip));
        check(&["*"], Some(Zstd));
        check(&["zstd;q=0, *"], Some(Brotli));
        check(&["*;q=0, gzip"], Some(Gzip));
        check(&["identity;q=0, br;q=0.1"], Some(Brotli));
        check(&["gzip;q=0"], Some(Identity));
        check(&["gzip, gzip;q=0"], Some(Identity));
        check(&["*;q=0.5, identity;q=0.6"], Some(Identity));
    }

    #[test]
    fn accept_encoding_all_refused_selects_none() {
        check(&["identity;q=0"], None);
        check(&["*;q=0"], None);
        check(&["identity;q=0.000, gzip;q=0"], None);
    }

    #[test]
    fn accept_encoding_invalid_element_is_ignored() {
        use ContentEncoding::{Gzip, Identity, Zstd};
        for value in
            ["gzip;q=2", "gzip;q=-1", "gzip;q=0.1234", "gzip;q=", "gzip;q=1.001", "gzip;x=1", "gzip;"]
        {
            let expect = if value == "gzip;" { Gzip } else { Identity };
            check(&[value], Some(expect));
        }
        check(&[",,;,=,;q=1,gzip\t,"], Some(Gzip));
        check(&["gzip;q=NaN, zstd;q=0.1"], Some(Zstd));
        check(&["\u{fc}", "gzip"], Some(Gzip));
        check(&[&"gzip;q=0,".repeat(5_000)], Some(Identity));
        check(&[&format!("{}zstd", "a,".repeat(32))], Some(Identity));
        check(&[&"*".repeat(30_000)], Some(Identity));
    }
}
