//! The caption tracks of a video in its player data, and the choice for a track selector. No I/O.

use serde_json::Value;
use transcript_core::{
    archive::TrackSelector,
    transcript::{LanguageTag, TrackInfo, TrackKind, best_track},
};
use url::{Url, form_urlencoded};

use super::{
    clients::ClientIdentity,
    player::{field, items, text},
};

/// Maximum number of tracks and translations read. About 40 and 160 are usual.
const TRACKS_MAX: usize = 500;
const TRANSLATIONS_MAX: usize = 1_000;
/// Maximum length of a URL in bytes, and of a track name in characters.
const ADDRESS_MAX: usize = 8_192;
const NAME_MAX: usize = 200;

/// The end of the id of an audio track in the spoken language: `en-US.4`. Those of dubbed tracks end in other numbers,
/// such as `.10` if a machine dubbed them.
pub(super) const ORIGINAL_AUDIO: &str = ".4";

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

/// One track.
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
        let mut tracks: Vec<_> =
            items(list, "captionTracks").take(TRACKS_MAX).filter_map(YouTubeTrack::read).collect();
        if let Some(spoken) = spoken_language(list, &tracks) {
            for track in &mut tracks {
                track.info.original = spoken.matches(&track.info.language) && !track.is_of_dub();
            }
        }
        let translations = items(list, "translationLanguages").take(TRANSLATIONS_MAX);
        let translations = translations.filter_map(TranslationLanguage::read).collect();
        Self { tracks, translations }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// All original tracks.
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
    /// A machine translation only if no original track matches and the selector takes it.
    pub(super) fn choose(&self, selector: &TrackSelector) -> Option<TrackChoice> {
        self.choose_among(&self.tracks, selector)
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
        self.info.name.as_ref().is_some_and(|name| name.to_lowercase().contains("dub"))
    }
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
    let audio_tracks = || items(list, "audioTracks").take(TRACKS_MAX);
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
mod tests {
    use serde_json::json;

    use super::*;

    fn track(code: &str, kind: &str, address: &str) -> Value {
        json!({"baseUrl": address, "languageCode": code, "kind": kind, "isTranslatable": true})
    }

    fn list(tracks: Value, more: Value) -> YouTubeTrackList {
        let mut renderer = json!({"captionTracks": tracks});
        renderer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        YouTubeTrackList::read(&json!({"playerCaptionsTracklistRenderer": renderer}))
    }

    fn translation(tag: &str) -> TrackSelector {
        TrackSelector::in_language(LanguageTag::parse(tag).unwrap(), true)
    }

    fn selector(tag: &str) -> TrackSelector {
        TrackSelector::Language(LanguageTag::parse(tag).unwrap())
    }

    #[test]
    fn track_list_malformed_entry_is_skipped() {
        let list = list(
            json!([
                {"baseUrl": "u1", "languageCode": "iw", "trackName": "Director"},
                {"baseUrl": "u2", "languageCode": "en", "kind": "asr", "isTranslatable": "yes"},
                {"baseUrl": "u3", "languageCode": "en", "vssId": "a.en"},
                {"baseUrl": "u4", "languageCode": "not a language"},
                {"baseUrl": 5, "languageCode": "en"},
                {"languageCode": "en"},
                {"baseUrl": "u6"},
                "a track",
                null,
            ]),
            json!({}),
        );
        let read: Vec<_> = list
            .tracks
            .iter()
            .map(|t| (t.address.as_str(), t.info.language.as_str(), t.info.kind, t.info.name.as_deref()))
            .collect();
        assert_eq!(
            read,
            [
                ("u1", "he", TrackKind::Human, Some("Director")),
                ("u2", "en", TrackKind::Generated, None),
                ("u3", "en", TrackKind::Generated, None),
                ("u4", "und", TrackKind::Human, None),
            ]
        );
        for captions in
            [json!(null), json!([]), json!({"playerCaptionsTracklistRenderer": {"captionTracks": 7}})]
        {
            assert!(YouTubeTrackList::read(&captions).is_empty(), "{captions}");
        }
    }

    #[test]
    fn spoken_language_is_detected_from_track_list() {
        let check = |tracks: Value, more: Value, expect: &[&str]| {
            let list = list(tracks, more.clone());
            let original = list.tracks.iter().filter(|track| track.info.original);
            let original: Vec<_> = original.map(|track| track.info.language.as_str()).collect();
            assert_eq!(original, expect, "{more}");
        };
        let tracks = json!([track("de", "", "u"), track("en", "", "u"), track("fr", "asr", "u")]);
        let written = json!([track("de", "", "u"), track("en-GB", "", "u"), track("en", "", "u")]);
        let dubbed = json!({"audioTracks": [{"audioTrackId": "de-DE.10"}, {"audioTrackId": "en-US.4"}]});
        let shown = |index: u8| json!({"audioTracks": [{"defaultCaptionTrackIndex": index}]});
        check(tracks.clone(), dubbed.clone(), &["en"]);
        check(tracks, shown(0), &["fr"]);
        check(written.clone(), dubbed, &["en-GB", "en"]);
        // Captions that YouTube shows by default are no sign.
        check(written.clone(), shown(0), &[]);
        check(json!([track("ja", "", "u"), track("en", "", "u")]), shown(1), &[]);
        check(written, json!({}), &[]);
        let both = json!([track("en", "asr", "u"), track("es", "asr", "u")]);
        check(both.clone(), json!({"audioTracks": "?"}), &[]);
        // Dubbed audio is never the original, not even as the default or with the only generated captions.
        let dubs = |ids: &[&str]| {
            let audio = |id: &&str| json!({"audioTrackId": id, "defaultCaptionTrackIndex": 1});
            json!({"audioTracks": ids.iter().map(audio).collect::<Vec<_>>(), "defaultAudioTrackIndex": 0})
        };
        check(both.clone(), dubs(&["es-US.10", "en-US.4"]), &["en"]);
        check(both, dubs(&["es-US.10"]), &["en"]);
        check(json!([track("en", "", "u"), track("es", "asr", "u")]), dubs(&["es-US.10"]), &[]);
        check(json!([track("en", "", "u"), track("es", "", "u")]), dubs(&["es.3"]), &[]);
        check(json!([track("en", "", "u"), track("es", "", "u")]), dubs(&["x"]), &[]);
        let mut named = track("en", "", "u");
        named["trackName"] = json!("Dubbed version");
        check(json!([named, track("en", "", "u")]), dubs(&["en.4"]), &["en"]);
    }

    #[test]
    fn translation_needs_exact_tag() {
        let list = list(
            json!([track("de", "", "human"), track("fr", "asr", "speech")]),
            json!({"translationLanguages": [
                {"languageCode": "en"}, {"languageCode": "de"}, {"languageCode": "iw"}, {"languageCode": 1},
            ]}),
        );
        let chosen = |selector: &TrackSelector| {
            let choice = list.choose(selector)?;
            Some((choice.address, choice.info.kind, choice.translate_to))
        };
        let translated =
            |code: &str| Some(("speech".to_owned(), TrackKind::Translated, Some(code.to_owned())));
        assert_eq!(chosen(&TrackSelector::Default), Some(("speech".to_owned(), TrackKind::Generated, None)));
        assert_eq!(chosen(&selector("en")), None);
        assert_eq!(chosen(&translation("en")), translated("en"));
        assert_eq!(chosen(&translation("he")), translated("iw"), "the request has YouTube's own code");
        assert_eq!(chosen(&translation("en-GB")), None);
        assert_eq!(chosen(&selector("de-AT")), Some(("human".to_owned(), TrackKind::Human, None)));
        assert_eq!(chosen(&translation("ja")), None);
    }

    #[test]
    fn translation_into_own_language_is_not_chosen() {
        // The language of the only track is invalid, but its code equals that of the first translation.
        let list = list(
            json!([{"baseUrl": "u", "languageCode": "zz-bad tag", "isTranslatable": true}]),
            json!({"translationLanguages": [{"languageCode": "zz-bad tag"}, {"languageCode": "en"}]}),
        );
        assert!(list.choose(&translation("zz")).is_none());
        assert_eq!(list.choose(&translation("en")).unwrap().translate_to.as_deref(), Some("en"));
    }

    #[test]
    fn gated_track_is_detected_by_experiment() {
        for (address, expect) in [
            ("https://x/?v=1&exp=xpe&lang=en", true),
            ("https://x/?exp=xbt,xpv", true),
            ("https://x/?exp=xbt%2Cxpe", true),
            ("https://x/?exp=xbt", false),
            ("https://x/?name=xpe", false),
            ("https://x/exp=xpe", false),
            ("", false),
        ] {
            assert_eq!(needs_token(address), expect, "{address}");
        }
        let list = list(
            json!([track("en", "", "https://x/?exp=xpe"), track("en", "asr", "https://x/?")]),
            json!({}),
        );
        assert!(list.choose(&TrackSelector::Default).unwrap().gated);
        assert_eq!(open(&list, &TrackSelector::Default).unwrap().info.kind, TrackKind::Generated);
    }

    fn open(list: &YouTubeTrackList, selector: &TrackSelector) -> Option<TrackChoice> {
        list.choose_instead(selector, |track| !track.gated)
    }

    #[test]
    fn substitute_of_gated_track_has_same_language() {
        let gated = "https://x/?exp=xpe";
        for (gated_code, open_code, selected, expect) in [
            ("en", "en", None, Some("en")),
            ("en-GB", "en", None, Some("en")),
            ("en", "en-US", Some("en"), Some("en-US")),
            // English to German, original to translation, another script.
            ("en", "de", None, None),
            ("fr", "en", Some("fr"), None),
            ("zh-Hans", "zh-Hant", Some("zh-CN"), None),
            // The best choice is a translation of a gated track.
            ("en", "de", Some("fr"), None),
        ] {
            let list = list(
                json!([track(gated_code, "", gated), track(open_code, "asr", "https://x/?")]),
                json!({"translationLanguages": [{"languageCode": "fr"}, {"languageCode": "zh-Hans"}]}),
            );
            let selector = selected.map_or(TrackSelector::Default, selector);
            let chosen = open(&list, &selector).map(|choice| choice.info);
            let chosen = chosen.as_ref().map(|info| info.language.as_str());
            assert_eq!(chosen, expect, "{gated_code} {open_code} {selected:?}");
        }
    }

    #[test]
    fn caption_url_keeps_signed_parameters() {
        for (address, format, to, expect) in [
            ("https://x/t?v=a&fmt=srv3&lang=en", TrackFormat::Json3, None, "v=a&lang=en&fmt=json3"),
            ("https://x/t?v=a&xosf=1&tlang=de&lang=en", TrackFormat::Srv3, None, "v=a&lang=en&fmt=srv3"),
            ("https://x/t?v=a&fmt=srv3", TrackFormat::Classic, None, "v=a"),
            ("https://x/t?v=a", TrackFormat::Json3, Some("zh-Hans"), "v=a&tlang=zh-Hans&fmt=json3"),
            ("https://x/t?v=a", TrackFormat::Json3, Some("a&b"), "v=a&tlang=a%26b&fmt=json3"),
            // The spelling is kept: signatures may cover the text.
            (
                "https://x/t?sparams=ip%2Cxosf,v&xosf=1&name=A+B%20C&v=%41",
                TrackFormat::Json3,
                None,
                "sparams=ip%2Cxosf,v&xosf=1&name=A+B%20C&v=%41&fmt=json3",
            ),
            ("https://x/t?sparams=fmt&fmt=srv3", TrackFormat::Json3, None, "sparams=fmt&fmt=srv3"),
            ("https://x/t", TrackFormat::Json3, None, "fmt=json3"),
        ] {
            let url = caption_url(Url::parse(address).unwrap(), format, to);
            assert_eq!(url.query().unwrap_or(""), expect, "{address}");
        }
    }
}
