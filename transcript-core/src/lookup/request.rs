//! Requests of the lookup API.

use std::net::IpAddr;

use super::EntitlementProof;
use crate::{
    archive::TrackSelector,
    error::{Error, Result},
    names::names,
    transcript::LanguageTag,
    video::{Platform, VideoId, VideoLink},
};

/// The video of a request: exactly one of two parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VideoReference {
    /// `url`: a link to a video of any platform.
    Url(String),
    /// `v`: the 11-character YouTube video ID.
    Id(String),
}

impl VideoReference {
    /// The name of its parameter.
    pub fn parameter(&self) -> &'static str {
        match self {
            Self::Url(_) => "url",
            Self::Id(_) => "v",
        }
    }

    /// The video or short link that it names.
    ///
    /// # Errors
    /// [`ReferenceError`] if it names none.
    pub(super) fn link(&self) -> Result<VideoLink, ReferenceError> {
        let link = match self {
            Self::Id(id) => VideoId::new(Platform::YouTube, id).map(VideoLink::Video),
            Self::Url(url) => VideoLink::parse(url),
        };
        link.map_err(|error| ReferenceError { parameter: self.parameter(), message: error.to_string() })
    }
}

/// The attribution tag that is copied into the watch URL (specification 4.1, `src`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AttributionTag {
    /// `custom_assistant`
    CustomAssistant,
    /// `assistant_plugin`
    AssistantPlugin,
    /// `mcp_other`
    McpOther,
}

names!(AttributionTag, from_wire {
    CustomAssistant = "custom_assistant",
    AssistantPlugin = "assistant_plugin",
    McpOther = "mcp_other",
});

impl AttributionTag {
    /// The tag with this name.
    ///
    /// # Errors
    /// [`crate::ErrorKind::Invalid`] if there is none.
    pub fn parse(name: &str) -> Result<Self> {
        Self::from_wire(name).ok_or_else(|| Error::invalid(format!("unknown attribution tag {name:?}")))
    }
}

/// A lookup request.
#[derive(Clone, PartialEq, Eq)]
pub struct LookupRequest {
    /// The video.
    pub reference: VideoReference,
    /// The language; `None`: English if there is English, else the spoken language.
    pub language: Option<LanguageTag>,
    /// Whether a machine translation into the language is returned if the video has no other transcript in it.
    pub translated: bool,
    /// The attribution tag.
    pub src: Option<AttributionTag>,
    /// The bearer credential, if one was sent.
    pub key: Option<String>,
    /// A proof of a paid plan, if one was sent: it renews a plus key of its subject.
    pub proof: Option<EntitlementProof>,
    /// The client's network address, if known.
    pub client: Option<IpAddr>,
    /// Whether no archived track in another language is returned instead of the default one.
    ///
    /// For servers that store the result as the default.
    pub default_only: bool,
}

impl LookupRequest {
    /// A request for the default transcript of this video, without a key.
    pub fn new(reference: VideoReference) -> Self {
        Self {
            reference,
            language: None,
            translated: false,
            src: None,
            key: None,
            proof: None,
            client: None,
            default_only: false,
        }
    }

    /// Whether an archived track in another language is better than none. A request that names a language wants no
    /// other.
    pub(super) fn accepts_other_languages(&self) -> bool {
        !self.default_only && self.language.is_none()
    }

    /// The track that the request selects.
    pub(super) fn selector(&self) -> TrackSelector {
        match &self.language {
            None => TrackSelector::Default,
            Some(language) => TrackSelector::in_language(language.clone(), self.translated),
        }
    }
}

crate::debug_fields!(LookupRequest |this| { reference, key: this.key.as_ref().map(|_| "…") });

/// A reference that names no video: the only lookup error, a 400.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReferenceError {
    /// The parameter that is wrong.
    pub parameter: &'static str,
    /// What is wrong, and what to send instead.
    pub message: String,
}

crate::display::display!(ReferenceError, |this| format_args!("{}: {}", this.parameter, this.message));

impl std::error::Error for ReferenceError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attribution_tag_with_unknown_name_is_invalid() {
        for tag in AttributionTag::ALL {
            assert_eq!(AttributionTag::parse(tag.as_str()).unwrap(), tag);
        }
        let error = AttributionTag::parse("other").unwrap_err();
        assert_eq!(error.kind(), crate::ErrorKind::Invalid);
        assert_eq!(error.message(), "unknown attribution tag \"other\"");
    }
}
