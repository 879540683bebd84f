//! Video ids.

use serde::{Deserialize, Serialize};

use super::{LinkError, Platform, link_finder};

/// Maximum length of an Instagram code, which encodes a 64-bit number with 6 bits per character.
const CODE_LENGTH_MAX: usize = 11;

/// Maximum number of digits of a TikTok id in any program of the platform; today's ids have 19.
const NUMBER_LENGTH_MAX: usize = 21;

/// Video on a platform, with the platform's id in canonical form.
///
/// ```
/// use transcript_core::video::{Platform, VideoId};
///
/// let video = VideoId::new(Platform::YouTube, "dQw4w9WgXcQ")?;
/// assert_eq!(video.address(), "https://www.youtube.com/watch?v=dQw4w9WgXcQ");
/// # Ok::<(), transcript_core::video::LinkError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "VideoIdParts")]
pub struct VideoId {
    platform: Platform,
    id: String,
}

crate::display::display!(VideoId, |this| format_args!("{}/{}", this.platform, this.id));

/// Fields of a [`VideoId`] before validation.
#[derive(Deserialize)]
struct VideoIdParts {
    platform: Platform,
    id: String,
}

impl TryFrom<VideoIdParts> for VideoId {
    type Error = LinkError;

    fn try_from(parts: VideoIdParts) -> Result<Self, LinkError> {
        Self::new(parts.platform, &parts.id)
    }
}

impl VideoId {
    /// Length of a YouTube id, in bytes.
    pub const YOUTUBE_LENGTH: usize = 11;

    /// Creates the id of a video.
    ///
    /// # Errors
    /// The id does not have the platform's form: 11 characters of `A-Z a-z 0-9 - _` for YouTube, 1 to 21 digits for
    /// TikTok, 1 to 11 of YouTube's characters for Instagram, an unsigned 64-bit number for X. Numbers do not begin
    /// with 0, so that each has one spelling.
    pub fn new(platform: Platform, id: &str) -> Result<Self, LinkError> {
        if Self::is_well_formed(platform, id) {
            Ok(Self { platform, id: id.to_owned() })
        } else {
            Err(LinkError::malformed_id(platform, id))
        }
    }

    /// The video with this name, as its `Display` prints it: `video_site/dQw4w9WgXcQ`; `None` for another text.
    pub fn from_name(name: &str) -> Option<Self> {
        let (platform, id) = name.split_once('/')?;
        Self::new(Platform::from_wire(platform)?, id).ok()
    }

    fn is_well_formed(platform: Platform, id: &str) -> bool {
        let code = link_finder::is_id_byte;
        let number = |c: u8| c.is_ascii_digit();
        let bytes = id.as_bytes();
        match platform {
            Platform::YouTube => bytes.len() == Self::YOUTUBE_LENGTH && id.bytes().all(code),
            Platform::Instagram => (1..=CODE_LENGTH_MAX).contains(&bytes.len()) && id.bytes().all(code),
            Platform::TikTok => {
                (1..=NUMBER_LENGTH_MAX).contains(&bytes.len())
                    && id.bytes().all(number)
                    && !id.starts_with('0')
            }
            Platform::X => id.bytes().all(number) && !id.starts_with('0') && id.parse::<u64>().is_ok(),
        }
    }

    /// The platform.
    pub fn platform(&self) -> Platform {
        self.platform
    }

    /// The platform's own id.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Canonical address of the video on its platform.
    pub fn address(&self) -> String {
        let id = &self.id;
        match self.platform {
            Platform::YouTube => format!("https://www.youtube.com/watch?v={id}"),
            Platform::TikTok => format!("https://www.tiktok.com/@_/video/{id}"),
            Platform::Instagram => format!("https://www.instagram.com/reel/{id}/"),
            Platform::X => format!("https://x.com/i/status/{id}"),
        }
    }

    /// Address of one moment of the video, if the platform has such addresses.
    ///
    /// Only YouTube has them. For the others, it is the address of the video.
    pub fn address_at(&self, seconds: u64) -> String {
        match self.platform {
            Platform::YouTube => format!("{}&t={seconds}s", self.address()),
            _ => self.address(),
        }
    }
}
