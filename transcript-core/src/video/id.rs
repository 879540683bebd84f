//! The name of one video on one platform.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LinkError, Platform, text};

/// The longest code of a reel: it writes a number of 64 bits with 6 bits a character.
const CODE_LENGTH_MAX: usize = 11;

/// The longest number of a short video that any platform program allows; today's have 19 digits.
const NUMBER_LENGTH_MAX: usize = 21;

/// One video on one platform, with the platform's own identifier in its canonical form.
///
/// ```
/// use transcript_core::video::{Platform, VideoId};
///
/// let video = VideoId::new(Platform::VideoSite, "dQw4w9WgXcQ")?;
/// assert_eq!(video.address(), "https://www.youtube.com/watch?v=dQw4w9WgXcQ");
/// # Ok::<(), transcript_core::video::LinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "Parts")]
pub struct VideoId {
    platform: Platform,
    id: String,
}

/// What a video's name is made of, before it is looked at.
#[derive(Deserialize)]
struct Parts {
    platform: Platform,
    id: String,
}

impl TryFrom<Parts> for VideoId {
    type Error = LinkError;

    fn try_from(parts: Parts) -> Result<Self, LinkError> {
        Self::new(parts.platform, &parts.id)
    }
}

impl VideoId {
    /// The video with this identifier.
    ///
    /// # Errors
    /// The identifier does not have the platform's form: 11 characters of `A-Z a-z 0-9 - _` for the
    /// long-form site, 1 to 21 digits for short videos, 1 to 11 characters of the first kind for reels, an
    /// unsigned number of 64 bits for posts. Numbers do not begin with 0, so that each has one spelling.
    pub fn new(platform: Platform, id: &str) -> Result<Self, LinkError> {
        if Self::is_well_formed(platform, id) {
            Ok(Self { platform, id: id.to_owned() })
        } else {
            Err(LinkError::malformed_id(platform, id))
        }
    }

    fn is_well_formed(platform: Platform, id: &str) -> bool {
        let code = text::is_id_byte;
        let number = |c: u8| c.is_ascii_digit();
        let bytes = id.as_bytes();
        match platform {
            Platform::VideoSite => bytes.len() == 11 && id.bytes().all(code),
            Platform::Reels => (1..=CODE_LENGTH_MAX).contains(&bytes.len()) && id.bytes().all(code),
            Platform::ShortVideo => {
                (1..=NUMBER_LENGTH_MAX).contains(&bytes.len())
                    && id.bytes().all(number)
                    && !id.starts_with('0')
            }
            Platform::Microblog => {
                id.bytes().all(number) && !id.starts_with('0') && id.parse::<u64>().is_ok()
            }
        }
    }

    /// The platform.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// The platform's own identifier.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The video's canonical address on its platform.
    pub fn address(&self) -> String {
        let id = &self.id;
        match self.platform {
            Platform::VideoSite => format!("https://www.youtube.com/watch?v={id}"),
            Platform::ShortVideo => format!("https://www.tiktok.com/@_/video/{id}"),
            Platform::Reels => format!("https://www.instagram.com/reel/{id}/"),
            Platform::Microblog => format!("https://x.com/i/status/{id}"),
        }
    }

    /// The address of one moment of the video, where the platform has such addresses.
    ///
    /// Only the long-form site has them; elsewhere it is the video's own address.
    pub fn address_at(&self, seconds: u64) -> String {
        match self.platform {
            Platform::VideoSite => format!("{}&t={seconds}s", self.address()),
            _ => self.address(),
        }
    }
}

impl fmt::Display for VideoId {
    /// `platform/id`, as in the watch address.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.platform, self.id)
    }
}
