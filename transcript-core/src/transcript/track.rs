//! Tracks of a video, and the choice among them.

use serde::{Deserialize, Serialize};

use super::{LanguageTag, TrackSelector};

use crate::names::names;

/// Origin of a track's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrackKind {
    /// Written by a person.
    Human,
    /// Recognized from speech by a machine.
    Generated,
    /// Translated from another track by a machine.
    Translated,
}

impl TrackKind {
    /// Name in the responses of both APIs and in files for people.
    pub fn wire_name(self) -> &'static str {
        match self {
            Self::Human => "manual",
            Self::Generated => "auto",
            Self::Translated => "translated",
        }
    }

    /// The kind with this [`Self::wire_name`].
    pub(crate) fn from_wire_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.wire_name() == name)
    }
}

names!(TrackKind, from_name {
    Human = "human",
    Generated = "generated",
    Translated = "translated",
});

/// One track of captions: its language, its origin, and whether it is in the spoken language.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct TrackInfo {
    /// The language.
    pub language: LanguageTag,
    /// The origin of the text.
    pub kind: TrackKind,
    /// Name of the track besides its language, if it has one ("Director's commentary").
    pub name: Option<String>,
    /// Whether this is the language spoken in the video, as far as the supplier knows.
    pub original: bool,
}

impl TrackInfo {
    /// A track without a name, not known to be in the spoken language.
    pub fn new(language: LanguageTag, kind: TrackKind) -> Self {
        Self { language, kind, name: None, original: false }
    }

    /// The track in place of an archived one that cannot be read.
    pub fn unreadable() -> Self {
        Self::new(LanguageTag::unknown(), TrackKind::Translated)
    }

    /// Whether this is only in place of a track that cannot be read.
    pub fn is_unreadable(&self) -> bool {
        self.is_same(&Self::unreadable())
    }

    /// Whether a machine produced the text (`is_generated`, specification 2.5).
    pub fn is_generated(&self) -> bool {
        self.kind != TrackKind::Human
    }

    /// The selector that only this language's track answers: a translation is selected only as one.
    pub fn selector(&self) -> TrackSelector {
        TrackSelector::in_language(self.language.clone(), self.kind == TrackKind::Translated)
    }

    /// Whether both are the same track of a video: same language, kind and name. `original` may differ.
    pub fn is_same(&self, other: &Self) -> bool {
        (&self.language, self.kind, &self.name) == (&other.language, other.kind, &other.name)
    }

    /// Rank of the track among the tracks that match a selector: smaller is better.
    ///
    /// `None` if the track does not match. See [`best_track`].
    fn rank(&self, selector: &TrackSelector) -> Option<(u8, u8, u8)> {
        if !selector.takes(self.kind) {
            return None;
        }
        let kind = self.kind as u8;
        match selector.language() {
            Some(requested) => {
                let exact = *requested == self.language;
                let matches = if self.kind == TrackKind::Translated {
                    exact
                } else {
                    requested.matches(&self.language)
                };
                matches.then_some((kind, u8::from(!exact), u8::from(self.name.is_some())))
            }
            // English first, then the spoken language, then any other.
            None => {
                let language_rank = match (self.language.is_english(), self.original) {
                    (true, _) => 0,
                    (false, true) => 1,
                    (false, false) => 2,
                };
                Some((language_rank, kind, u8::from(self.name.is_some())))
            }
        }
    }
}

/// Returns the index in `tracks` of the best match for `selector`; `None` if there is no match.
///
/// The default is English if there is an English track, else the spoken language, else the first track. A
/// requested language matches by primary language and likely script. Among the matches a human-made track comes
/// before a generated one, then the exact tag, then a track without a name, then the earlier one. Machine
/// translations match only [`TrackSelector::Translation`] with their exact tag.
pub fn best_track<'a>(
    tracks: impl IntoIterator<Item = &'a TrackInfo>,
    selector: &TrackSelector,
) -> Option<usize> {
    tracks
        .into_iter()
        .enumerate()
        .filter_map(|(index, track)| track.rank(selector).map(|rank| (rank, index)))
        .min()
        .map(|(_, index)| index)
}

/// The languages of tracks, each once, in their order.
pub fn distinct_languages<'a>(tracks: impl IntoIterator<Item = &'a TrackInfo>) -> Vec<LanguageTag> {
    let mut languages: Vec<LanguageTag> = Vec::new();
    for TrackInfo { language, .. } in tracks {
        if !languages.contains(language) {
            languages.push(language.clone());
        }
    }
    languages
}

/// The most languages that a message lists.
const LISTED_MAX: usize = 20;

/// The languages of tracks for a message: the first 20, each once, with a mark at machine translations.
pub fn list_languages<'a>(tracks: impl IntoIterator<Item = &'a TrackInfo>) -> String {
    let mut names: Vec<String> = Vec::new();
    for TrackInfo { language, kind, .. } in tracks {
        let mark = if *kind == TrackKind::Translated { " (machine translation)" } else { "" };
        let name = format!("{language}{mark}");
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let more = if names.len() > LISTED_MAX { ", …" } else { "" };
    names.truncate(LISTED_MAX);
    format!("{}{more}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn track(language: &str, kind: TrackKind) -> TrackInfo {
        TrackInfo::new(LanguageTag::parse(language).unwrap(), kind)
    }

    fn language(tag: &str) -> TrackSelector {
        TrackSelector::Language(LanguageTag::parse(tag).unwrap())
    }

    use TrackKind::{Generated, Human, Translated};

    #[test]
    fn best_track_default_prefers_english_then_spoken() {
        let french = TrackInfo { original: true, ..track("fr", Generated) };
        let tracks = [track("de", Human), french.clone(), track("en", Generated), track("en-GB", Human)];
        assert_eq!(best_track(&tracks, &TrackSelector::Default), Some(3));
        assert_eq!(best_track(&tracks[..3], &TrackSelector::Default), Some(2));
        assert_eq!(best_track(&tracks[..2], &TrackSelector::Default), Some(1));
        assert_eq!(best_track(&tracks[..1], &TrackSelector::Default), Some(0));
        assert_eq!(best_track(&[track("en", Translated), french], &TrackSelector::Default), Some(1));
        assert_eq!(best_track(&[], &TrackSelector::Default), None);
    }

    #[test]
    fn best_track_language_matches_by_script() {
        let tracks = [track("zh-Hans", Generated), track("zh-TW", Human), track("en", Translated)];
        assert_eq!(best_track(&tracks, &language("zh-CN")), Some(0));
        assert_eq!(best_track(&tracks, &language("zh-Hant")), Some(1));
        assert_eq!(best_track(&tracks, &language("en")), None);
        let translation = |tag| TrackSelector::in_language(LanguageTag::parse(tag).unwrap(), true);
        assert_eq!(best_track(&tracks, &translation("en")), Some(2));
        assert_eq!(best_track(&tracks, &translation("en-US")), None);
        assert_eq!(best_track(&tracks, &translation("zh-Hant")), Some(1));
        assert_eq!(best_track(&tracks, &language("fr")), None);
    }

    #[test]
    fn languages_of_message_are_marked_and_at_most_20() {
        let tracks = [track("en", Human), track("en", Generated), track("de", Translated)];
        assert_eq!(list_languages(&tracks), "en, de (machine translation)");
        let many: Vec<_> = ('a'..='u').map(|letter| track(&format!("qa{letter}"), Human)).collect();
        assert!(list_languages(&many[..20]).ends_with(", qat"));
        assert!(list_languages(&many).ends_with(", qat, …"));
        assert_eq!(list_languages(&[]), "");
    }

    #[test]
    fn best_track_prefers_human_over_exact_tag() {
        let tracks = [track("en", Generated), track("en-GB", Human), track("en-US", Human)];
        assert_eq!(best_track(&tracks, &language("en")), Some(1));
        assert_eq!(best_track(&tracks, &language("en-US")), Some(2));
    }
}
