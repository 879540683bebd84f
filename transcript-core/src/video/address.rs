//! A link of the web, taken apart, after its host was found to be one of the platforms' own.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;
use url::{Url, form_urlencoded};

use super::{
    LinkError, Platform, VideoId, VideoLink,
    hosts::{self, Site},
    text::{self, Candidate, Scheme},
};

/// More path segments than any platform's link has.
const SEGMENTS_MAX: usize = 8;

/// What reading one link gave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// The video, or the short link.
    Link(VideoLink),
    /// The text of another link, which this one leads to.
    Wrapped(String),
}

impl Finding {
    /// The link that another one carries; one that begins with its path is on the site `base`.
    pub(super) fn wrapped(inner: &str, base: &str) -> Self {
        let inner = text::decoded(inner.trim());
        // Browsers take a backslash there for a second slash, after which a host comes.
        if inner.starts_with('/') && !inner.starts_with("//") && !inner.starts_with("/\\") {
            Self::Wrapped(format!("{base}{inner}"))
        } else {
            Self::Wrapped(inner.into_owned())
        }
    }
}

/// A link whose host is one of the platforms' own.
#[derive(Clone, Debug)]
pub(super) struct Address {
    site: Site,
    url: Url,
}

impl Address {
    /// Takes a link of the web apart.
    ///
    /// The host is judged before anything is parsed, by the characters that were written: percent-encoding,
    /// other scripts, a user name, a port or a backslash make programs disagree about which host is meant.
    pub(super) fn parse(candidate: &Candidate<'_>) -> Result<Self, LinkError> {
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
            Scheme::Http => ("http", "80"),
            _ => ("https", "443"),
        };
        if !port.is_empty() && port != default_port {
            return Err(LinkError::unsafe_authority("a port of its own"));
        }
        let host = host.to_ascii_lowercase();
        let site = hosts::site_of(&host).ok_or_else(|| LinkError::unknown_host(&host))?;
        let path = rest.get(authority.len()..).unwrap_or_default();
        Self::at(site, &format!("{scheme}://{host}{path}"), &host)
    }

    fn at(site: Site, address: &str, host: &str) -> Result<Self, LinkError> {
        let url = Url::parse(address).map_err(|_| LinkError::not_a_link())?;
        // Both readings of the host must agree, else one of them is wrong.
        if url.host_str() == Some(host) { Ok(Self { site, url }) } else { Err(LinkError::disguised_host()) }
    }

    /// What is found at its host.
    pub(super) fn site(&self) -> Site {
        self.site
    }

    /// Its host, in lower case.
    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    /// The parts of its path, decoded, without the empty ones.
    pub(super) fn segments(&self) -> Vec<Cow<'_, str>> {
        segments_of(self.url.path())
    }

    /// Everything between `?` and `#`, as it was written.
    pub(super) fn query(&self) -> &str {
        self.url.query().unwrap_or_default()
    }

    /// The first parameter with one of these names that is not empty, decoded.
    pub(super) fn parameter(&self, names: &[&str]) -> Option<Cow<'_, str>> {
        parameter_of(self.query(), names)
    }

    /// Everything after `#`, without the mark of a page that scripts load.
    pub(super) fn fragment(&self) -> &str {
        let fragment = self.url.fragment().unwrap_or_default();
        fragment.strip_prefix('!').unwrap_or(fragment)
    }
}

/// The parts of a path, decoded, without the empty ones.
pub(super) fn segments_of(path: &str) -> Vec<Cow<'_, str>> {
    path.split('/')
        .filter(|segment| !segment.is_empty())
        .take(SEGMENTS_MAX)
        .map(|segment| percent_decode_str(segment).decode_utf8_lossy())
        .collect()
}

/// An identifier that is a number, at the start of a path segment or of a parameter.
///
/// What follows the digits may be punctuation or another script's letters, as where a sentence goes on, but not
/// letters that could belong to an identifier.
pub(super) fn leading_number(platform: Platform, text: &str) -> Result<VideoId, LinkError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let goes_on = text.as_bytes().get(digits).is_some_and(u8::is_ascii_alphanumeric);
    match text.get(..digits) {
        Some(id) if !goes_on => VideoId::new(platform, id),
        _ => Err(LinkError::malformed_id(platform, text)),
    }
}

/// The first parameter of a query with one of these names that is not empty, decoded.
///
/// A semicolon separates as well as `&` does, which also takes care of `&amp;` and `&amp;amp;`.
pub(super) fn parameter_of<'a>(query: &'a str, names: &[&str]) -> Option<Cow<'a, str>> {
    query
        .split(['&', ';'])
        .filter_map(|pair| form_urlencoded::parse(pair.as_bytes()).next())
        .find(|(name, value)| names.contains(&name.as_ref()) && !value.trim().is_empty())
        .map(|(_, value)| value)
}
