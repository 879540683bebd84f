//! The four platforms.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Platform of videos, with its name on the wire (specification 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Platform {
    /// YouTube, `video_site`.
    #[serde(rename = "video_site")]
    YouTube,
    /// TikTok, `short_video`.
    #[serde(rename = "short_video")]
    TikTok,
    /// Instagram, `reels`.
    #[serde(rename = "reels")]
    Instagram,
    /// X, formerly Twitter, `microblog`.
    #[serde(rename = "microblog")]
    X,
}

impl Platform {
    /// All platforms, in the order in which links are tried.
    pub const ALL: [Self; 4] = [Self::YouTube, Self::TikTok, Self::Instagram, Self::X];

    /// Name on the wire, in settings and in watch addresses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::YouTube => "video_site",
            Self::TikTok => "short_video",
            Self::Instagram => "reels",
            Self::X => "microblog",
        }
    }

    /// Name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::YouTube => "YouTube",
            Self::TikTok => "TikTok",
            Self::Instagram => "Instagram",
            Self::X => "X",
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
