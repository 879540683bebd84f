//! The tracks that a video has.

use serde::{Deserialize, Serialize};

use super::LanguageTag;
use crate::archive::Wish;

/// How the words of a track came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// Written by a person.
    Human,
    /// Recognised from speech by a machine.
    Generated,
    /// Translated from another track by a machine.
    Translated,
}

impl TrackKind {
    /// The kind's name, for storage and for people.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Generated => "generated",
            Self::Translated => "translated",
        }
    }

    /// The kind with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Human, Self::Generated, Self::Translated].into_iter().find(|kind| kind.as_str() == name)
    }
}

/// One track of captions: its language, how it came to be, and whether the video's speech is in it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrackInfo {
    /// The language.
    pub language: LanguageTag,
    /// How the words came to be.
    pub kind: TrackKind,
    /// The track's own name, where it has one beside its language ("Director's commentary").
    pub name: Option<String>,
    /// Whether this is the language that is spoken in the video, as far as the supplier knows.
    pub original: bool,
}

impl TrackInfo {
    /// A track without a name of its own, not known to be in the spoken language.
    pub fn new(language: LanguageTag, kind: TrackKind) -> Self {
        Self { language, kind, name: None, original: false }
    }

    /// Whether its words come from a machine (`is_generated`, specification 2.5).
    pub fn is_generated(&self) -> bool {
        self.kind != TrackKind::Human
    }

    /// Whether both are the same track of a video: of the same language, kind and name. What is known of
    /// the spoken language may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.language, self.kind, &self.name) == (&other.language, other.kind, &other.name)
    }

    /// How well the track answers a wish among the tracks that match it: smaller is better.
    ///
    /// None when it does not answer the wish at all. See [`best_track`].
    fn rank(&self, wish: &Wish) -> Option<(u8, u8, u8)> {
        let kind = self.kind as u8;
        match wish {
            Wish::Language(wanted) => {
                let exact = *wanted == self.language;
                let matches =
                    if self.kind == TrackKind::Translated { exact } else { wanted.matches(&self.language) };
                matches.then_some((kind, u8::from(!exact), u8::from(self.name.is_some())))
            }
            // English first, then the spoken language, then any other; never a machine translation.
            Wish::Default if self.kind == TrackKind::Translated => None,
            Wish::Default => {
                let place = match (self.language.is_english(), self.original) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => 2,
                };
                Some((place, kind, u8::from(self.name.is_some())))
            }
        }
    }
}

/// The place in `tracks` of the one that answers `wish` best, or none when none does.
///
/// The default is English where there is English, else the spoken language, else the first track; a
/// wished language matches by primary language and likely script. Among the matches a human-made track
/// comes before a generated one, then the exact tag, then a track without a name of its own, then the
/// earlier one. Machine translations answer only a wish for their exact tag.
pub fn best_track<'a>(tracks: impl IntoIterator<Item = &'a TrackInfo>, wish: &Wish) -> Option<usize> {
    tracks
        .into_iter()
        .enumerate()
        .filter_map(|(place, track)| track.rank(wish).map(|rank| (rank, place)))
        .min()
        .map(|(_, place)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(language: &str, kind: TrackKind) -> TrackInfo {
        TrackInfo::new(LanguageTag::parse(language).unwrap(), kind)
    }

    fn language(tag: &str) -> Wish {
        Wish::Language(LanguageTag::parse(tag).unwrap())
    }

    use TrackKind::{Generated, Human, Translated};

    #[test]
    fn the_default_is_english_then_the_spoken_language() {
        let french = TrackInfo { original: true, ..track("fr", Generated) };
        let tracks = [track("de", Human), french.clone(), track("en", Generated), track("en-GB", Human)];
        assert_eq!(best_track(&tracks, &Wish::Default), Some(3));
        assert_eq!(best_track(&tracks[..3], &Wish::Default), Some(2));
        assert_eq!(best_track(&tracks[..2], &Wish::Default), Some(1));
        assert_eq!(best_track(&tracks[..1], &Wish::Default), Some(0));
        assert_eq!(best_track(&[track("en", Translated), french], &Wish::Default), Some(1));
        assert_eq!(best_track(&[], &Wish::Default), None);
    }

    #[test]
    fn a_wished_language_matches_by_language_and_script() {
        let tracks = [track("zh-Hans", Generated), track("zh-TW", Human), track("en", Translated)];
        assert_eq!(best_track(&tracks, &language("zh-CN")), Some(0));
        assert_eq!(best_track(&tracks, &language("zh-Hant")), Some(1));
        assert_eq!(best_track(&tracks, &language("en")), Some(2));
        assert_eq!(best_track(&tracks, &language("en-US")), None);
        assert_eq!(best_track(&tracks, &language("fr")), None);
    }

    #[test]
    fn human_made_comes_before_exact() {
        let tracks = [track("en", Generated), track("en-GB", Human), track("en-US", Human)];
        assert_eq!(best_track(&tracks, &language("en")), Some(1));
        assert_eq!(best_track(&tracks, &language("en-US")), Some(2));
    }
}
