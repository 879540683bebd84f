//! From a text to the video that it names.

use super::{LinkError, LinkProblem, Platform, VideoId};

/// What a link leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VideoLink {
    /// A video.
    Video(VideoId),
    /// A short link: which video it means, only its platform knows.
    Short(ShortLink),
}

/// A platform's short link, in canonical form: it must be followed to learn the video.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
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

impl VideoLink {
    /// The longest text that is looked at, in bytes.
    pub const LENGTH_MAX: usize = 4_096;

    /// The video or short link that a text names.
    ///
    /// # Errors
    /// The text names none; the error says what was wrong.
    pub fn parse(text: &str) -> Result<Self, LinkError> {
        let text = text.trim();
        VideoId::new(Platform::VideoSite, text)
            .map(Self::Video)
            .map_err(|_| LinkError::new(LinkProblem::NotALink, "this is not a link to a video"))
    }
}
