//! The caption tracks of a TikTok video: two lists of the same files with different metadata. No I/O.

use serde_json::Value;
use transcript_core::transcript::{LanguageTag, TrackInfo, TrackKind};

use crate::{
    json::{field, items, path},
    social::{SocialTrack, SocialTracks},
};

/// Maximum number of tracks, and of URLs per track. One to five, and three, are usual.
const TRACKS_MAX: usize = 100;
const ADDRESSES_MAX: usize = 4;
/// Maximum length of a URL in bytes.
const ADDRESS_MAX: usize = 8_192;

/// The tracks of a post's video, in TikTok's order, which has no meaning.
pub(super) fn read(video: &Value) -> SocialTracks {
    let info = field(video, "claInfo");
    let captions: Vec<_> = items(info, "captionInfos", TRACKS_MAX).filter_map(TikTokCaption::read).collect();
    let mut tracks: Vec<SocialTrack> = Vec::new();
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
            // A translation back into the spoken language is not the original.
            track.info.original =
                track.info.kind != TrackKind::Translated && spoken.matches(&track.info.language);
        }
    }
    SocialTracks(tracks)
}

/// Whether a post's video has captions, with or without a URL, in any format.
pub(super) fn are_listed(video: &Value) -> bool {
    let lists = [field(video, "subtitleInfos"), path(video, &["claInfo", "captionInfos"])];
    lists.into_iter().any(|list| !list.is_null() && list.as_array().is_none_or(|list| !list.is_empty()))
}

/// Adds a track, or its URLs to an equal track.
fn add(tracks: &mut Vec<SocialTrack>, info: TrackInfo, addresses: Vec<String>) {
    let index = match tracks.iter().position(|track| track.info.is_same(&info)) {
        Some(index) => index,
        None => {
            tracks.push(SocialTrack { info, addresses: Vec::new() });
            tracks.len() - 1
        }
    };
    let Some(track) = tracks.get_mut(index) else { return };
    for address in addresses {
        if track.addresses.len() < ADDRESSES_MAX && !track.addresses.contains(&address) {
            track.addresses.push(address);
        }
    }
}

/// An entry of the newer list.
struct TikTokCaption {
    code: String,
    /// The two-letter code of the language, if it has one.
    short: Option<String>,
    kind: TrackKind,
    addresses: Vec<String>,
}

impl TikTokCaption {
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

/// The origin of a track: speech recognition, machine translation, or the creator.
fn kind(source: &str) -> Option<TrackKind> {
    match source {
        "ASR" => Some(TrackKind::Generated),
        "MT" => Some(TrackKind::Translated),
        "LC" => Some(TrackKind::Human),
        _ => None,
    }
}

/// Parses a language that TikTok writes as `vie-VN`, with three letters and a meaningless region.
///
/// `short` is its two-letter code, if TikTok states it.
fn language(code: &str, short: Option<&str>) -> LanguageTag {
    let short = short.and_then(|short| LanguageTag::parse(short).ok());
    let Ok(long) = LanguageTag::parse(code).map(|tag| tag.without_likely_region()) else {
        return short.unwrap_or_else(LanguageTag::unknown);
    };
    match short {
        // Where a region remains, the short code has none; a script is kept.
        Some(short) if short.as_str() == long.primary() && long.matches(&short) => short,
        _ => long,
    }
}

/// The spoken language according to TikTok.
pub(super) fn original_language(info: &Value) -> Option<LanguageTag> {
    let original = |name| path(info, &["originalLanguageInfo", name]).as_str();
    let code = original("language").or_else(|| original("languageCode"))?;
    Some(language(code, original("languageCode")))
}

/// The spoken language, as far as the lists show it.
fn spoken_language(info: &Value, tracks: &[SocialTrack]) -> Option<LanguageTag> {
    if let Some(original) = original_language(info) {
        return Some(original);
    }
    let mut generated = tracks.iter().filter(|track| track.info.kind == TrackKind::Generated);
    let first = generated.next()?;
    generated.all(|track| track.info.language == first.info.language).then(|| first.info.language.clone())
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
    fn track_lists_are_merged() {
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
    fn creator_captions_are_human() {
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
    fn malformed_track_is_skipped_and_unknown_is_generated() {
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
    fn language_codes_are_normalized() {
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
