//! `Accept-Encoding`: which form of a body the caller wants (RFC 9110, 12.5.3).

use http::{HeaderMap, HeaderValue, header::ACCEPT_ENCODING};

/// How a body is compressed. The first ones are preferred where the caller does not care.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Encoding {
    /// `zstd`
    Zstd,
    /// `br`
    Brotli,
    /// `gzip`
    Gzip,
    /// As it is.
    Identity,
}

/// How many codings are looked at; nobody knows more.
const CODINGS_MAX: usize = 32;
/// A weight of 1, in thousandths.
const ONE: u16 = 1_000;

impl Encoding {
    const ALL: [Self; 4] = [Self::Zstd, Self::Brotli, Self::Gzip, Self::Identity];

    /// The value of `Content-Encoding`; none for a body as it is.
    pub(crate) fn header(self) -> Option<HeaderValue> {
        match self {
            Self::Zstd => Some(HeaderValue::from_static("zstd")),
            Self::Brotli => Some(HeaderValue::from_static("br")),
            Self::Gzip => Some(HeaderValue::from_static("gzip")),
            Self::Identity => None,
        }
    }

    fn named(name: &str) -> Option<Self> {
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

    /// The one that the caller likes best; none when the caller refuses them all. What cannot be read is
    /// not there.
    pub(crate) fn chosen(headers: &HeaderMap) -> Option<Self> {
        let mut weights = [None; Self::ALL.len()];
        let mut others = None;
        let values = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
        for element in values.flat_map(|value| value.split(',')).take(CODINGS_MAX) {
            let (name, parameters) = element.split_once(';').unwrap_or((element, ""));
            let Some(weight) = weight(parameters) else { continue };
            let name = name.trim();
            if name == "*" {
                others = Some(weight);
            } else if let Some(encoding) = Self::named(name) {
                weights[encoding as usize] = Some(weight);
            }
        }
        let weight = |encoding: Self| match (weights[encoding as usize], others, encoding) {
            (Some(weight), _, _) | (None, Some(weight), _) => weight,
            // Unless it is refused by name, a body as it is can always be sent; what is named is liked more.
            (None, None, Self::Identity) => 1,
            (None, None, _) => 0,
        };
        // The last of equals is taken, so the preferred ones come last.
        let best = Self::ALL.into_iter().rev().max_by_key(|encoding| weight(*encoding));
        best.filter(|encoding| weight(*encoding) > 0)
    }
}

/// The weight among a coding's parameters, in thousandths; 1 when there is none. None when it is no weight.
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

    fn check(values: &[&str], expect: Option<Encoding>) {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT_ENCODING, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        assert_eq!(Encoding::chosen(&headers), expect, "{values:?}");
    }

    #[test]
    fn the_caller_is_given_what_it_likes_best() {
        use Encoding::{Brotli, Gzip, Identity, Zstd};
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
    fn who_refuses_everything_gets_nothing() {
        check(&["identity;q=0"], None);
        check(&["*;q=0"], None);
        check(&["identity;q=0.000, gzip;q=0"], None);
    }

    #[test]
    fn nonsense_is_not_there() {
        use Encoding::{Gzip, Identity, Zstd};
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
