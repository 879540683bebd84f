//! The four platforms.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A platform that videos come from, under the name that the wire uses (specification 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// `video_site`: YouTube.
    VideoSite,
    /// `short_video`: TikTok.
    ShortVideo,
    /// `reels`: Instagram.
    Reels,
    /// `microblog`: X, once Twitter.
    Microblog,
}

impl Platform {
    /// All of them, in the order in which links are tried.
    pub const ALL: [Self; 4] = [Self::VideoSite, Self::ShortVideo, Self::Reels, Self::Microblog];

    /// The name on the wire, in settings and in watch addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::VideoSite => "video_site",
            Self::ShortVideo => "short_video",
            Self::Reels => "reels",
            Self::Microblog => "microblog",
        }
    }

    /// The name that people know it by.
    pub fn name(self) -> &'static str {
        match self {
            Self::VideoSite => "YouTube",
            Self::ShortVideo => "TikTok",
            Self::Reels => "Instagram",
            Self::Microblog => "X",
        }
    }

    /// The platform with this wire name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|platform| platform.as_str() == name)
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
