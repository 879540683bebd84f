//! Short links, whose video only the platform knows.

use serde::Serialize;

use super::{LinkError, Platform, link_finder};

/// Maximum length of a short link's code; codes in use have at most 16 characters.
const CODE_LENGTH_MAX: usize = 32;

/// Forms of short links, with their mark in a link's name and the canonical address around the code.
///
/// Fields: platform, mark, text before the code, text after the code.
const FORMS: [(Platform, &str, &str, &str); 8] = [
    (Platform::TikTok, "vm", "https://vm.tiktok.com/", "/"),
    (Platform::TikTok, "vt", "https://vt.tiktok.com/", "/"),
    (Platform::TikTok, "t", "https://www.tiktok.com/t/", "/"),
    (Platform::Instagram, "share", "https://www.instagram.com/share/", "/"),
    (Platform::Instagram, "share-p", "https://www.instagram.com/share/p/", "/"),
    (Platform::Instagram, "share-reel", "https://www.instagram.com/share/reel/", "/"),
    (Platform::Instagram, "share-tv", "https://www.instagram.com/share/tv/", "/"),
    (Platform::X, "t.co", "https://t.co/", ""),
];

/// Short link of a platform, in canonical form. Its redirects must be followed to find the video.
///
/// Spellings with the same target (`http`, `www.`, parameters, a closing slash) are the same short link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ShortLink {
    platform: Platform,
    address: String,
    code: String,
}

impl ShortLink {
    /// Creates a short link from its canonical `https` address and its code.
    pub(crate) fn new(platform: Platform, address: String, code: String) -> Self {
        Self { platform, address, code }
    }

    /// Parses the code at the start of `segment`; the canonical address is `prefix`, code, `suffix`.
    pub(super) fn read(
        platform: Platform,
        prefix: &str,
        segment: &str,
        suffix: &str,
    ) -> Result<Self, LinkError> {
        let length = link_finder::id_length(segment);
        match segment.get(..length) {
            Some(code) if (1..=CODE_LENGTH_MAX).contains(&length) && !is_page(prefix, code) => {
                Ok(Self::new(platform, format!("{prefix}{code}{suffix}"), code.to_owned()))
            }
            _ => Err(LinkError::malformed_code(platform)),
        }
    }

    /// The short link with this [`ShortLink::name`].
    ///
    /// ```
    /// use transcript_core::video::{Platform, ShortLink};
    ///
    /// let link = ShortLink::from_name(Platform::Instagram, "share:BAaB3xYz01").unwrap();
    /// assert_eq!(link.address(), "https://www.instagram.com/share/BAaB3xYz01/");
    /// // The id of a video is not the name of a short link.
    /// assert_eq!(ShortLink::from_name(Platform::Instagram, "DaB3xYz01"), None);
    /// ```
    pub fn from_name(platform: Platform, name: &str) -> Option<Self> {
        let (mark, code) = name.split_once(':')?;
        let (.., prefix, suffix) =
            FORMS.iter().find(|(of, form, ..)| (*of, *form) == (platform, mark)).copied()?;
        Self::read(platform, prefix, code, suffix).ok().filter(|link| link.code == code)
    }

    /// Name that no other short link and no video of the platform has, such as `share:BAaB3xYz01`.
    ///
    /// The code alone may look like the id of a video.
    pub fn name(&self) -> String {
        let is_form = |(platform, _, prefix, suffix): &&(Platform, &str, &str, &str)| {
            *platform == self.platform && self.address == format!("{prefix}{}{suffix}", self.code)
        };
        // The table has every form that links are read in; no id of a video has a colon.
        let mark = FORMS.iter().find(is_form).map_or("", |(_, mark, ..)| mark);
        format!("{mark}:{}", self.code)
    }

    /// The platform of the link.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Canonical address, under which the video of the link is stored.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Code that distinguishes the link, shown as `videoId` until the video is known.
    pub fn code(&self) -> &str {
        &self.code
    }
}

/// Whether a word at the place of a code is the name of a page: `share/reel` is followed by a code.
fn is_page(prefix: &str, code: &str) -> bool {
    prefix == "https://www.instagram.com/share/" && matches!(code, "p" | "reel" | "reels" | "tv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_link_invalid_names_are_rejected() {
        for (platform, name) in [
            (Platform::TikTok, "share:ZMabc"),
            (Platform::Instagram, "vm:ZMabc"),
            (Platform::YouTube, "vm:ZMabc"),
            (Platform::X, "t.co:a/b"),
            (Platform::X, "t.co:"),
            (Platform::X, "t.co:a?b"),
            (Platform::X, ":a"),
            (Platform::X, "//evil.example:a"),
            (Platform::Instagram, "BAaB3xYz01"),
            (Platform::Instagram, "share:reel"),
        ] {
            assert_eq!(ShortLink::from_name(platform, name), None, "{name}");
        }
        assert_eq!(ShortLink::from_name(Platform::Instagram, &format!("share:{}", "x".repeat(33))), None);
    }
}
