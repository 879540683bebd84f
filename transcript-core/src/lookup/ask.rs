//! What Surface A is asked.

use std::{fmt, net::IpAddr};

use super::Proof;
use crate::video::{Platform, VideoId, VideoLink};

/// How a caller names the video: exactly one of the two parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reference {
    /// `url`: a link to a video of any platform.
    Url(String),
    /// `v`: the 11-character id on the long-form site.
    Id(String),
}

impl Reference {
    /// The name of the parameter that it came in.
    pub fn parameter(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Id(_) => "v",
        }
    }

    /// The video or short link that it names.
    ///
    /// # Errors
    /// [`BadReference`] when it names none.
    pub(super) fn link(&self) -> Result<VideoLink, BadReference> {
        let link = match self {
            Self::Id(id) => VideoId::new(Platform::VideoSite, id).map(VideoLink::Video),
            Self::Url(url) => VideoLink::parse(url),
        };
        link.map_err(|error| BadReference { parameter: self.parameter(), message: error.to_string() })
    }
}

/// The attribution tag that is echoed into the watch address (specification 4, `src`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceTag {
    /// `custom_assistant`
    CustomAssistant,
    /// `assistant_plugin`
    AssistantPlugin,
    /// `mcp_other`
    McpOther,
}

impl SourceTag {
    /// All of them, in the specification's order.
    pub const ALL: [Self; 3] = [Self::CustomAssistant, Self::AssistantPlugin, Self::McpOther];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CustomAssistant => "custom_assistant",
            Self::AssistantPlugin => "assistant_plugin",
            Self::McpOther => "mcp_other",
        }
    }

    /// The tag with this wire name.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tag| tag.as_str() == name)
    }
}

/// A look-up.
#[derive(Clone, PartialEq, Eq)]
pub struct LookupAsk {
    /// The video.
    pub reference: Reference,
    /// The attribution tag.
    pub src: Option<SourceTag>,
    /// The text of the bearer credential, where one came.
    pub key: Option<String>,
    /// A proof of a paid plan, where one came: it renews a plus key of its subject.
    pub proof: Option<Proof>,
    /// The caller's network address, where it is known.
    pub client: Option<IpAddr>,
    /// Whether nothing but the default transcript will do, also where another one is archived: so for a server that
    /// keeps what it gets as the default.
    pub default_only: bool,
}

impl fmt::Debug for LookupAsk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = self.key.as_ref().map(|_| "…");
        f.debug_struct("LookupAsk")
            .field("reference", &self.reference)
            .field("key", &key)
            .finish_non_exhaustive()
    }
}

/// A reference that names no video: the look-up's only outright refusal, a 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BadReference {
    /// The parameter that was wrong.
    pub parameter: &'static str,
    /// What was wrong, and what to give instead.
    pub message: String,
}

impl fmt::Display for BadReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.parameter, self.message)
    }
}

impl std::error::Error for BadReference {}
