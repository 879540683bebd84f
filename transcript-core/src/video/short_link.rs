//! Short links: only their platform knows which video they mean.

use serde::Serialize;

use super::{LinkError, Platform, text};

/// The longest code of a short link: those in use have at most 16 characters.
const CODE_LENGTH_MAX: usize = 32;

/// The forms of short links: the mark of the form in a link's name, what stands before the code in the
/// canonical address, and what behind it.
const FORMS: [(Platform, &str, &str, &str); 8] = [
    (Platform::ShortVideo, "vm", "https://vm.tiktok.com/", "/"),
    (Platform::ShortVideo, "vt", "https://vt.tiktok.com/", "/"),
    (Platform::ShortVideo, "t", "https://www.tiktok.com/t/", "/"),
    (Platform::Reels, "share", "https://www.instagram.com/share/", "/"),
    (Platform::Reels, "share-p", "https://www.instagram.com/share/p/", "/"),
    (Platform::Reels, "share-reel", "https://www.instagram.com/share/reel/", "/"),
    (Platform::Reels, "share-tv", "https://www.instagram.com/share/tv/", "/"),
    (Platform::Microblog, "t.co", "https://t.co/", ""),
];

/// A platform's short link, in canonical form: it must be followed to learn the video.
///
/// Spellings that lead to the same place (`http`, `www.`, parameters, a closing slash) give the same short link.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct ShortLink {
    platform: Platform,
    address: String,
    code: String,
}

impl ShortLink {
    /// A short link with this canonical `https` address and its distinguishing code.
    pub(crate) fn new(platform: Platform, address: String, code: String) -> Self {
        Self { platform, address, code }
    }

    /// The short link whose canonical address is `prefix`, the code at the start of `segment`, and `suffix`.
    pub(super) fn read(
        platform: Platform,
        prefix: &str,
        segment: &str,
        suffix: &str,
    ) -> Result<Self, LinkError> {
        let length = segment.bytes().take_while(|&c| text::is_id_byte(c)).count();
        match segment.get(..length) {
            Some(code) if (1..=CODE_LENGTH_MAX).contains(&length) => {
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
    /// let link = ShortLink::from_name(Platform::Reels, "share:BAaB3xYz01").unwrap();
    /// assert_eq!(link.address(), "https://www.instagram.com/share/BAaB3xYz01/");
    /// // The id of a video is no name of a short link.
    /// assert_eq!(ShortLink::from_name(Platform::Reels, "DaB3xYz01"), None);
    /// ```
    pub fn from_name(platform: Platform, name: &str) -> Option<Self> {
        let (mark, code) = name.split_once(':')?;
        let (.., prefix, suffix) =
            FORMS.iter().find(|(of, form, ..)| (*of, *form) == (platform, mark)).copied()?;
        Self::read(platform, prefix, code, suffix).ok().filter(|link| link.code == code)
    }

    /// A name that no other short link and no video of the platform has, as `share:BAaB3xYz01`: the code alone
    /// may look like a video's id.
    pub fn name(&self) -> String {
        let is_form = |(platform, _, prefix, suffix): &&(Platform, &str, &str, &str)| {
            *platform == self.platform && self.address == format!("{prefix}{}{suffix}", self.code)
        };
        // Every form that links are read in is in the table; no video has an id with a colon.
        let mark = FORMS.iter().find(is_form).map_or("", |(_, mark, ..)| mark);
        format!("{mark}:{}", self.code)
    }

    /// The platform that it belongs to.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// Its canonical address, by which it is remembered.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The part that distinguishes it, shown as `videoId` while the video is not known.
    pub fn code(&self) -> &str {
        &self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_means_another_address() {
        for (platform, name) in [
            (Platform::ShortVideo, "share:ZMabc"),
            (Platform::Reels, "vm:ZMabc"),
            (Platform::VideoSite, "vm:ZMabc"),
            (Platform::Microblog, "t.co:a/b"),
            (Platform::Microblog, "t.co:"),
            (Platform::Microblog, "t.co:a?b"),
            (Platform::Microblog, ":a"),
            (Platform::Microblog, "//evil.example:a"),
            (Platform::Reels, "BAaB3xYz01"),
        ] {
            assert_eq!(ShortLink::from_name(platform, name), None, "{name}");
        }
        assert_eq!(ShortLink::from_name(Platform::Reels, &format!("share:{}", "x".repeat(33))), None);
    }
}
