//! The caption tracks of a video in its player data, and the choice for a track selector. No I/O.

use serde_json::{Map, Value};
use transcript_core::{
    archive::TrackSelector,
    transcript::{LanguageTag, TrackInfo, TrackKind, best_track},
    video::VideoId,
};
use url::{Url, form_urlencoded};

use super::{clients::ClientIdentity, failure::YouTubeFailure, id_spelling::is_same, player::text};
use crate::json::{field, items};

/// Maximum number of tracks and translations read. About 40 and 160 are usual.
const TRACKS_MAX: usize = 500;
const TRANSLATIONS_MAX: usize = 1_000;
/// Maximum length of a URL in bytes, and of a track name in characters.
const ADDRESS_MAX: usize = 8_192;
const NAME_MAX: usize = 200;

/// The end of the id of an audio track in the spoken language: `en-US.4`. Those of dubbed tracks end in other numbers.
pub(super) const ORIGINAL_AUDIO: &str = ".4";
/// The end of the id of an audio track that a machine dubbed.
const MACHINE_DUB: &str = ".10";

/// A caption format of YouTube.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TrackFormat {
    /// JSON with milliseconds: the least ambiguous format.
    Json3,
    /// XML with milliseconds.
    Srv3,
    /// XML with seconds: the default without a format parameter.
    Classic,
}

impl TrackFormat {
    /// All formats, in order of preference.
    pub(super) const ALL: [Self; 3] = [Self::Json3, Self::Srv3, Self::Classic];

    fn name(self) -> Option<&'static str> {
        match self {
            Self::Json3 => Some("json3"),
            Self::Srv3 => Some("srv3"),
            Self::Classic => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YouTubeTrack {
    pub(super) info: TrackInfo,
    /// The language as YouTube writes it.
    code: String,
    /// URL of the captions. It is signed, and valid for some hours.
    pub(super) address: String,
    translatable: bool,
    /// Whether the URL needs a proof-of-origin token.
    ///
    /// Verbatim has none, so the response would be empty.
    pub(super) gated: bool,
}

/// A language that YouTube translates tracks into.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TranslationLanguage {
    language: LanguageTag,
    code: String,
}

/// All tracks of a video, as one client received them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct YouTubeTrackList {
    tracks: Vec<YouTubeTrack>,
    translations: Vec<TranslationLanguage>,
    /// Whether an entry was malformed: it may be the track in the spoken language.
    is_partial: bool,
}

/// The choice for a selector: a track, and the language to translate it into, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TrackChoice {
    /// The resulting track.
    pub(super) info: TrackInfo,
    pub(super) address: String,
    pub(super) gated: bool,
    /// The language as YouTube writes it.
    pub(super) translate_to: Option<String>,
}

impl YouTubeTrackList {
    /// Reads the value of `captions` in the player data. Malformed entries are skipped.
    pub(super) fn read(captions: &Value) -> Self {
        let list = field(captions, "playerCaptionsTracklistRenderer");
        let entries = || items(list, "captionTracks", TRACKS_MAX);
        let mut tracks: Vec<_> = entries().filter_map(YouTubeTrack::read).collect();
        let is_partial = entries().nth(tracks.len()).is_some();
        if let Some(spoken) = spoken_language(list, &tracks) {
            for track in &mut tracks {
                track.info.original = spoken.matches(&track.info.language) && !track.is_of_dub();
            }
        }
        mark_machine_dubs(list, &mut tracks);
        let translations = items(list, "translationLanguages", TRANSLATIONS_MAX);
        let translations = translations.filter_map(TranslationLanguage::read).collect();
        Self { tracks, translations, is_partial }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// Whether the value of `captions` in the player data states that the video has none.
    ///
    /// Any other value without tracks has an unknown format.
    pub(super) fn is_absent(captions: &Value) -> bool {
        let list = field(captions, "playerCaptionsTracklistRenderer");
        let tracks = field(list, "captionTracks");
        // The old form of a video without tracks has this field alone.
        let has_no_list =
            |fields: &Map<String, Value>| fields.keys().all(|name| name == "playerCaptionsRenderer");
        captions.is_null()
            || captions.as_object().is_some_and(has_no_list)
            || list.is_object() && (tracks.is_null() || tracks.as_array().is_some_and(Vec::is_empty))
    }

    /// Why there is no choice for a selector.
    pub(super) fn no_choice(&self, selector: &TrackSelector) -> YouTubeFailure {
        let tracks: Vec<_> =
            self.infos().into_iter().filter(|track| track.kind != TrackKind::Translated).collect();
        match selector.language() {
            _ if self.is_partial => unknown_format(),
            // A machine translation is never the default.
            None if tracks.is_empty() => YouTubeFailure::NoCaptions,
            _ => YouTubeFailure::NoLanguage(tracks),
        }
    }

    /// All listed tracks.
    pub(super) fn infos(&self) -> Vec<TrackInfo> {
        self.tracks.iter().map(|track| track.info.clone()).collect()
    }

    /// Whether no other client lists more tracks for a selector.
    ///
    /// All clients list the same tracks of a video. They differ in the languages that YouTube translates into.
    pub(super) fn is_complete_for(&self, selector: &TrackSelector, client: &ClientIdentity) -> bool {
        let translations = client.lists_all_translations() && !self.translations.is_empty();
        translations || !selector.takes(TrackKind::Translated)
    }

    /// The best choice for a selector.
    ///
    /// A machine translation only if no original track matches and the selector takes it. If an entry was malformed, it
    /// may be a better choice than a translation, and than a default that is not in the spoken language.
    pub(super) fn choose(&self, selector: &TrackSelector) -> Option<TrackChoice> {
        let is_best = |choice: &TrackChoice| match selector.language() {
            Some(_) => choice.info.kind != TrackKind::Translated,
            None => choice.info.original,
        };
        self.choose_among(&self.tracks, selector).filter(|choice| !self.is_partial || is_best(choice))
    }

    /// A substitute for the best track, among those that `suits` accepts.
    ///
    /// It has the same language and is not translated. It also matches the selector, because it is archived permanently
    /// for the selector.
    pub(super) fn choose_instead(
        &self,
        selector: &TrackSelector,
        suits: impl Fn(&YouTubeTrack) -> bool,
    ) -> Option<TrackChoice> {
        let best = self.choose(selector).filter(|best| best.translate_to.is_none())?;
        let language = &best.info.language;
        let suits = |track: &YouTubeTrack| suits(track) && language.matches(&track.info.language);
        self.choose_suitable(selector, suits)
    }

    /// The next choice after the tracks at the `tried` URLs, which have no text.
    ///
    /// It has the language of the best track. After all of these, the default is a track in another language.
    pub(super) fn choose_next(&self, selector: &TrackSelector, tried: &[String]) -> Option<TrackChoice> {
        let is_untried = |track: &YouTubeTrack| !tried.contains(&track.address);
        let is_open = |track: &YouTubeTrack| is_untried(track) && !track.gated;
        let same_language = self.choose_instead(selector, is_open);
        let same_language = same_language.or_else(|| self.choose_instead(selector, is_untried));
        if same_language.is_some() || selector.language().is_some() {
            return same_language;
        }
        let other_language = self.choose_suitable(selector, is_open);
        other_language.or_else(|| self.choose_suitable(selector, is_untried))
    }

    fn choose_suitable(
        &self,
        selector: &TrackSelector,
        suits: impl Fn(&YouTubeTrack) -> bool,
    ) -> Option<TrackChoice> {
        let tracks: Vec<_> = self.tracks.iter().filter(|track| suits(track)).cloned().collect();
        self.choose_among(&tracks, selector).filter(|choice| choice.translate_to.is_none())
    }

    fn choose_among(&self, tracks: &[YouTubeTrack], selector: &TrackSelector) -> Option<TrackChoice> {
        let best = best_track(tracks.iter().map(|track| &track.info), selector);
        match (best.and_then(|index| tracks.get(index)), selector) {
            (Some(track), _) => Some(TrackChoice {
                info: track.info.clone(),
                address: track.address.clone(),
                gated: track.gated,
                translate_to: None,
            }),
            (None, selector) if selector.takes(TrackKind::Translated) => {
                self.translate(tracks, selector.language()?)
            }
            (None, _) => None,
        }
    }

    fn translate(&self, tracks: &[YouTubeTrack], language: &LanguageTag) -> Option<TrackChoice> {
        let to = self.translations.iter().find(|to| to.language == *language)?;
        // Translating a track into its own language damages it.
        let sources: Vec<_> =
            tracks.iter().filter(|from| from.translatable && from.code != to.code).collect();
        let best = best_track(sources.iter().map(|track| &track.info), &TrackSelector::Default)?;
        let source = sources.get(best)?;
        Some(TrackChoice {
            info: TrackInfo::new(language.clone(), TrackKind::Translated),
            address: source.address.clone(),
            gated: source.gated,
            translate_to: Some(to.code.clone()),
        })
    }
}

impl YouTubeTrack {
    fn read(value: &Value) -> Option<Self> {
        let address = field(value, "baseUrl").as_str().filter(|address| address.len() <= ADDRESS_MAX)?;
        let code = field(value, "languageCode").as_str()?;
        let generated = field(value, "kind").as_str() == Some("asr")
            || field(value, "vssId").as_str().is_some_and(|id| id.starts_with("a."));
        let kind = if generated { TrackKind::Generated } else { TrackKind::Human };
        let language = LanguageTag::parse(code).unwrap_or_else(|_| LanguageTag::unknown());
        let name = text(field(value, "trackName"), NAME_MAX);
        Some(Self {
            info: TrackInfo { name, ..TrackInfo::new(language, kind) },
            code: code.to_owned(),
            address: address.to_owned(),
            translatable: field(value, "isTranslatable").as_bool().unwrap_or(false),
            gated: needs_token(address),
        })
    }

    /// Whether its name says that it has the words of a dubbed version.
    fn is_of_dub(&self) -> bool {
        self.info.name.as_deref().is_some_and(names_dub)
    }
}

/// Whether a track's name has a word for dubbing, as "English (dubbed)", "fandub" or "dublado". "Dubois" is none.
fn names_dub(name: &str) -> bool {
    let name = name.to_lowercase();
    let mut words = name.split(|c: char| !c.is_ascii_alphabetic());
    words.any(|word| {
        word.trim_end_matches('s').ends_with("dub")
            || ["dubb", "dubla", "dubtitle"].iter().any(|part| word.contains(part))
    })
}

impl TranslationLanguage {
    fn read(value: &Value) -> Option<Self> {
        let code = field(value, "languageCode").as_str()?;
        Some(Self { language: LanguageTag::parse(code).ok()?, code: code.to_owned() })
    }
}

/// The spoken language, as far as the track list shows it.
///
/// Most reliable is the audio track marked as the original among dubbed ones; then the language of generated captions,
/// if there is only one. The language of a dubbed audio track is never taken for it, nor that of the captions that
/// YouTube shows by default: they follow the language of the request, which is English.
fn spoken_language(list: &Value, tracks: &[YouTubeTrack]) -> Option<LanguageTag> {
    let audio_tracks = || items(list, "audioTracks", TRACKS_MAX);
    if let Some(original) = audio_tracks().filter(|audio| !is_dubbed(audio)).find_map(audio_language) {
        return Some(original);
    }
    let dubbed: Vec<_> = audio_tracks().filter_map(audio_language).collect();
    let is_candidate = |track: &&YouTubeTrack| {
        !track.is_of_dub() && !dubbed.iter().any(|dubbed| dubbed.matches(&track.info.language))
    };
    let generated = |track: &&YouTubeTrack| track.info.kind == TrackKind::Generated;
    let mut generated = tracks.iter().filter(generated).filter(is_candidate);
    let first = generated.next()?;
    let is_only = generated.all(|track| track.info.language == first.info.language);
    is_only.then(|| first.info.language.clone())
}

/// Marks the recognised speech of audio that a machine dubbed: its words are those of a machine translation.
fn mark_machine_dubs(list: &Value, tracks: &mut [YouTubeTrack]) {
    let (dubs, others): (Vec<_>, Vec<_>) =
        items(list, "audioTracks", TRACKS_MAX).partition(|audio| has_suffix(audio, MACHINE_DUB));
    let is_in = |audio_tracks: &[&Value], language: &LanguageTag| {
        audio_tracks.iter().filter_map(|audio| audio_language(audio)).any(|other| other.matches(language))
    };
    for info in tracks.iter_mut().map(|track| &mut track.info) {
        let is_of_dub = || is_in(&dubs, &info.language) && !is_in(&others, &info.language);
        if info.kind == TrackKind::Generated && !info.original && is_of_dub() {
            info.kind = TrackKind::Translated;
        }
    }
}

/// Whether the id of an audio track has this ending.
fn has_suffix(audio: &Value, suffix: &str) -> bool {
    field(audio, "audioTrackId").as_str().is_some_and(|id| id.ends_with(suffix))
}

/// Whether an audio track is marked as dubbed.
fn is_dubbed(audio: &Value) -> bool {
    field(audio, "audioTrackId").as_str().is_some_and(|id| !id.ends_with(ORIGINAL_AUDIO))
}

/// The language of an audio track; only videos with several have one.
fn audio_language(audio: &Value) -> Option<LanguageTag> {
    let (code, _) = field(audio, "audioTrackId").as_str()?.rsplit_once('.')?;
    LanguageTag::parse(code).ok()
}

/// Whether a URL returns captions only with a proof-of-origin token.
///
/// Its `exp` then names such an experiment.
fn needs_token(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "exp" && (value.contains("xpe") || value.contains("xpv")))
}

/// Whether the URL of a track names another video.
pub(super) fn is_of_other_video(address: &str, video: &VideoId) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes()).any(|(name, value)| name == "v" && !is_same(&value, video.id()))
}

/// The failure for a list of tracks in an unknown format.
pub(super) fn unknown_format() -> YouTubeFailure {
    YouTubeFailure::UnreadableCaptions("their list has an unknown format".to_owned())
}

/// A track's URL with a format and an optional translation.
///
/// Existing parameters for format (`fmt`), positions (`xosf`, which adds noise to the text) and translation
/// (`tlang`) are removed. Signed parameters (listed in `sparams`) stay, and all others keep their spelling.
pub(super) fn caption_url(mut url: Url, format: TrackFormat, translate_to: Option<&str>) -> Url {
    let query = url.query().unwrap_or("").to_owned();
    let signed = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "sparams");
    let signed = signed.map(|(_, names)| names.into_owned()).unwrap_or_default();
    let is_signed = |name: &str| signed.split(',').any(|other| other == name);
    let stays = |part: &&str| match form_urlencoded::parse(part.as_bytes()).next() {
        Some((name, _)) => is_signed(&name) || !matches!(&*name, "fmt" | "xosf" | "tlang"),
        None => false,
    };
    let mut parts: Vec<String> = query.split('&').filter(stays).map(str::to_owned).collect();
    for (name, value) in [("tlang", translate_to), ("fmt", format.name())] {
        if let Some(value) = value.filter(|_| !is_signed(name)) {
            let value: String = form_urlencoded::byte_serialize(value.as_bytes()).collect();
            parts.push(format!("{name}={value}"));
        }
    }
    url.set_query(Some(&parts.join("&")));
    url
}

#[cfg(test)]
mod tests;
