//! Types of setting values: parsing and display.

use std::{net::SocketAddr, path::PathBuf, time::Duration};

use url::{Host, Url};
#[cfg(feature = "speech")]
use verbatim::AudioFormat;

use super::layers::RawSettings;

/// Longest text that a message repeats, in characters.
const SHOWN_MAX: usize = 80;

/// Type of a setting value.
pub(crate) trait ParseSetting: Sized {
    /// The allowed values, as the end of a sentence that begins with "give".
    const ALLOWED: &'static str;
    /// Whether a refused value must not be shown.
    const SECRET: bool = false;

    /// Parses a value.
    ///
    /// # Errors
    /// The value is invalid; with a detail if [`ParseSetting::ALLOWED`] is not sufficient.
    fn read(raw: &RawSettings) -> Result<Self, Option<String>>;

    /// Returns the value as TOML, or a placeholder for a secret.
    fn show(&self) -> String;
}

/// Quotes a refused text, escapes its control characters and truncates it to [`SHOWN_MAX`].
///
/// A text that may contain a password or key is not shown: it may have been meant for another setting.
pub(super) fn quoted(text: &str) -> String {
    if may_have_secret(text) {
        return "a text (not shown)".to_owned();
    }
    let cut: String = text.chars().take(SHOWN_MAX).collect();
    let more = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{more}")
}

/// Whether a text is an address, which may have a user name or a query, or looks like a key.
fn may_have_secret(text: &str) -> bool {
    const KEY_PREFIXES: [&str; 10] =
        ["sk_", "rk_", "pk_", "sk-", "whsec_", "vbk_", "vba_", "vbo_", "bearer ", "-----begin"];
    /// Length of a run of letters and digits that may be a key. Longer names have no digits.
    const RUN: usize = 20;
    let text = text.trim().to_ascii_lowercase();
    let is_address = text.contains("://") || text.contains('@') || text.starts_with("http");
    let is_run_end = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+' | '='));
    let is_key_like = |run: &str| run.len() >= RUN && run.contains(|c: char| c.is_ascii_digit());
    is_address
        || KEY_PREFIXES.iter().any(|prefix| text.contains(prefix))
        || text.split(is_run_end).any(is_key_like)
}

/// Returns a text value; bare values are refused.
pub(super) fn text(raw: &RawSettings) -> Result<&str, Option<String>> {
    match raw {
        RawSettings::Text(text) => Ok(text.trim()),
        _ => Err(None),
    }
}

/// Returns a text or bare value.
pub(super) fn word(raw: &RawSettings) -> Result<&str, Option<String>> {
    match raw {
        RawSettings::Text(text) | RawSettings::Bare(text) => Ok(text.trim()),
        RawSettings::List(_) => Err(None),
    }
}

fn refused<E>(_: E) -> Option<String> {
    None
}

impl ParseSetting for String {
    const ALLOWED: &'static str = "a text";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        match text(raw)? {
            "" => Err(None),
            text => Ok(text.to_owned()),
        }
    }

    fn show(&self) -> String {
        toml::Value::String(self.clone()).to_string()
    }
}

impl ParseSetting for u64 {
    const ALLOWED: &'static str = "a whole number";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        word(raw)?.parse().map_err(refused)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

impl ParseSetting for f64 {
    const ALLOWED: &'static str = "a number";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let number: Self = word(raw)?.parse().map_err(refused)?;
        if number.is_finite() { Ok(number) } else { Err(None) }
    }

    fn show(&self) -> String {
        format!("{self:?}")
    }
}

impl ParseSetting for bool {
    const ALLOWED: &'static str = "true or false";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        word(raw)?.parse().map_err(refused)
    }

    fn show(&self) -> String {
        self.to_string()
    }
}

/// A duration: `20s`, `500ms`, `15m`, `6h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) struct DurationValue(pub(super) Duration);

impl ParseSetting for DurationValue {
    const ALLOWED: &'static str = "a duration such as 500ms, 20s, 15m, 6h or 7d";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        humantime::parse_duration(text(raw)?).map(Self).map_err(refused)
    }

    fn show(&self) -> String {
        // The largest unit that divides it evenly, as people write it.
        let millis = self.0.as_millis();
        let units = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000)];
        let unit = units.iter().find(|(_, unit)| millis > 0 && millis.is_multiple_of(*unit));
        unit.map_or(format!("\"{millis}ms\""), |(name, unit)| format!("\"{}{name}\"", millis / unit))
    }
}

/// A duration, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OptionalDuration(pub(super) Option<Duration>);

impl ParseSetting for OptionalDuration {
    const ALLOWED: &'static str = "off, or a duration such as 6h or 30d";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        match text(raw)? {
            "off" => Ok(Self(None)),
            _ => DurationValue::read(raw).map(|duration| Self(Some(duration.0))),
        }
    }

    fn show(&self) -> String {
        self.0.map_or_else(|| "\"off\"".to_owned(), |duration| DurationValue(duration).show())
    }
}

/// A number of bytes: `25MB` is 25 million, `25MiB` is 25 × 1,048,576.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub(super) struct ByteSize(pub(super) u64);

/// Units of sizes, longest names first.
const UNITS: [(&str, u64); 7] = [
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("KB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("B", 1),
];

impl ParseSetting for ByteSize {
    const ALLOWED: &'static str = "a size such as 500KB, 25MB or 1GiB";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = text(raw)?;
        let (number, unit) =
            UNITS.iter().find_map(|(name, unit)| Some((text.strip_suffix(name)?, unit))).ok_or(None)?;
        let number: u64 = number.trim_end().parse().map_err(refused)?;
        number.checked_mul(*unit).map(Self).ok_or(None)
    }

    fn show(&self) -> String {
        let fits = |unit: u64| self.0 >= unit && self.0.is_multiple_of(unit);
        let largest = UNITS.iter().filter(|(_, unit)| fits(*unit)).max_by_key(|(_, unit)| *unit);
        largest.map_or(format!("\"{}B\"", self.0), |(name, unit)| format!("\"{}{name}\"", self.0 / unit))
    }
}

impl ParseSetting for SocketAddr {
    const ALLOWED: &'static str = "an IP address and a port, such as 127.0.0.1:8080 or [::]:8080";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        text(raw)?.parse().map_err(refused)
    }

    fn show(&self) -> String {
        format!("\"{self}\"")
    }
}

impl ParseSetting for PathBuf {
    const ALLOWED: &'static str = "a path";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        String::read(raw).map(Self::from)
    }

    fn show(&self) -> String {
        self.display().to_string().show()
    }
}

/// A value that is one of a few words.
pub(super) trait WordSetting: Copy + PartialEq + 'static {
    /// The words, as the end of a sentence that begins with "give".
    const ALLOWED: &'static str;
    /// Each word with its value.
    const WORDS: &'static [(&'static str, Self)];
}

impl<T: WordSetting> ParseSetting for T {
    const ALLOWED: &'static str = T::ALLOWED;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let given = String::read(raw)?;
        T::WORDS.iter().find(|(word, _)| *word == given).map(|(_, value)| *value).ok_or(None)
    }

    fn show(&self) -> String {
        let word = T::WORDS.iter().find(|(_, value)| value == self).map(|(word, _)| *word);
        word.unwrap_or_default().to_owned().show()
    }
}

#[cfg(feature = "speech")]
impl WordSetting for AudioFormat {
    const ALLOWED: &'static str = "ogg, flac or wav";
    const WORDS: &'static [(&'static str, Self)] =
        &[("ogg", Self::Ogg), ("flac", Self::Flac), ("wav", Self::Wav)];
}

/// A list. The environment separates items with commas; an empty text is the empty list.
impl<T: ParseSetting> ParseSetting for Vec<T> {
    const ALLOWED: &'static str = T::ALLOWED;
    const SECRET: bool = T::SECRET;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let items = match raw {
            RawSettings::List(items) => items.clone(),
            RawSettings::Text(text) if text.trim().is_empty() => Vec::new(),
            RawSettings::Text(text) => {
                text.split(',').map(|item| RawSettings::Text(item.trim().to_owned())).collect()
            }
            RawSettings::Bare(_) => return Err(None),
        };
        items
            .iter()
            .map(|item| T::read(item).map_err(|detail| detail.or_else(|| item_detail::<T>(item))))
            .collect()
    }

    fn show(&self) -> String {
        format!("[{}]", self.iter().map(ParseSetting::show).collect::<Vec<_>>().join(", "))
    }
}

/// Names the invalid item of a list.
fn item_detail<T: ParseSetting>(item: &RawSettings) -> Option<String> {
    match item {
        RawSettings::Text(text) | RawSettings::Bare(text) if !T::SECRET => {
            Some(format!("{} is invalid", quoted(text)))
        }
        _ => None,
    }
}

/// A key or password. It is never shown; `Debug` prints a placeholder.
#[derive(Clone, PartialEq, Eq, derive_more::Debug, derive_more::Into)]
#[debug("Secret(not shown)")]
pub(crate) struct Secret(String);

impl Secret {
    /// Creates a secret.
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the secret text.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl ParseSetting for Secret {
    const ALLOWED: &'static str = "a text without white space";
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let text = String::read(raw)?;
        if text.contains(|c: char| c.is_whitespace() || c.is_control()) { Err(None) } else { Ok(Self(text)) }
    }

    fn show(&self) -> String {
        "\"(not shown)\"".to_owned()
    }
}

/// An `http` or `https` address that paths are appended to.
///
/// It has no query, fragment, user name or trailing slash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct BaseUrl(Url);

impl BaseUrl {
    /// Returns the address without a trailing slash.
    pub(crate) fn as_str(&self) -> &str {
        self.0.as_str().trim_end_matches('/')
    }

    /// Whether requests to it can be read in transit: neither TLS nor this machine.
    pub(crate) fn is_exposed(&self) -> bool {
        self.0.scheme() != "https" && !self.is_loopback()
    }

    /// Whether it is an address of this machine.
    pub(crate) fn is_loopback(&self) -> bool {
        self.host().is_some_and(|host| is_loopback_host(&host))
    }

    pub(crate) fn host(&self) -> Option<Host> {
        self.0.host().map(|host| host.to_owned())
    }
}

/// Whether a host is this machine: `localhost`, a name below it, or a loopback address.
pub(crate) fn is_loopback_host(host: &Host) -> bool {
    match host {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            name == "localhost" || name.ends_with(".localhost")
        }
        Host::Ipv4(address) => address.is_loopback(),
        Host::Ipv6(address) => address.to_canonical().is_loopback(),
    }
}

/// The host without the dot at the end of an absolute name: `example.org` for `example.org.`.
pub(crate) fn without_final_dot(host: Host) -> Host {
    match host {
        Host::Domain(mut name) => {
            if name.ends_with('.') {
                name.pop();
            }
            Host::Domain(name)
        }
        address => address,
    }
}

/// Whether requests to an address can be read in transit.
pub(super) fn is_exposed(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| BaseUrl(url).is_exposed())
}

impl From<BaseUrl> for String {
    fn from(url: BaseUrl) -> Self {
        url.as_str().to_owned()
    }
}

impl ParseSetting for BaseUrl {
    const ALLOWED: &'static str = "an address such as https://example.org, without a query or a user name";
    // The text may contain a password, so an invalid one is not repeated.
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        let wrong = |what: &str| Err(Some(what.to_owned()));
        let Ok(url) = Url::parse(text(raw)?) else {
            return wrong("it has no scheme, or its host or port is wrong");
        };
        match url.scheme() {
            "http" | "https" if !url.username().is_empty() || url.password().is_some() => {
                wrong("it has a user name or a password")
            }
            "http" | "https" if url.query().is_some() || url.fragment().is_some() => {
                wrong("it has a query or a fragment")
            }
            "http" | "https" if url.host().is_some() => Ok(Self(url)),
            _ => wrong("its scheme is not http or https"),
        }
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.as_str())
    }
}

/// An address that may contain a password: proxy, mail server or database. `Debug` hides the password.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("SecretUrl({})", self.redacted())]
pub(crate) struct SecretUrl(Url);

impl SecretUrl {
    /// Parses an address with one of these schemes and a host.
    ///
    /// # Errors
    /// The text is not an address, or has another scheme.
    pub(crate) fn read(raw: &RawSettings, schemes: &[&str]) -> Result<Self, Option<String>> {
        let url = Url::parse(text(raw)?).map_err(refused)?;
        let fits = schemes.contains(&url.scheme()) && url.has_host();
        fits.then_some(Self(url)).ok_or(None)
    }

    /// Returns the whole address, with the password.
    pub(crate) fn reveal(&self) -> &str {
        self.0.as_str()
    }

    /// Returns the address without its password, query and fragment.
    ///
    /// A user name without a password is not shown either: it may be the token of a proxy. With an `@` in the path
    /// nothing is shown: a password with an unencoded `/` ends in the path.
    pub(crate) fn redacted(&self) -> String {
        let not_shown = || format!("{}://(not shown)", self.0.scheme());
        if self.0.path().contains('@') {
            return not_shown();
        }
        let mut url = self.0.clone();
        let replaced = match (url.username().is_empty(), url.password().is_some()) {
            (_, true) => url.set_password(Some("…")),
            (false, false) => url.set_username("…"),
            (true, false) => Ok(()),
        };
        if replaced.is_err() {
            return not_shown();
        }
        url.set_query(None);
        url.set_fragment(None);
        url.as_str().replace("%E2%80%A6", "…")
    }
}

/// The address of a proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ProxyUrl(SecretUrl);

impl From<ProxyUrl> for String {
    fn from(url: ProxyUrl) -> Self {
        url.0.reveal().to_owned()
    }
}

impl ParseSetting for ProxyUrl {
    const ALLOWED: &'static str = "one or several proxies such as http://host:3128 or socks5://host:1080";
    const SECRET: bool = true;

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
        SecretUrl::read(raw, &["http", "https", "socks5", "socks5h"]).map(Self)
    }

    fn show(&self) -> String {
        self.0.redacted().show()
    }
}

#[cfg(test)]
mod tests;
