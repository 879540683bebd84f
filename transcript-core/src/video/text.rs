//! Finding the link in what people paste: a sentence, markup, Markdown, an escaped or encoded copy.
//!
//! A word of the text holds at most one link: where it begins with a foreign link, whatever else the word
//! holds belongs to that link. So `evil.example/?u=https://youtu.be/…` is a link to `evil.example`.

use std::borrow::Cow;

use percent_encoding::percent_decode_str;

/// The longest text before a link's path that is looked at: a host name has at most 253 bytes.
const AUTHORITY_MAX: usize = 300;

/// The longest scheme that is looked at; the longest of ours has 18 bytes.
const SCHEME_MAX: usize = 32;

/// What comes before the colon of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scheme {
    /// `http`.
    Http,
    /// `https`, or none.
    Https,
    /// A link into YouTube's app: `vnd.youtube` and its relatives.
    YouTubeApp,
    /// A link into TikTok's app.
    TikTokApp,
    /// A link into Instagram's app.
    InstagramApp,
    /// A link into X's app.
    XApp,
    /// Any other.
    Other,
}

impl Scheme {
    fn of(name: &str) -> Self {
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

/// A part of a text that looks like a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Candidate<'a> {
    pub(super) scheme: Scheme,
    /// All that comes after the scheme and its slashes, without the escapes of shells, JSON and HTML.
    pub(super) rest: Cow<'a, str>,
}

impl<'a> Candidate<'a> {
    /// The link that a text begins with; for a link that was inside another one.
    pub(super) fn beginning(text: &'a str) -> Option<Self> {
        Self::at(text.split_whitespace().next()?, Edge::Free)
    }

    /// The link that begins here, right after an edge.
    fn at(here: &'a str, edge: Edge) -> Option<Self> {
        if let Some((scheme, _)) = split_scheme(here) {
            let is_web = matches!(scheme, Scheme::Http | Scheme::Https);
            let (_, rest) = split_scheme(extent(here, edge))?;
            return (is_web || edge != Edge::SchemeOnly).then(|| Self::new(scheme, rest));
        }
        let bare = here.strip_prefix("//").unwrap_or(here);
        let is_link = edge != Edge::SchemeOnly && begins_with_host(bare, edge);
        is_link.then(|| Self::new(Scheme::Https, extent(bare, edge)))
    }

    fn new(scheme: Scheme, rest: &'a str) -> Self {
        if rest.starts_with("\\/\\/") {
            // JSON may write every slash with a backslash before it.
            let plain = rest.replace("\\/", "/");
            return Self { scheme, rest: Cow::Owned(unescaped(plain.trim_start_matches('/')).into_owned()) };
        }
        let rest = rest.trim_start_matches('/');
        // A link pasted behind an address bar's own scheme gives "https://https://"; the inner one counts.
        match split_scheme(rest) {
            Some((inner @ (Scheme::Http | Scheme::Https), rest)) => {
                Self { scheme: inner, rest: unescaped(rest.trim_start_matches('/')) }
            }
            _ => Self { scheme, rest: unescaped(rest) },
        }
    }
}

/// The text without white space and invisible characters around it.
pub(super) fn trimmed(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c.is_control() || is_invisible(c))
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{AD}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}' | '\u{2060}'..='\u{2069}' | '\u{FEFF}')
}

/// The text, decoded once where all of it is a percent-encoded link, as cut out of another link's query.
pub(super) fn decoded(text: &str) -> Cow<'_, str> {
    let begins = |known: &str| text.get(..known.len()).is_some_and(|start| start.eq_ignore_ascii_case(known));
    if begins("https%3A") || begins("http%3A") {
        percent_decode_str(text).decode_utf8_lossy()
    } else {
        Cow::Borrowed(text)
    }
}

/// A bare word, without the quotation marks around it or the backslash that hides a leading hyphen in a shell.
pub(super) fn bare_word(text: &str) -> &str {
    let word = text.trim_matches(['"', '\'', '`', '<', '>', '“', '”']);
    word.strip_prefix('\\').unwrap_or(word)
}

/// The links in a text, in their order; every word holds at most one.
pub(super) fn links(text: &str) -> impl Iterator<Item = Candidate<'_>> {
    text.split_whitespace().filter_map(link_in)
}

fn link_in(word: &str) -> Option<Candidate<'_>> {
    let after = word.char_indices().map(|(at, c)| (at + c.len_utf8(), Edge::after(c)));
    std::iter::once((0, Edge::Free))
        .chain(after)
        .filter(|&(_, edge)| edge != Edge::None)
        .find_map(|(at, edge)| Candidate::at(word.get(at..)?, edge))
}

/// Punctuation of other scripts that stands before a link, and in no host name.
const OPENERS: [char; 13] = ['“', '”', '‘', '«', '»', '（', '「', '『', '【', '《', '：', '，', '、'];

/// What kind of a border the place after a character is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// No link begins here: it would be a part of a longer name.
    None,
    /// Only a link with a scheme may begin here. After a letter of another script or `_`, a name without a scheme
    /// would be the end of a longer, foreign host.
    SchemeOnly,
    /// Any link may begin here.
    Free,
    /// Any link may begin here, and this character ends it.
    Until(char),
}

impl Edge {
    fn after(c: char) -> Self {
        match c {
            '(' => Self::Until(')'),
            '[' => Self::Until(']'),
            '\'' => Self::Until('\''),
            '<' | '>' | '"' | '`' | '{' | '}' | '|' | ')' | ']' | '=' | ',' | ':' | ';' | '!' | '*' | '~' => {
                Self::Free
            }
            _ if OPENERS.contains(&c) => Self::Free,
            '_' => Self::SchemeOnly,
            _ if c.is_ascii() => Self::None,
            _ => Self::SchemeOnly,
        }
    }
}

/// Closing punctuation, which a sentence puts after a link.
const CLOSERS: [char; 12] = ['.', ',', ';', ':', '!', '?', '\'', '*', '~', ')', ']', '\\'];

/// How far a link that begins here may reach: to a character that no link has, without closing punctuation.
fn extent(here: &str, edge: Edge) -> &str {
    let link = here.split(|c| ends_link(c, edge)).next().unwrap_or(here);
    link.trim_end_matches(CLOSERS)
}

fn ends_link(c: char, edge: Edge) -> bool {
    matches!(c, '<' | '>' | '"' | '`' | '{' | '}' | '|' | '^') || edge == Edge::Until(c)
}

/// A scheme and what follows it, where the text begins with one that a link can have.
fn split_scheme(text: &str) -> Option<(Scheme, &str)> {
    let colon = text.bytes().take(SCHEME_MAX).position(|c| !is_scheme_byte(c))?;
    let (name, rest) = (text.get(..colon)?, text.get(colon..)?.strip_prefix(':')?);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let scheme = Scheme::of(name);
    let is_link = match scheme {
        Scheme::Http | Scheme::Https => rest.starts_with(['/', '\\']),
        Scheme::YouTubeApp => {
            rest.starts_with("//") || rest.bytes().take_while(|&c| is_id_byte(c)).count() >= 11
        }
        _ => rest.starts_with("//"),
    };
    is_link.then_some((scheme, rest))
}

fn is_scheme_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'+' | b'.' | b'-')
}

/// Whether the byte may stand in an identifier of the long-form site or in a reel's code.
pub(super) fn is_id_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'-' || c == b'_'
}

/// Whether the text begins with a host name, as far as one can tell without a scheme.
///
/// It is generous: whatever might be taken for a host is one, so that a foreign host is refused as a whole
/// rather than searched for a known one inside.
fn begins_with_host(text: &str, edge: Edge) -> bool {
    if !text.starts_with(is_host_character) {
        return false;
    }
    let is_end = |c: u8| matches!(c, b'/' | b'?' | b'#' | b'\\') || ends_link(char::from(c), edge);
    // Every character that ends a link is ASCII, so that this is the border of a character.
    let end = text.bytes().take(AUTHORITY_MAX).position(|c| c.is_ascii() && is_end(c));
    let Some(authority) = text.get(..end.unwrap_or(text.len())).filter(|part| part.len() <= AUTHORITY_MAX)
    else {
        return false;
    };
    if let Some((user, host)) = authority.rsplit_once('@') {
        // An address of electronic mail has no path.
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

/// Whether a host, or what pretends to be one, may have this character in it, besides dots.
fn is_host_character(c: char) -> bool {
    match c {
        '-' | '_' | '%' => true,
        _ if c.is_ascii() => c.is_ascii_alphanumeric(),
        _ => !OPENERS.contains(&c),
    }
}

/// What a shell, JSON or HTML wrote in place of a link's own characters.
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

/// A link without escapes. `&amp;` is left: it ends in a parameter's separator either way.
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
