//! Tests of the choice of tracks.

use serde_json::json;

use transcript_core::video::Platform;

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
    for captions in [json!(null), json!([]), json!({"playerCaptionsTracklistRenderer": {"captionTracks": 7}})]
    {
        assert!(YouTubeTrackList::read(&captions).is_empty(), "{captions}");
    }
}

#[test]
fn track_list_malformed_entry_leaves_default_open() {
    let malformed = json!({"url": "u", "languageCode": "en"});
    let more = json!({"translationLanguages": [{"languageCode": "fr"}]});
    for (entries, selector, expect) in [
        (json!([malformed, track("de", "", "u")]), TrackSelector::Default, None),
        (json!([malformed, track("de", "", "u")]), selector("en"), None),
        (json!([malformed, track("de", "", "u")]), translation("fr"), None),
        (json!([malformed, track("de", "", "u")]), selector("de"), Some("de")),
        // The language of the only generated captions is the spoken one.
        (json!([malformed, track("de", "asr", "u")]), TrackSelector::Default, Some("de")),
        (json!([track("de", "", "u")]), TrackSelector::Default, Some("de")),
        (json!([track("de", "", "u")]), translation("fr"), Some("fr")),
    ] {
        let list = list(entries.clone(), more.clone());
        let choice = list.choose(&selector);
        assert_eq!(
            choice.as_ref().map(|choice| choice.info.language.as_str()),
            expect,
            "{entries} {selector:?}"
        );
        assert_eq!(list.no_choice(&selector) == unknown_format(), list.is_partial, "{entries}");
    }
}

#[test]
fn track_url_of_other_video_is_detected() {
    let video = VideoId::new(Platform::YouTube, "vb-player-0").unwrap();
    for (address, expect) in [
        ("https://x/t?v=vb-player-0&lang=en", false),
        // Of the last character only four bits count.
        ("https://x/t?v=vb-player-1", false),
        ("/t?lang=en", false),
        ("https://x/t", false),
        ("https://x/t?v=vb-others-0&lang=en", true),
        ("/t?lang=en&v=", true),
    ] {
        assert_eq!(is_of_other_video(address, &video), expect, "{address}");
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
fn speech_of_machine_dub_is_machine_translation() {
    let list = list(
        json!([
            track("ja", "asr", "ja"),
            track("en", "asr", "dub"),
            track("es", "asr", "human-dub"),
            track("en-GB", "", "written")
        ]),
        json!({
            "audioTracks": [{"audioTrackId": "ja.4"}, {"audioTrackId": "en-US.10"}, {"audioTrackId": "es-US.3"}],
            "translationLanguages": [{"languageCode": "fr"}],
        }),
    );
    let kinds: Vec<_> = list.infos().into_iter().map(|info| info.kind).collect();
    assert_eq!(kinds, [TrackKind::Generated, TrackKind::Translated, TrackKind::Generated, TrackKind::Human]);
    let chosen = |selector: &TrackSelector| list.choose(selector).map(|choice| choice.address);
    assert_eq!(chosen(&selector("en")).as_deref(), Some("written"));
    assert_eq!(chosen(&translation("en")).as_deref(), Some("written"));
    let chosen_of_speech = |selector: &TrackSelector| {
        let speech = YouTubeTrackList { tracks: list.tracks[..2].to_vec(), ..list.clone() };
        speech.choose(selector).map(|choice| (choice.address, choice.info.kind, choice.translate_to))
    };
    let original = ("ja".to_owned(), TrackKind::Generated, None);
    assert_eq!(chosen_of_speech(&TrackSelector::Default), Some(original));
    assert_eq!(chosen_of_speech(&selector("en")), None);
    let dub = ("dub".to_owned(), TrackKind::Translated, None);
    assert_eq!(chosen_of_speech(&translation("en")), Some(dub));
    let french = ("ja".to_owned(), TrackKind::Translated, Some("fr".to_owned()));
    assert_eq!(chosen_of_speech(&translation("fr")), Some(french), "of what was spoken, not of the dub");
    let YouTubeFailure::NoLanguage(others) = list.no_choice(&selector("de")) else {
        panic!("other languages")
    };
    assert!(others.iter().all(|info| info.kind != TrackKind::Translated));
    let dub = YouTubeTrackList { tracks: list.tracks[1..2].to_vec(), ..list.clone() };
    assert_eq!(dub.no_choice(&TrackSelector::Default), YouTubeFailure::NoCaptions);
}

#[test]
fn track_of_dub_has_word_for_it_in_name() {
    for (name, is_original) in [
        ("Dubois", true),
        ("Dublin Castle", true),
        ("dubstep", true),
        ("Dubbed version", false),
        ("English (dub)", false),
        ("Fandubs", false),
        ("Dublado", false),
        ("CC-dubtitles", false),
    ] {
        let mut human = track("fr", "", "human");
        human["trackName"] = json!(name);
        let list = list(json!([human, track("fr", "asr", "speech")]), json!({}));
        let original: Vec<_> = list.tracks.iter().map(|track| track.info.original).collect();
        assert_eq!(original, [is_original, true], "{name}");
        let default = list.choose(&TrackSelector::Default).unwrap();
        assert_eq!(default.address, if is_original { "human" } else { "speech" }, "{name}");
    }
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
    let translated = |code: &str| Some(("speech".to_owned(), TrackKind::Translated, Some(code.to_owned())));
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
    let list =
        list(json!([track("en", "", "https://x/?exp=xpe"), track("en", "asr", "https://x/?")]), json!({}));
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
