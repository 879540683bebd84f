//! The caption tracks that yt-dlp lists. No I/O.
//!
//! Its key of a track of YouTube is no language tag: it may contain an id (`de-CcQ45jRV4-E`) or a second language
//! (`fr-en`). The URLs of the forms name the language, the origin and the name.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use transcript_core::{
    archive::TrackSelector,
    transcript::{LanguageTag, TrackInfo, TrackKind, best_track},
    video::Platform,
};
use url::form_urlencoded;

/// Maximum number of tracks read. 40 are usual for a video with many.
const TRACKS_MAX: usize = 1_000;
/// Maximum length of a track key.
const KEY_MAX: usize = 40;
/// Maximum length of a track name in characters.
const NAME_MAX: usize = 200;

/// A track, with the key under which yt-dlp fetches it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct YtDlpTrack {
    pub(super) info: TrackInfo,
    pub(super) key: String,
    /// Whether it is in the list of automatic captions.
    pub(super) is_automatic: bool,
    /// Its forms. Under the same key yt-dlp may list forms of another track, and would fetch those.
    pub(super) forms: Vec<Value>,
}

/// The tracks in the lists of captions and of automatic captions, without translations.
pub(super) fn read(platform: Platform, captions: &Value, automatic: &Value) -> Vec<YtDlpTrack> {
    let mut tracks: Vec<YtDlpTrack> = Vec::new();
    for (list, is_automatic) in [(captions, false), (automatic, true)] {
        for (key, forms) in entries(list) {
            let Some(track) = original(platform, key, forms, is_automatic) else { continue };
            if tracks.len() < TRACKS_MAX && !tracks.iter().any(|other| other.info.is_same(&track.info)) {
                tracks.push(track);
            }
        }
    }
    tracks
}

/// YouTube's translation into a language, of the best of these tracks that it translates.
pub(super) fn translation(
    automatic: &Value,
    tracks: &[YtDlpTrack],
    language: &LanguageTag,
) -> Option<YtDlpTrack> {
    let mut found: BTreeMap<usize, YtDlpTrack> = BTreeMap::new();
    for (key, form) in entries(automatic).flat_map(|(key, forms)| forms.iter().map(move |form| (key, form))) {
        let Some((source, Some(to))) = youtube_track(key, form) else { continue };
        let source = tracks.iter().enumerate().find(|(_, track)| track.info.is_same(&source));
        let Some((index, source)) = source else { continue };
        // yt-dlp appends the key of a track that is not generated, in the URL too.
        let code = to.strip_suffix(source.key.as_str()).and_then(|to| to.strip_suffix('-')).unwrap_or(&to);
        if LanguageTag::parse(code).is_ok_and(|to| to == *language) {
            let translation = found.entry(index).or_insert_with(|| YtDlpTrack {
                info: TrackInfo::new(language.clone(), TrackKind::Translated),
                key: key.to_owned(),
                is_automatic: true,
                forms: Vec::new(),
            });
            translation.forms.extend(translated(form, code));
        }
    }
    let sources = found.keys().filter_map(|index| tracks.get(*index));
    let best = best_track(sources.map(|track| &track.info), &TrackSelector::Default)?;
    found.into_values().nth(best)
}

/// The entries of a list with keys that yt-dlp takes literally.
fn entries(list: &Value) -> impl Iterator<Item = (&str, &[Value])> {
    let entries = list.as_object().into_iter().flatten().filter(|(key, _)| is_key(key));
    entries.filter_map(|(key, forms)| Some((key.as_str(), forms.as_array()?.as_slice())))
}

/// Whether it is the key of a track, without characters that have a meaning in arguments and patterns.
fn is_key(key: &str) -> bool {
    key.len() <= KEY_MAX
        && key.bytes().next().is_some_and(|c| c.is_ascii_alphanumeric())
        && key.bytes().all(|c| c.is_ascii_alphanumeric() || b"_-".contains(&c))
        // `all` selects every track.
        && !matches!(key, "all" | "live_chat")
}

/// The track of a key that is no translation, if there is one.
fn original(platform: Platform, key: &str, forms: &[Value], is_automatic: bool) -> Option<YtDlpTrack> {
    let (info, forms) = match platform {
        Platform::YouTube => {
            let info_of = |form: &Value| {
                let (info, to) = youtube_track(key, form)?;
                // yt-dlp lists the others among the automatic ones, too: as their own translations.
                let is_listed = !is_automatic || info.kind == TrackKind::Generated;
                (to.is_none() && is_listed).then_some(info)
            };
            let info = forms.iter().find_map(info_of)?;
            let own = forms.iter().filter(|&form| info_of(form).as_ref() == Some(&info));
            let own: Vec<_> = own.cloned().collect();
            (info, own)
        }
        Platform::TikTok | Platform::Instagram | Platform::X => {
            let mut language = key_language(key)?;
            if platform == Platform::TikTok {
                // TikTok adds a region to every language, whatever the speaker's.
                language = language.without_likely_region();
            }
            // yt-dlp does not distinguish the creator's captions from generated ones there.
            (TrackInfo::new(language, TrackKind::Generated), forms.to_vec())
        }
    };
    Some(YtDlpTrack { info, key: key.to_owned(), is_automatic, forms })
}

/// The track of YouTube that a form has or translates, and the language it is translated into, as its URL names it.
fn youtube_track(key: &str, form: &Value) -> Option<(TrackInfo, Option<String>)> {
    let url = form.get("url").and_then(Value::as_str)?;
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let (mut code, mut name, mut kind, mut to) = (None, None, TrackKind::Human, None);
    for (parameter, value) in form_urlencoded::parse(query.as_bytes()) {
        match &*parameter {
            "lang" => code = Some(value),
            "name" => name = Some(value.trim().chars().take(NAME_MAX).collect::<String>()),
            "kind" if value == "asr" => kind = TrackKind::Generated,
            "tlang" => to = Some(value.into_owned()),
            _ => {}
        }
    }
    let language = match code {
        Some(code) => LanguageTag::parse(&code).unwrap_or_else(|_| LanguageTag::unknown()),
        None => key_language(key)?,
    };
    let name = name.filter(|name| !name.is_empty());
    Some((TrackInfo { name, ..TrackInfo::new(language, kind) }, to))
}

fn key_language(key: &str) -> Option<LanguageTag> {
    LanguageTag::parse(key.strip_suffix("-orig").unwrap_or(key)).ok()
}

/// The form with YouTube's own code of the language to translate into.
fn translated(form: &Value, code: &str) -> Option<Value> {
    let (address, query) = form.get("url").and_then(Value::as_str)?.split_once('?')?;
    let code: String = form_urlencoded::byte_serialize(code.as_bytes()).collect();
    let others = query.split('&').filter(|part| !part.starts_with("tlang=")).collect::<Vec<_>>().join("&");
    let mut form = form.as_object()?.clone();
    form.insert("url".to_owned(), json!(format!("{address}?{others}&tlang={code}")));
    Some(Value::Object(form))
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    const HOST: &str = "https://www.youtube.com/api/timedtext?v=x&";

    fn forms(queries: &[&str]) -> Value {
        let form = |ext: &str, query: &str| json!({"ext": ext, "url": format!("{HOST}{query}&fmt={ext}")});
        queries.iter().copied().flat_map(|query| [form("json3", query), form("vtt", query)]).collect()
    }

    fn form(query: &str) -> Value {
        forms(&[query])
    }

    /// Language, kind, name and key of each track.
    fn shown(tracks: &[YtDlpTrack]) -> Vec<(&str, &str, Option<&str>, &str)> {
        let shown = tracks.iter().map(|YtDlpTrack { info, key, .. }| {
            (info.language.as_str(), info.kind.as_str(), info.name.as_deref(), key.as_str())
        });
        shown.collect()
    }

    /// The end of the query of each form.
    fn queries(track: &YtDlpTrack) -> Vec<&str> {
        let urls = track.forms.iter().filter_map(|form| form["url"].as_str());
        urls.filter_map(|url| url.strip_prefix(HOST)).collect()
    }

    #[test]
    fn youtube_track_has_language_and_name_of_url() {
        let captions = json!({
            "de-CcQ45jRV4-E": form("name=deutsch&lang=de"), "en": form("lang=en"), "en-GB": form("name=&lang=en-GB"),
            "en-JkeT_87f4cc": form("name=Director%27s+cut&lang=en"), "live_chat": form(""), "pt-BR": form(""),
        });
        let automatic = json!({"en-orig": form("kind=asr&lang=en"), "en": form("kind=asr&lang=en")});
        let tracks = read(Platform::YouTube, &captions, &automatic);
        let expect = [
            ("de", "human", Some("deutsch"), "de-CcQ45jRV4-E"),
            ("en", "human", None, "en"),
            ("en-GB", "human", None, "en-GB"),
            ("en", "human", Some("Director's cut"), "en-JkeT_87f4cc"),
            // Without a language in the URL.
            ("pt-BR", "human", None, "pt-BR"),
            ("en", "generated", None, "en"),
        ];
        assert_eq!(shown(&tracks), expect);
    }

    #[test]
    fn youtube_translation_is_no_track() {
        let captions = json!({"en": form("lang=en"), "fr-AbC1dEf2_Gh": form("name=a&lang=fr")});
        let automatic = json!({
            "de": form("kind=asr&lang=de"), "es": form("kind=asr&lang=de&tlang=es"),
            "iw": form("kind=asr&lang=de&tlang=iw"),
            // A track into its own language.
            "en-en": form("lang=en"), "fr-fr-AbC1dEf2_Gh": form("name=a&lang=fr"),
            "es-en": form("lang=en&tlang=es-en"), "zh-Hans-en": form("lang=en&tlang=zh-Hans-en"),
            "es-fr-AbC1dEf2_Gh": form("name=a&lang=fr&tlang=es-fr-AbC1dEf2_Gh"),
            "pt-fr-AbC1dEf2_Gh": form("name=a&lang=fr&tlang=pt-fr-AbC1dEf2_Gh"),
        });
        let tracks = read(Platform::YouTube, &captions, &automatic);
        let expect = [
            ("en", "human", None, "en"),
            ("fr", "human", Some("a"), "fr-AbC1dEf2_Gh"),
            ("de", "generated", None, "de"),
        ];
        assert_eq!(shown(&tracks), expect);
        for (tag, expect) in [
            // English is the best source.
            ("es", Some(("es-en", "lang=en&fmt=json3&tlang=es"))),
            ("zh-Hans", Some(("zh-Hans-en", "lang=en&fmt=json3&tlang=zh-Hans"))),
            ("pt", Some(("pt-fr-AbC1dEf2_Gh", "name=a&lang=fr&fmt=json3&tlang=pt"))),
            // In YouTube's own code.
            ("he", Some(("iw", "kind=asr&lang=de&fmt=json3&tlang=iw"))),
            ("en", None),
            ("fr", None),
            ("pt-BR", None),
        ] {
            let found = translation(&automatic, &tracks, &LanguageTag::parse(tag).unwrap());
            let found = found.as_ref().map(|track| {
                assert_eq!(shown(std::slice::from_ref(track))[0].0, tag);
                assert_eq!((track.info.kind, track.forms.len()), (TrackKind::Translated, 2));
                (track.key.as_str(), queries(track)[0])
            });
            assert_eq!(found, expect, "{tag}");
        }
    }

    /// yt-dlp lists the translation of one generated track with the forms of the other.
    #[test]
    fn youtube_track_has_only_its_own_forms() {
        let (english, spanish) = ("kind=asr&lang=en", "kind=asr&lang=es");
        let automatic = json!({
            "en": forms(&[english, "kind=asr&lang=es&tlang=en"]),
            "es": forms(&["kind=asr&lang=en&tlang=es", spanish]),
            "de": forms(&["kind=asr&lang=en&tlang=de", "kind=asr&lang=es&tlang=de"]),
        });
        let tracks = read(Platform::YouTube, &json!({}), &automatic);
        assert_eq!(shown(&tracks), [("en", "generated", None, "en"), ("es", "generated", None, "es")]);
        for (track, query) in tracks.iter().zip([english, spanish]) {
            assert_eq!(queries(track), [format!("{query}&fmt=json3"), format!("{query}&fmt=vtt")]);
        }
        let german = translation(&automatic, &tracks, &LanguageTag::parse("de").unwrap()).unwrap();
        assert_eq!(queries(&german)[0], "kind=asr&lang=en&fmt=json3&tlang=de");
    }

    #[test]
    fn youtube_translations_leave_room_for_tracks() {
        let codes = |count: u8| {
            (0..count).map(|i| format!("q{}{}", char::from(b'a' + i / 26), char::from(b'a' + i % 26)))
        };
        let (mut captions, mut automatic) = (Map::new(), Map::new());
        for from in codes(40) {
            captions.insert(from.clone(), form(&format!("lang={from}")));
            for to in codes(160) {
                let query = if from == to {
                    format!("lang={from}")
                } else {
                    format!("lang={from}&tlang={to}-{from}")
                };
                automatic.insert(format!("{to}-{from}"), form(&query));
            }
        }
        automatic.insert("qtz".to_owned(), form("kind=asr&lang=qtz"));
        let tracks = read(Platform::YouTube, &Value::Object(captions), &Value::Object(automatic));
        assert_eq!(tracks.len(), 41);
        assert_eq!(shown(&tracks)[40], ("qtz", "generated", None, "qtz"));
    }

    #[test]
    fn track_key_with_pattern_characters_is_skipped() {
        let at = || json!([{"ext": "vtt", "url": "https://video.twimg.com/a.m3u8"}]);
        let keys = [
            "all",
            "-en",
            "en.*",
            "e|n",
            "en,de",
            "--exec",
            "",
            "live_chat",
            "_en",
            "e\nn",
            "not a language",
        ];
        let mut list: Map<String, Value> = keys.iter().map(|key| ((*key).to_owned(), at())).collect();
        list.insert("en".to_owned(), at());
        list.insert("xx".to_owned(), json!("no list"));
        let tracks = read(Platform::X, &Value::Object(list), &json!(7));
        assert_eq!(shown(&tracks), [("en", "generated", None, "en")]);
    }
}
