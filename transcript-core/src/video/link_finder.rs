//! Finds the link in pasted text: a sentence, markup, Markdown, an escaped or encoded copy.
//!
//! A word of the text has at most one link. If it begins with a foreign link, the rest of the word belongs to
//! that link. So `evil.example/?u=https://youtu.be/…` is a link to `evil.example`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

use super::VideoId;
use crate::text::is_blank_sign;

/// Maximum length of the text before a link's path; a host name has at most 253 bytes.
const AUTHORITY_MAX: usize = 300;

/// Maximum length of a scheme; the longest known one has 18 bytes.
const SCHEME_MAX: usize = 32;

/// Scheme of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UrlScheme {
    /// `http`.
    Http,
    /// `https`, or no scheme.
    Https,
    /// Link into YouTube's app: `vnd.youtube` and its variants.
    YouTubeApp,
    /// Link into TikTok's app.
    TikTokApp,
    /// Link into Instagram's app.
    InstagramApp,
    /// Link into X's app.
    XApp,
    /// Any other scheme.
    Other,
}

impl UrlScheme {
    fn from_name(name: &str) -> Self {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match () {
            () if is("https") => Self::Https,
            () if is("http") => Self::Http,
            () if is("vnd.youtube") || is("vnd.youtube.launch") || is("youtube") => Self::YouTubeApp,
            () if is("snssdk1233") || is("snssdk1180") => Self::TikTokApp,
            () if is("instagram") => Self::InstagramApp,
            () if is("twitter") => Self::XApp,
            () => Self::Other,
        }
    }
}

/// Part of a text that looks like a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct LinkCandidate<'a> {
    pub(super) scheme: UrlScheme,
    /// Text after the scheme and its slashes, without the escapes of shells, JSON and HTML.
    pub(super) rest: Cow<'a, str>,
}

impl<'a> LinkCandidate<'a> {
    /// The link that a text begins with; for a link inside another one.
    pub(super) fn parse_start(text: &'a str) -> Option<Self> {
        Self::parse_at(text.split_whitespace().next()?, LinkBoundary::Any)
    }

    /// Parses the link that a text begins with; `boundary` depends on the character before it.
    fn parse_at(text: &'a str, boundary: LinkBoundary) -> Option<Self> {
        if let Some((scheme, _)) = split_scheme(text) {
            let is_web = matches!(scheme, UrlScheme::Http | UrlScheme::Https);
            let (_, rest) = split_scheme(link_text(text, boundary))?;
            return (is_web || boundary != LinkBoundary::SchemeOnly).then(|| Self::new(scheme, rest));
        }
        let bare = text.strip_prefix("//").unwrap_or(text);
        let is_link = boundary != LinkBoundary::SchemeOnly && begins_with_host(bare, boundary);
        is_link.then(|| Self::new(UrlScheme::Https, link_text(bare, boundary)))
    }

    fn new(scheme: UrlScheme, rest: &'a str) -> Self {
        if rest.starts_with("\\/\\/") {
            // JSON may have a backslash before every slash.
            let plain = rest.replace("\\/", "/");
            return Self { scheme, rest: Cow::Owned(unescaped(plain.trim_start_matches('/')).into_owned()) };
        }
        let rest = rest.trim_start_matches('/');
        // A link pasted after the scheme in an address bar is "https://https://"; the inner scheme counts.
        match split_scheme(rest) {
            Some((inner @ (UrlScheme::Http | UrlScheme::Https), rest)) => {
                Self { scheme: inner, rest: unescaped(rest.trim_start_matches('/')) }
            }
            _ => Self { scheme, rest: unescaped(rest) },
        }
    }
}

/// The text without surrounding white space and invisible characters.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || is_blank_sign(c))
}

/// The text, decoded once if all of it is a percent-encoded link, as copied from another link's query.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let begins = |known: &str| text.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
    if begins("https%3A") || begins("http%3A") {
        percent_decode_str(text).decode_utf8_lossy()
    } else {
        Cow::Borrowed(text)
    }
}

/// A bare word, without surrounding quotation marks or the backslash before a hyphen in a shell.
pub(super) fn bare_word(text: &str) -> &str {
    let word = text.trim_matches(['"', '\'', '`', '<', '>', '“', '”']);
    word.strip_prefix('\\').unwrap_or(word)
}

/// Finds the links in a text, in their order; every word has at most one.
pub(super) fn links(text: &str) -> impl Iterator<Item = LinkCandidate<'_>> {
    text.split_whitespace().filter_map(link_in)
}

fn link_in(word: &str) -> Option<LinkCandidate<'_>> {
    let after_char = word.char_indices().map(|(at, c)| (at + c.len_utf8(), LinkBoundary::after_char(c)));
    std::iter::once((0, LinkBoundary::Any))
        .chain(after_char)
        .filter(|&(_, boundary)| boundary != LinkBoundary::None)
        .find_map(|(at, boundary)| LinkCandidate::parse_at(word.get(at..)?, boundary))
}

/// Punctuation beyond ASCII that may precede a link and occurs in no host name.
const OPENERS: [char; 13] = ['“', '”', '‘', '«', '»', '（', '「', '『', '【', '《', '：', '，', '、'];

/// Which link may begin after a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LinkBoundary {
    /// No link: it would be a part of a longer name.
    None,
    /// Only a link with a scheme.
    ///
    /// After a letter of another script or `_`, a name without a scheme would be the end of a longer, foreign host.
    SchemeOnly,
    /// Any link.
    Any,
    /// Any link, which ends at this character.
    Until(char),
}

impl LinkBoundary {
    fn after_char(c: char) -> Self {
        match c {
            '(' => Self::Until(')'),
            '[' => Self::Until(']'),
            '\'' => Self::Until('\''),
            '<' | '>' | '"' | '`' | '{' | '}' | '|' | ')' | ']' | '=' | ',' | ':' | ';' | '!' | '*' | '~' => {
                Self::Any
            }
            _ if OPENERS.contains(&c) => Self::Any,
            '_' => Self::SchemeOnly,
            _ if c.is_ascii() => Self::None,
            _ => Self::SchemeOnly,
        }
    }
}

/// Closing punctuation that may follow a link in a sentence.
const CLOSERS: [char; 12] = ['.', ',', ';', ':', '!', '?', '\'', '*', '~', ')', ']', '\\'];

/// Text of a link that begins here: up to a character that no link has, without closing punctuation.
fn link_text(text: &str, boundary: LinkBoundary) -> &str {
    let link = text.split(|c| ends_link(c, boundary)).next().unwrap_or(text);
    link.trim_end_matches(CLOSERS)
}

fn ends_link(c: char, boundary: LinkBoundary) -> bool {
    matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '|' | '^') || boundary == LinkBoundary::Until(c)
}

/// Splits off the scheme at the beginning of a text, if a link can have it.
fn split_scheme(text: &str) -> Option<(UrlScheme, &str)> {
    let colon = text.bytes().take(SCHEME_MAX).position(|c| !is_scheme_byte(c))?;
    let (name, rest) = (text.get(..colon)?, text.get(colon..)?.strip_prefix(':')?);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let scheme = UrlScheme::from_name(name);
    let is_link = match scheme {
        UrlScheme::Http | UrlScheme::Https => rest.starts_with(['/', '\\']),
        UrlScheme::YouTubeApp => rest.starts_with("//") || id_length(rest) >= VideoId::YOUTUBE_LENGTH,
        _ => rest.starts_with("//"),
    };
    is_link.then_some((scheme, rest))
}

fn is_scheme_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'+' | b'.' | b'-')
}

/// Number of bytes at the beginning of a text that may be an id or a code.
pub(super) fn id_length(text: &str) -> usize {
    text.bytes().take_while(|&c| is_id_byte(c)).count()
}

/// Whether the byte may be part of a YouTube id or an Instagram code.
pub(super) fn is_id_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'-' || c == b'_'
}

/// Whether the text begins with a host name, as far as that is clear without a scheme.
///
/// The check is generous: anything that may be a host counts as one. So a foreign host is rejected as a whole
/// and not searched for a known host inside.
fn begins_with_host(text: &str, boundary: LinkBoundary) -> bool {
    if !text.starts_with(is_host_character) {
        return false;
    }
    let is_end = |c: u8| matches!(c, b'/' | b'?' | b'#' | b'\\') || ends_link(char::from(c), boundary);
    // Every character that ends a link is ASCII, so this is a character boundary.
    let end = text.bytes().take(AUTHORITY_MAX).position(|c| c.is_ascii() && is_end(c));
    let Some(authority) = text.get(..end.unwrap_or(text.len())).filter(|part| part.len() <= AUTHORITY_MAX)
    else {
        return false;
    };
    if let Some((user, host)) = authority.rsplit_once('@') {
        // An email address has no path.
        let has_path =
            text.get(authority.len()..).is_some_and(|rest| rest.starts_with(['/', '?', '#', '\\']));
        return has_path && !user.is_empty() && is_host_like(host);
    }
    is_host_like(authority.trim_end_matches(CLOSERS))
}

fn is_host_like(authority: &str) -> bool {
    let host = authority.split(':').next().unwrap_or_default();
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_label = |label: &str| !label.is_empty() && label.chars().all(is_host_character);
    let last = host.rsplit('.').next().unwrap_or_default();
    host.contains('.')
        && host.split('.').all(is_label)
        && last.len() >= 2
        && !last.bytes().all(|c| c.is_ascii_digit())
}

/// Whether a host, or text that imitates one, may have this character, besides dots.
fn is_host_character(c: char) -> bool {
    match c {
        '-' | '_' | '%' => true,
        _ if c.is_ascii() => c.is_ascii_alphanumeric(),
        _ => !OPENERS.contains(&c),
    }
}

/// Escapes of shells, JSON and HTML for characters of a link.
const ESCAPES: [(&str, &str); 8] = [
    ("\\u0026", "&"),
    ("\\u003d", "="),
    ("\\?", "?"),
    ("\\=", "="),
    ("\\&", "&"),
    ("&#38;", "&"),
    ("&#038;", "&"),
    ("&#x26;", "&"),
];

/// Removes the escapes from a link. `&amp;` stays: it ends in a parameter separator either way.
fn unescaped(link: &str) -> Cow<'_, str> {
    if !link.contains('\\') && !link.contains("&#") {
        return Cow::Borrowed(link);
    }
    let mut plain = link.to_owned();
    for (escape, character) in ESCAPES {
        if plain.contains(escape) {
            plain = plain.replace(escape, character);
        }
    }
    Cow::Owned(plain)
}
