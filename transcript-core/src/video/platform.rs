//! The four platforms.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{error::Error, names::names};

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

crate::display::display!(Platform, |this| this.as_str());

names!(
    /// Links are tried in this order.
    Platform, from_wire {
        YouTube = "video_site",
        TikTok = "short_video",
        Instagram = "reels",
        X = "microblog",
    }
);

impl Platform {
    /// The platform with this name, as people write it or as on the wire.
    pub fn parse(name: &str) -> Option<Self> {
        let named = Self::ALL.into_iter().find(|platform| platform.name().eq_ignore_ascii_case(name));
        named.or_else(|| Self::from_wire(name))
    }

    /// The names that people write, in lower case.
    pub fn input_names() -> [String; 4] {
        Self::ALL.map(|platform| platform.name().to_ascii_lowercase())
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
}

/// As [`Platform::parse`].
impl FromStr for Platform {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::parse(name)
            .ok_or_else(|| Error::invalid("this is no platform: enter YouTube, TikTok, Instagram or X"))
    }
}
