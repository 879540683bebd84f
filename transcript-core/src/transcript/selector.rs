//! The track that a caller requests.

use serde::{Deserialize, Serialize};

use super::{LanguageTag, TrackKind};

/// Track that a caller requests of a video.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum TrackSelector {
    /// The default track: English if there is an English one, else the spoken language.
    Default,
    /// A track in a language; never a machine translation.
    Language(LanguageTag),
    /// A track in a language; a machine translation into it if there is no other.
    Translation(Translation),
}

/// The language of [`TrackSelector::Translation`].
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Translation {
    language: LanguageTag,
    /// Its name in storage.
    name: String,
}

/// Begins the name of a [`Translation`] in storage. No language tag has a colon.
const TRANSLATION: &str = "translation:";

crate::display::display!(TrackSelector, |this| this.as_str());

impl TrackSelector {
    /// A track in a language; with `translated`, a machine translation into it if there is no other.
    pub fn in_language(language: LanguageTag, translated: bool) -> Self {
        match translated {
            true => {
                let name = format!("{TRANSLATION}{language}");
                Self::Translation(Translation { language, name })
            }
            false => Self::Language(language),
        }
    }

    /// The language; `None` for the default track.
    pub fn language(&self) -> Option<&LanguageTag> {
        match self {
            Self::Default => None,
            Self::Language(language) | Self::Translation(Translation { language, .. }) => Some(language),
        }
    }

    /// Whether this track answers the selector, apart from its language: only [`TrackSelector::Translation`] takes a
    /// machine translation.
    pub fn takes(&self, kind: TrackKind) -> bool {
        kind != TrackKind::Translated || matches!(self, Self::Translation(_))
    }

    /// Permanent name in storage: `default`, the language tag, or `translation:` and the tag.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Default => "default",
            Self::Language(tag) => tag.as_str(),
            Self::Translation(translation) => &translation.name,
        }
    }

    /// The selector with this name in storage.
    pub fn from_name(name: &str) -> Self {
        match name {
            "default" => Self::Default,
            name => match name.strip_prefix(TRANSLATION) {
                Some(tag) => Self::in_language(LanguageTag::from_canonical(tag), true),
                None => Self::Language(LanguageTag::from_canonical(name)),
            },
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
