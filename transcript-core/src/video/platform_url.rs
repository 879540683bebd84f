//! Parsed web link whose host belongs to a platform.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use super::{
    LinkError, Platform, VideoId, VideoLink,
    hosts::{self, HostKind},
    link_finder::{self, LinkCandidate, UrlScheme},
};

/// Maximum number of path segments read: more than any link of a platform has.
const SEGMENTS_MAX: usize = 8;

/// Result of parsing one link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Parsed<T> {
    /// What it names.
    Target(T),
    /// The text of another link, to which this one leads.
    Wrapped(String),
}

/// A link parsed as that of a video, or as a short link.
pub(super) type ParsedLink = Parsed<VideoLink>;

impl ParsedLink {
    /// The link that another link carries; one that begins with its path is on the site `base`.
    pub(super) fn wrapped(inner: &str, base: &str) -> Self {
        let inner = link_finder::decoded(inner.trim());
        // Browsers read a backslash there as a second slash, which a host follows.
        if inner.starts_with('/') && !inner.starts_with("//") && !inner.starts_with("/\\") {
            Self::Wrapped(format!("{base}{inner}"))
        } else {
            Self::Wrapped(inner.into_owned())
        }
    }
}

/// Link whose host belongs to a platform.
#[derive(Clone, Debug)]
pub(super) struct PlatformUrl {
    host_kind: HostKind,
    url: Url,
}

impl PlatformUrl {
    /// Parses a web link.
    ///
    /// The host is checked before anything is parsed, by the characters as written: percent-encoding, other
    /// scripts, a user name, a port or a backslash make programs disagree about the host.
    pub(super) fn parse(candidate: &LinkCandidate<'_>) -> Result<Self, LinkError> {
        let rest = candidate.rest.as_ref();
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if authority.is_empty() {
            return Err(LinkError::not_a_link());
        }
        if authority.contains('\\') {
            return Err(LinkError::unsafe_authority("a backslash"));
        }
        if authority.contains('@') {
            return Err(LinkError::unsafe_authority("a user name or password"));
        }
        if !authority.bytes().all(|c| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'-' | b'_' | b':')) {
            return Err(LinkError::disguised_host());
        }
        let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
        let (scheme, default_port) = match candidate.scheme {
            UrlScheme::Http => ("http", "80"),
            _ => ("https", "443"),
        };
        if !port.is_empty() && port != default_port {
            return Err(LinkError::unsafe_authority("a non-default port"));
        }
        let host = host.to_ascii_lowercase();
        let host_kind = hosts::host_kind(&host).ok_or_else(|| LinkError::unknown_host(&host))?;
        let path = rest.get(authority.len()..).unwrap_or_default();
        Self::parse_with_host(host_kind, &format!("{scheme}://{host}{path}"), &host)
    }

    fn parse_with_host(host_kind: HostKind, address: &str, host: &str) -> Result<Self, LinkError> {
        let url = Url::parse(address).map_err(|_| LinkError::not_a_link())?;
        // Both readings of the host must agree, otherwise one of them is wrong.
        if url.host_str() == Some(host) {
            Ok(Self { host_kind, url })
        } else {
            Err(LinkError::disguised_host())
        }
    }

    pub(super) fn host_kind(&self) -> HostKind {
        self.host_kind
    }

    /// Its host, in lower case.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// Segments of its path, decoded, without empty ones.
    pub(super) fn segments(&self) -> Vec<Cow<'_, str>> {
        segments_of(self.url.path())
    }

    /// Text between `?` and `#`, as written.
    pub(super) fn query(&self) -> &str {
        self.url.query().unwrap_or_default()
    }

    /// First non-empty parameter with one of these names, decoded.
    pub(super) fn parameter(&self, names: &[&str]) -> Option<Cow<'_, str>> {
        parameter_of(self.query(), names)
    }

    /// Text after `#`, without the `!` of pages that scripts load.
    pub(super) fn fragment(&self) -> &str {
        let fragment = self.url.fragment().unwrap_or_default();
        fragment.strip_prefix('!').unwrap_or(fragment)
    }
}

/// Segments of a path, decoded, without empty ones.
pub(super) fn segments_of(path: &str) -> Vec<Cow<'_, str>> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .take(SEGMENTS_MAX)
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy())
        .collect()
}

/// Whether the segments after the code of a short link are text that follows the link, as in `/CODE/。`.
///
/// A part of the path would begin with a character of ids.
pub(super) fn is_text_after_code(after: &[impl AsRef<str>]) -> bool {
    let first = after.first().and_then(|segment| segment.as_ref().bytes().next());
    first.is_none_or(|c| !link_finder::is_id_byte(c))
}

/// Parses a numeric id at the start of a path segment or of a parameter.
///
/// Punctuation or letters of another script may follow the digits, as in running text, but no letters that could
/// belong to an id.
pub(super) fn leading_number(platform: Platform, text: &str) -> Result<VideoId, LinkError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let continues = text.as_bytes().get(digits).is_some_and(u8::is_ascii_alphanumeric);
    match text.get(..digits) {
        Some(id) if !continues => VideoId::new(platform, id),
        _ => Err(LinkError::malformed_id(platform, text)),
    }
}

/// First non-empty parameter of a query with one of these names, decoded.
///
/// A semicolon separates parameters as `&` does, which also handles `&amp;` and `&amp;amp;`.
pub(super) fn parameter_of<'a>(query: &'a str, names: &[&str]) -> Option<Cow<'a, str>> {
    query
        .split(['&', ';'])
        .filter_map(|pair| form_urlencoded::parse(pair.as_bytes()).next())
        .find(|(name, value)| names.contains(&name.as_ref()) && !value.trim().is_empty())
        .map(|(_, value)| value)
}
