//! The caption tracks of a video: what the player data says of them, and which one answers a wish. Pure.

use serde_json::Value;
use transcript_core::{
    archive::Wish,
    transcript::{LanguageTag, TrackInfo, TrackKind, best_track},
};
use url::{Url, form_urlencoded};

use super::player::{field, items, text};

/// The most tracks and translations that are read. Some 40 and 160 are usual.
const TRACKS_MAX: usize = 500;
const TRANSLATIONS_MAX: usize = 1_000;
/// The longest address and track name, in bytes and characters.
const ADDRESS_MAX: usize = 8_192;
const NAME_MAX: usize = 200;

/// A form in which YouTube gives captions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// JSON with milliseconds: the least to misread.
    Json3,
    /// XML with milliseconds.
    Srv3,
    /// XML with seconds: what comes when no format is named.
    Classic,
}

impl Format {
    /// In the order in which they are asked for.
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
pub(super) struct Track {
    pub(super) info: TrackInfo,
    /// The language as YouTube writes it.
    code: String,
    /// Where its captions are. Signed, and valid for some hours.
    pub(super) address: String,
    translatable: bool,
    /// Whether the address wants a proof of origin, which we don't have: it would answer with nothing.
    pub(super) gated: bool,
}

/// A language that YouTube translates tracks into.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Translation {
    language: LanguageTag,
    code: String,
}

/// All tracks of a video, as one client was told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct TrackList {
    tracks: Vec<Track>,
    translations: Vec<Translation>,
}

/// The answer to a wish: a track, and the language to translate it into, if any.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    /// What comes out of it.
    pub(super) info: TrackInfo,
    pub(super) address: String,
    pub(super) gated: bool,
    /// The language as YouTube writes it.
    pub(super) translate_to: Option<String>,
}

impl TrackList {
    /// Reads the value of `captions` in the player data. What is malformed is left out.
    pub(super) fn read(captions: &Value) -> Self {
        let list = field(captions, "playerCaptionsTracklistRenderer");
        let mut tracks: Vec<_> =
            items(list, "captionTracks").take(TRACKS_MAX).filter_map(Track::read).collect();
        if let Some(spoken) = spoken_language(list, &tracks) {
            for track in &mut tracks {
                track.info.original = spoken.matches(&track.info.language);
            }
        }
        let translations = items(list, "translationLanguages").take(TRANSLATIONS_MAX);
        let translations = translations.filter_map(Translation::read).collect();
        Self { tracks, translations }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tracks.is_empty()
    }

    /// All real tracks.
    pub(super) fn infos(&self) -> Vec<TrackInfo> {
        self.tracks.iter().map(|track| track.info.clone()).collect()
    }

    /// The languages of all real tracks, each once.
    pub(super) fn languages(&self) -> Vec<LanguageTag> {
        let mut languages: Vec<LanguageTag> = Vec::new();
        for track in &self.tracks {
            if !languages.contains(&track.info.language) {
                languages.push(track.info.language.clone());
            }
        }
        languages
    }

    /// What answers a wish best; a machine translation only where no real track does and the language was
    /// wished by its exact tag.
    pub(super) fn choose(&self, wish: &Wish) -> Option<Choice> {
        self.choose_among(&self.tracks, wish)
    }

    /// What answers a wish in place of the best track, among those that suit: one in its language, and no
    /// translation. Whatever is found is archived for good as the answer to the wish, so it must be what
    /// the wish means, too.
    pub(super) fn choose_instead(&self, wish: &Wish, suits: impl Fn(&Track) -> bool) -> Option<Choice> {
        let best = self.choose(wish).filter(|best| best.translate_to.is_none())?;
        let language = &best.info.language;
        let tracks =
            self.tracks.iter().filter(|track| suits(track) && language.matches(&track.info.language));
        let tracks: Vec<_> = tracks.cloned().collect();
        self.choose_among(&tracks, wish).filter(|choice| choice.translate_to.is_none())
    }

    fn choose_among(&self, tracks: &[Track], wish: &Wish) -> Option<Choice> {
        let best = best_track(tracks.iter().map(|track| &track.info), wish);
        match (best.and_then(|place| tracks.get(place)), wish) {
            (Some(track), _) => Some(Choice {
                info: track.info.clone(),
                address: track.address.clone(),
                gated: track.gated,
                translate_to: None,
            }),
            (None, Wish::Language(language)) => self.translate(tracks, language),
            (None, Wish::Default) => None,
        }
    }

    fn translate(&self, tracks: &[Track], language: &LanguageTag) -> Option<Choice> {
        let to = self.translations.iter().find(|to| to.language == *language)?;
        // Translating a track into its own language damages it.
        let sources: Vec<_> =
            tracks.iter().filter(|from| from.translatable && from.code != to.code).collect();
        let best = best_track(sources.iter().map(|track| &track.info), &Wish::Default)?;
        let source = sources.get(best)?;
        Some(Choice {
            info: TrackInfo::new(language.clone(), TrackKind::Translated),
            address: source.address.clone(),
            gated: source.gated,
            translate_to: Some(to.code.clone()),
        })
    }
}

impl Track {
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
            gated: wants_proof(address),
        })
    }
}

impl Translation {
    fn read(value: &Value) -> Option<Self> {
        let code = field(value, "languageCode").as_str()?;
        Some(Self { language: LanguageTag::parse(code).ok()?, code: code.to_owned() })
    }
}

/// The language that is spoken, as far as the list of tracks tells it.
///
/// Surest is the audio track that is marked as the original among dubbed ones (its id ends in `.4`); then
/// what speech recognition heard, where it heard one language; then the track that YouTube shows by
/// itself, which is a guess only, since it also depends on who asks.
fn spoken_language(list: &Value, tracks: &[Track]) -> Option<LanguageTag> {
    let audio = |value: &Value| {
        let (code, kind) = field(value, "audioTrackId").as_str()?.rsplit_once('.')?;
        (kind == "4").then(|| LanguageTag::parse(code).ok()).flatten()
    };
    if let Some(original) = items(list, "audioTracks").take(TRACKS_MAX).find_map(audio) {
        return Some(original);
    }
    let mut heard = tracks.iter().filter(|track| track.info.kind == TrackKind::Generated);
    if let Some(first) = heard.next() {
        let one = heard.all(|track| track.info.language == first.info.language);
        return one.then(|| first.info.language.clone());
    }
    let place =
        |value: &Value, name| field(value, name).as_u64().and_then(|place| usize::try_from(place).ok());
    let audio = items(list, "audioTracks").nth(place(list, "defaultAudioTrackIndex").unwrap_or(0))?;
    let shown = tracks.get(place(audio, "defaultCaptionTrackIndex")?)?;
    Some(shown.info.language.clone())
}

/// Whether an address gives its captions only with a proof of origin: its `exp` names such an experiment.
fn wants_proof(address: &str) -> bool {
    let query = address.split_once('?').map_or("", |(_, query)| query);
    form_urlencoded::parse(query.as_bytes())
        .any(|(name, value)| name == "exp" && (value.contains("xpe") || value.contains("xpv")))
}

/// A track's address, asking for a format and, where wished, a translation.
///
/// What it says already of format (`fmt`), positions (`xosf`, which puts junk into the text) and
/// translation (`tlang`) goes; parameters that are signed (those that `sparams` lists) stay as they are,
/// and all others as they are written.
pub(super) fn caption_url(mut url: Url, format: Format, translate_to: Option<&str>) -> Url {
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

    fn list(tracks: Value, more: Value) -> TrackList {
        let mut renderer = json!({"captionTracks": tracks});
        renderer.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        TrackList::read(&json!({"playerCaptionsTracklistRenderer": renderer}))
    }

    fn wish(tag: &str) -> Wish {
        Wish::Language(LanguageTag::parse(tag).unwrap())
    }

    #[test]
    fn tracks_are_read_and_malformed_ones_left_out() {
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
            assert!(TrackList::read(&captions).is_empty(), "{captions}");
        }
    }

    #[test]
    fn the_spoken_language_is_told_as_far_as_it_is_known() {
        let check = |tracks: Value, more: Value, expect: &[&str]| {
            let list = list(tracks, more.clone());
            let original = list.tracks.iter().filter(|track| track.info.original);
            let original: Vec<_> = original.map(|track| track.info.language.as_str()).collect();
            assert_eq!(original, expect, "{more}");
        };
        let tracks = json!([track("de", "", "u"), track("en", "", "u"), track("fr", "asr", "u")]);
        let written = json!([track("de", "", "u"), track("en-GB", "", "u"), track("en", "", "u")]);
        let dubbed = json!({"audioTracks": [{"audioTrackId": "de-DE.10"}, {"audioTrackId": "en-US.4"}]});
        let shown = json!({"audioTracks": [{"defaultCaptionTrackIndex": 0}], "defaultAudioTrackIndex": 0});
        check(tracks.clone(), dubbed.clone(), &["en"]);
        check(tracks, shown.clone(), &["fr"]);
        check(written.clone(), dubbed, &["en-GB", "en"]);
        check(written.clone(), shown, &["de"]);
        check(written.clone(), json!({}), &[]);
        check(written, json!({"audioTracks": [{"defaultCaptionTrackIndex": 99}]}), &[]);
        let both = json!([track("en", "asr", "u"), track("es", "asr", "u")]);
        check(both, json!({"audioTracks": "?"}), &[]);
    }

    #[test]
    fn a_translation_is_made_only_when_asked_for_by_name() {
        let list = list(
            json!([track("de", "", "human"), track("fr", "asr", "heard")]),
            json!({"translationLanguages": [
                {"languageCode": "en"}, {"languageCode": "de"}, {"languageCode": "iw"}, {"languageCode": 1},
            ]}),
        );
        let chosen = |wish: &Wish| {
            let choice = list.choose(wish)?;
            Some((choice.address, choice.info.kind, choice.translate_to))
        };
        let translated =
            |code: &str| Some(("heard".to_owned(), TrackKind::Translated, Some(code.to_owned())));
        assert_eq!(chosen(&Wish::Default), Some(("heard".to_owned(), TrackKind::Generated, None)));
        assert_eq!(chosen(&wish("en")), translated("en"));
        assert_eq!(chosen(&wish("he")), translated("iw"), "YouTube's own code goes into the request");
        assert_eq!(chosen(&wish("en-GB")), None);
        assert_eq!(chosen(&wish("de-AT")), Some(("human".to_owned(), TrackKind::Human, None)));
        assert_eq!(chosen(&wish("ja")), None);
    }

    #[test]
    fn no_track_is_translated_into_its_own_language() {
        // The language of the only track cannot be read, but its code is that of the first translation.
        let list = list(
            json!([{"baseUrl": "u", "languageCode": "zz-bad tag", "isTranslatable": true}]),
            json!({"translationLanguages": [{"languageCode": "zz-bad tag"}, {"languageCode": "en"}]}),
        );
        assert!(list.choose(&wish("zz")).is_none());
        assert_eq!(list.choose(&wish("en")).unwrap().translate_to.as_deref(), Some("en"));
    }

    #[test]
    fn gated_tracks_are_told_by_their_experiments() {
        for (address, expect) in [
            ("https://x/?v=1&exp=xpe&lang=en", true),
            ("https://x/?exp=xbt,xpv", true),
            ("https://x/?exp=xbt%2Cxpe", true),
            ("https://x/?exp=xbt", false),
            ("https://x/?name=xpe", false),
            ("https://x/exp=xpe", false),
            ("", false),
        ] {
            assert_eq!(wants_proof(address), expect, "{address}");
        }
        let list = list(
            json!([track("en", "", "https://x/?exp=xpe"), track("en", "asr", "https://x/?")]),
            json!({}),
        );
        assert!(list.choose(&Wish::Default).unwrap().gated);
        assert_eq!(open(&list, &Wish::Default).unwrap().info.kind, TrackKind::Generated);
    }

    fn open(list: &TrackList, wish: &Wish) -> Option<Choice> {
        list.choose_instead(wish, |track| !track.gated)
    }

    #[test]
    fn what_is_taken_in_place_of_a_gated_track_means_the_same() {
        let gated = "https://x/?exp=xpe";
        for (gated_code, open_code, wished, expect) in [
            ("en", "en", None, Some("en")),
            ("en-GB", "en", None, Some("en")),
            ("en", "en-US", Some("en"), Some("en-US")),
            // German for English, a translation for the words, another script.
            ("en", "de", None, None),
            ("fr", "en", Some("fr"), None),
            ("zh-Hans", "zh-Hant", Some("zh-CN"), None),
            // The best answer is a translation of what is gated.
            ("en", "de", Some("fr"), None),
        ] {
            let list = list(
                json!([track(gated_code, "", gated), track(open_code, "asr", "https://x/?")]),
                json!({"translationLanguages": [{"languageCode": "fr"}, {"languageCode": "zh-Hans"}]}),
            );
            let wish = wished.map_or(Wish::Default, wish);
            let chosen = open(&list, &wish).map(|choice| choice.info);
            let chosen = chosen.as_ref().map(|info| info.language.as_str());
            assert_eq!(chosen, expect, "{gated_code} {open_code} {wished:?}");
        }
    }

    #[test]
    fn addresses_keep_what_is_signed() {
        for (address, format, to, expect) in [
            ("https://x/t?v=a&fmt=srv3&lang=en", Format::Json3, None, "v=a&lang=en&fmt=json3"),
            ("https://x/t?v=a&xosf=1&tlang=de&lang=en", Format::Srv3, None, "v=a&lang=en&fmt=srv3"),
            ("https://x/t?v=a&fmt=srv3", Format::Classic, None, "v=a"),
            ("https://x/t?v=a", Format::Json3, Some("zh-Hans"), "v=a&tlang=zh-Hans&fmt=json3"),
            ("https://x/t?v=a", Format::Json3, Some("a&b"), "v=a&tlang=a%26b&fmt=json3"),
            // Written as it was written: signatures may be over the text.
            (
                "https://x/t?sparams=ip%2Cxosf,v&xosf=1&name=A+B%20C&v=%41",
                Format::Json3,
                None,
                "sparams=ip%2Cxosf,v&xosf=1&name=A+B%20C&v=%41&fmt=json3",
            ),
            ("https://x/t?sparams=fmt&fmt=srv3", Format::Json3, None, "sparams=fmt&fmt=srv3"),
            ("https://x/t", Format::Json3, None, "fmt=json3"),
        ] {
            let url = caption_url(Url::parse(address).unwrap(), format, to);
            assert_eq!(url.query().unwrap_or(""), expect, "{address}");
        }
    }
}
