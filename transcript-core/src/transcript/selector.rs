//! The track that a caller requests.

use serde::{Deserialize, Serialize};

use super::LanguageTag;

/// Track that a caller requests of a video.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TrackSelector {
    /// The default track: English if there is an English one, else the spoken language.
    Default,
    /// A track in a language.
    Language(LanguageTag),
}

crate::display::display!(TrackSelector, |this| this.as_str());

impl TrackSelector {
    /// Permanent name in storage: `default`, or the language tag.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::Language(tag) => tag.as_str(),
        }
    }

    /// The selector with this name in storage.
    pub fn from_name(name: &str) -> Self {
        match name {
            "default" => Self::Default,
            tag => Self::Language(LanguageTag::from_canonical(tag)),
        }
    }
}

impl From<String> for TrackSelector {
    fn from(name: String) -> Self {
        Self::from_name(&name)
    }
}

impl From<TrackSelector> for String {
    fn from(selector: TrackSelector) -> Self {
        selector.as_str().to_owned()
    }
}
