//! What TikTok, Instagram and X have in common: an errand with cookies of its own, the tracks of a video, and
//! the ways of saying no.

mod errand;
pub(crate) mod json;
mod media;
mod refusal;
mod title;
mod tracks;

pub(crate) use errand::{Errand, stops};
pub use media::{Media, MediaAddress, MediaSource};
pub(crate) use refusal::Refusal;
pub(crate) use title::title;
pub(crate) use tracks::{Details, Track, Tracks, Words, read, supplied};

use http::{HeaderMap, HeaderName, HeaderValue};

/// The headers of these names and values; a value that cannot be one is left out.
pub(crate) fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
    let pair = |(name, value): &(&'static str, &str)| {
        Some((HeaderName::from_static(name), HeaderValue::from_str(value).ok()?))
    };
    pairs.iter().filter_map(pair).collect()
}

/// A desktop browser's name for itself. The platforms answer nothing of use to any other.
pub(crate) const BROWSER: &str = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) \
                                  Chrome/142.0.0.0 Safari/537.36";
/// What such a browser says of itself beside its name.
pub(crate) const BROWSER_BRANDS: &str =
    "\"Chromium\";v=\"142\", \"Google Chrome\";v=\"142\", \"Not_A Brand\";v=\"99\"";
