//! The caption tracks of a TikTok video: two lists that tell of the same files, each something else. Pure.

use serde_json::Value;
use transcript_core::transcript::{LanguageTag, TrackInfo, TrackKind};

use crate::social::{
    Track, Tracks,
    json::{field, items, path},
};

/// The most tracks and addresses of one track that are read. One to five, and three, are usual.
const TRACKS_MAX: usize = 100;
const ADDRESSES_MAX: usize = 4;
/// The longest address, in bytes.
const ADDRESS_MAX: usize = 8_192;

/// The tracks of a post's video, in TikTok's order, which means nothing.
pub(super) fn read(video: &Value) -> Tracks {
    let info = field(video, "claInfo");
    let captions: Vec<_> = items(info, "captionInfos", TRACKS_MAX).filter_map(Caption::read).collect();
    let mut tracks: Vec<Track> = Vec::new();
    for subtitle in items(video, "subtitleInfos", TRACKS_MAX) {
        let Some(address) = address(field(subtitle, "Url")) else { continue };
        let code = field(subtitle, "LanguageCodeName").as_str().unwrap_or("");
        let same = captions.iter().find(|caption| caption.addresses.contains(&address));
        let source = field(subtitle, "Source").as_str().unwrap_or("");
        let kind = kind(source).or(same.map(|caption| caption.kind)).unwrap_or(TrackKind::Generated);
        let language = language(code, same.and_then(|caption| caption.short.as_deref()));
        let mut addresses = vec![address];
        addresses.extend(same.into_iter().flat_map(|caption| caption.addresses.iter().cloned()));
        add(&mut tracks, TrackInfo::new(language, kind), addresses);
    }
    for caption in captions {
        let language = language(&caption.code, caption.short.as_deref());
        add(&mut tracks, TrackInfo::new(language, caption.kind), caption.addresses);
    }
    if let Some(spoken) = spoken_language(info, &tracks) {
        for track in &mut tracks {
            // A translation back into the spoken language is not what was said.
            track.info.original =
                track.info.kind != TrackKind::Translated && spoken.matches(&track.info.language);
        }
    }
    Tracks(tracks)
}

/// Adds a track, or its addresses to the track that is the same.
fn add(tracks: &mut Vec<Track>, info: TrackInfo, addresses: Vec<String>) {
    let place = match tracks.iter().position(|track| track.info.is_same(&info)) {
        Some(place) => place,
        None => {
            tracks.push(Track { info, addresses: Vec::new() });
            tracks.len() - 1
        }
    };
    let Some(track) = tracks.get_mut(place) else { return };
    for address in addresses {
        if track.addresses.len() < ADDRESSES_MAX && !track.addresses.contains(&address) {
            track.addresses.push(address);
        }
    }
}

/// One entry of the newer list.
struct Caption {
    code: String,
    /// The language in two letters, where it has such a name.
    short: Option<String>,
    kind: TrackKind,
    addresses: Vec<String>,
}

impl Caption {
    fn read(value: &Value) -> Option<Self> {
        let first = address(field(value, "url"));
        let others = items(value, "urlList", ADDRESSES_MAX).filter_map(address);
        let mut addresses: Vec<String> = Vec::new();
        for address in first.into_iter().chain(others) {
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        if addresses.is_empty() {
            return None;
        }
        let is = |name: &str| field(value, name).as_bool();
        let kind = match (is("isAutoGen"), is("isOriginalCaption")) {
            (Some(false), _) => TrackKind::Human,
            (_, Some(false)) => TrackKind::Translated,
            _ => TrackKind::Generated,
        };
        let code = field(value, "language").as_str().unwrap_or("").to_owned();
        Some(Self { code, short: field(value, "languageCode").as_str().map(str::to_owned), kind, addresses })
    }
}

fn address(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty() && text.len() <= ADDRESS_MAX).map(str::to_owned)
}

/// How the words of a source came to be: speech recognition, machine translation, or the creator's own.
fn kind(source: &str) -> Option<TrackKind> {
    match source {
        "ASR" => Some(TrackKind::Generated),
        "MT" => Some(TrackKind::Translated),
        "LC" => Some(TrackKind::Human),
        _ => None,
    }
}

/// A language that TikTok writes as `vie-VN`, in three letters and with a region that says nothing; `short` is
/// its name in two letters, where TikTok gives one.
fn language(code: &str, short: Option<&str>) -> LanguageTag {
    let short = short.and_then(|short| LanguageTag::parse(short).ok());
    let Ok(long) = LanguageTag::parse(code).map(|tag| tag.without_likely_region()) else {
        return short.unwrap_or_else(LanguageTag::unknown);
    };
    match short {
        // Where a region is left, the short name is without it; a script is worth keeping.
        Some(short) if short.as_str() == long.primary() && long.matches(&short) => short,
        _ => long,
    }
}

/// The language that TikTok says is spoken.
pub(super) fn original_language(info: &Value) -> Option<LanguageTag> {
    let original = |name| path(info, &["originalLanguageInfo", name]).as_str();
    let code = original("language").or_else(|| original("languageCode"))?;
    Some(language(code, original("languageCode")))
}

/// The language that is spoken, as far as the lists tell it.
fn spoken_language(info: &Value, tracks: &[Track]) -> Option<LanguageTag> {
    if let Some(original) = original_language(info) {
        return Some(original);
    }
    let mut heard = tracks.iter().filter(|track| track.info.kind == TrackKind::Generated);
    let first = heard.next()?;
    heard.all(|track| track.info.language == first.info.language).then(|| first.info.language.clone())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn subtitle(language: &str, source: &str, url: &str) -> Value {
        json!({"LanguageCodeName": language, "Source": source, "Url": url, "Format": "webvtt", "Size": "7"})
    }

    fn check(video: Value, expect: &[(&str, &str, bool, &[&str])]) {
        let tracks = read(&video);
        let found: Vec<_> = tracks
            .0
            .iter()
            .map(|track| {
                let addresses: Vec<_> = track.addresses.iter().map(String::as_str).collect();
                (track.info.language.as_str(), track.info.kind.as_str(), track.info.original, addresses)
            })
            .collect();
        let expect: Vec<_> = expect.iter().map(|(a, b, c, urls)| (*a, *b, *c, urls.to_vec())).collect();
        assert_eq!(found, expect, "{video}");
    }

    #[test]
    fn both_lists_tell_of_the_same_tracks() {
        let captions = json!([
            {"language": "vie-VN", "languageCode": "vi", "url": "v", "urlList": ["v", "v2", "v3"],
             "isAutoGen": true, "isOriginalCaption": true},
            {"language": "eng-US", "languageCode": "en", "url": "e", "isAutoGen": true, "isOriginalCaption": false},
        ]);
        let original = json!({"language": "vie-VN", "languageCode": "vi"});
        check(
            json!({
                "subtitleInfos": [subtitle("eng-US", "MT", "e"), subtitle("vie-VN", "ASR", "v")],
                "claInfo": {"captionInfos": captions, "originalLanguageInfo": original},
            }),
            &[("en", "translated", false, &["e"]), ("vi", "generated", true, &["v", "v2", "v3"])],
        );
        check(
            json!({"claInfo": {"captionInfos": captions}}),
            &[("vi", "generated", true, &["v", "v2", "v3"]), ("en", "translated", false, &["e"])],
        );
        check(
            json!({"subtitleInfos": [subtitle("eng-US", "MT", "e"), subtitle("vie-VN", "ASR", "v")]}),
            &[("en", "translated", false, &["e"]), ("vi", "generated", true, &["v"])],
        );
    }

    #[test]
    fn what_the_creator_wrote_is_human_made() {
        check(
            json!({
                "subtitleInfos": [subtitle("eng-US", "ASR", "a"), subtitle("eng-US", "LC", "l")],
                "claInfo": {"captionInfos": [{"language": "fra-FR", "url": "f", "isAutoGen": false}]},
            }),
            &[
                ("en", "generated", true, &["a"]),
                ("en", "human", true, &["l"]),
                ("fr", "human", false, &["f"]),
            ],
        );
    }

    #[test]
    fn what_is_malformed_is_left_out_and_what_is_unknown_is_a_machines() {
        check(
            json!({
                "subtitleInfos": [
                    null, 5, {"Url": ""}, {"Url": 7}, {"Url": "x".repeat(9_000)}, {"Url": "u"},
                    subtitle("not a language", "NEW", "n"), subtitle("eng-US", "NEW", "e"),
                ],
                "claInfo": {"captionInfos": [{}, "x", {"url": null, "urlList": [5, "late"]}]},
            }),
            &[("und", "generated", false, &["u", "n", "late"]), ("en", "generated", false, &["e"])],
        );
        for video in [json!(null), json!([]), json!({"subtitleInfos": {}, "claInfo": 7})] {
            check(video, &[]);
        }
    }

    #[test]
    fn languages_are_written_as_everybody_does() {
        for (code, short, expect) in [
            ("eng-US", Some("en"), "en"),
            ("vie-VN", None, "vi"),
            ("ara-SA", Some("ar"), "ar"),
            ("cmn-Hant-CN", Some("zh"), "zh-Hant"),
            ("cmn-Hans-CN", None, "zh-Hans"),
            ("por-PT", None, "pt-PT"),
            ("?", Some("de"), "de"),
            ("", None, "und"),
        ] {
            assert_eq!(language(code, short).as_str(), expect, "{code}");
        }
    }
}
