//! Languages and views of transcripts in both APIs.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use serde_json::{Value, json};
use transcript_core::{
    archive::{Archive, PutRequest, TrackSelector},
    transcript::{Chapter, LanguageTag, Segment, TrackInfo, TrackKind, Transcript, VideoMetadata, Word},
    video::{Platform, VideoId},
};

use crate::testing::{ARCHIVED, NEW, ServiceFixture, TestResponse, transcript};

const TALK: &str = "ttttttttttt";

fn talk() -> Transcript {
    let word = |text: &str, start_ms| Word::new(text, start_ms, 400);
    let segments = vec![
        Segment { words: vec![word("so", 0), word("we", 400)], ..Segment::new("so we", 0, 1_000) },
        Segment::new("met <again>", 1_000, 1_000),
        Segment::new("later", 61_000, 1_000),
    ];
    Transcript { segments, ..transcript(&VideoId::new(Platform::YouTube, TALK).unwrap()) }
}

/// A service with a talk in English that has words and chapters, and in German.
async fn start() -> ServiceFixture {
    let service = ServiceFixture::start().await;
    let chapter = |title: &str, start_ms| Chapter { title: title.to_owned(), start_ms };
    let metadata = VideoMetadata {
        chapters: vec![chapter("Start", 0), chapter("End", 60_000)],
        description: Some("Two people\n\"meet\".".to_owned()),
        ..VideoMetadata::default()
    };
    service.keep_with(talk(), metadata).await;
    let german = TrackInfo::new(LanguageTag::from_canonical("de-AT"), TrackKind::Generated);
    keep_track(&service, TrackSelector::Language(german.language.clone()), german).await;
    service
}

/// Archives a further track of the talk.
async fn keep_track(service: &ServiceFixture, selector: TrackSelector, track: TrackInfo) {
    let request = PutRequest {
        video: talk().video,
        selectors: vec![selector],
        known_tracks: vec![track.clone()],
        transcript: Arc::new(Transcript { track, ..talk() }),
        metadata: VideoMetadata::default(),
        parser_version: 1,
        replace: false,
        now: transcript_core::Clock::now(&*service.clock),
    };
    service.archive.put(request).await.unwrap();
}

async fn get(service: &ServiceFixture, query: &str) -> TestResponse {
    service.get(&format!("/api/transcript?v={TALK}&{query}")).await
}

fn texts(segments: &Value) -> Vec<&str> {
    segments.as_array().unwrap().iter().map(|one| one["text"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn lookup_language_is_archived_one_or_none() {
    let service = start().await;
    for _ in 0..2 {
        let german = get(&service, "lang=DE").await.json();
        assert_eq!((&german["language"], &german["requestedLanguage"]), (&json!("de-AT"), &json!("de")));
        assert_eq!(german["languages"][1]["kind"], "auto", "{german}");
        let default = get(&service, "").await.json();
        assert_eq!((&default["language"], default.get("requestedLanguage")), (&json!("en"), None));
        assert_eq!(get(&service, "lang=en").await.json()["requestedLanguage"], "en");
        let french = get(&service, "lang=fr").await.json();
        assert_eq!((&french["available"], &french["failureReason"]), (&json!(false), &json!("no_captions")));
        assert_eq!(french["languages"].as_array().unwrap().len(), 2, "{french}");
        assert!(french["failureMessage"].as_str().unwrap().contains("en, de-AT"), "{french}");
    }
    assert_eq!(get(&service, "lang=fr&format=text").await.status, 404);
    let translated = get(&service, "lang=fr&translated=true").await.json();
    assert_eq!(translated["failureReason"], "needs_verification", "the platform may translate");
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn lookup_machine_translation_is_returned_on_request_only() {
    let service = start().await;
    let key = service.key().await;
    let get =
        async |query: &str| service.get_with(&format!("/api/transcript?v={NEW}&{query}"), &key).await.json();
    let used = async || service.get_with("/api/keys/me", &key).await.json()["used"].clone();
    let plain = get("lang=fr").await;
    assert_eq!((&plain["available"], &plain["failureReason"]), (&json!(false), &json!("no_captions")));
    // Also of a video that was never archived, and from the recorded absence.
    let languages = json!([{ "tag": "en", "name": "English", "kind": "manual", "original": false }]);
    assert_eq!((&plain["languages"], &get("lang=fr").await["languages"]), (&languages, &languages));
    assert_eq!(used().await, 0, "a missing language is free");
    let translated = get("lang=fr&translated=true").await;
    assert_eq!((&translated["available"], &translated["language"]), (&json!(true), &json!("fr")));
    // Beside the language that is known since the first request.
    let french = json!({ "tag": "fr", "name": "French", "kind": "translated", "original": false });
    assert_eq!(translated["languages"], json!([languages[0], french]), "{translated}");
    assert_eq!(used().await, 1);
    // The archived translation does not answer a request without consent.
    assert_eq!(get("lang=fr").await["available"], false);
    assert_eq!(get("lang=fr&translated=true").await["fromCache"], true);
    assert_eq!(used().await, 1);
}

#[tokio::test]
async fn description_is_in_json_on_request_only() {
    let service = start().await;
    let (key, description) = (service.account("ann@example.org").await, json!("Two people\n\"meet\"."));
    for (parameter, expect) in [("", &Value::Null), ("&description=true", &description)] {
        let lookup = get(&service, parameter.trim_start_matches('&')).await.json();
        assert_eq!(lookup["metadata"]["description"], *expect, "{lookup}");
        let path = format!("/api/v1/transcript?video_id={TALK}{parameter}");
        let bought = service.get_with(&path, &key).await.json();
        assert_eq!(bought["metadata"]["description"], *expect, "{bought}");
    }
    assert_eq!(get(&service, "format=md&description=true").await.status, 400);
}

#[tokio::test]
async fn lookup_words_are_in_json_and_webvtt() {
    let service = start().await;
    let plain = get(&service, "").await.json();
    assert!(plain["transcript"][0].get("words").is_none(), "{plain}");
    let words = get(&service, "words=true").await.json();
    assert_eq!(words["transcript"][0]["words"][1], json!({ "text": "we", "start": 0.4, "duration": 0.4 }));
    assert!(words["transcript"][1].get("words").is_none(), "{words}");
    let cues = get(&service, "words=true&format=vtt").await;
    assert!(cues.text.contains("<00:00:00.400>"), "{}", cues.text);
    assert!(!get(&service, "format=vtt").await.text.contains("<00:00:00.400>"));
}

#[tokio::test]
async fn lookup_chunks_and_pages_have_all_segments() {
    let service = start().await;
    let chunked = get(&service, "chunk=3600s").await.json();
    assert_eq!(texts(&chunked["chunks"]), ["so we met <again>", "later"], "a chunk ends with its chapter");
    let last = &chunked["chunks"][1];
    assert_eq!((&last["start"], &last["end"]), (&json!(61.0), &json!(62.0)));
    assert_eq!(last["url"], format!("https://www.youtube.com/watch?v={TALK}&t=61s"));
    assert_eq!(texts(&get(&service, "chunk=4t").await.json()["chunks"]).len(), 3);
    let (mut found, mut query) = (Vec::new(), "maxChars=16".to_owned());
    loop {
        let page = get(&service, &query).await.json();
        assert_eq!(page["totalChars"], 21, "{page}");
        found.extend(texts(&page["transcript"]).into_iter().map(str::to_owned));
        let Some(next) = page.get("nextCursor") else { break };
        query = format!("maxChars=5&cursor={}", next.as_str().unwrap());
    }
    assert_eq!(found, ["so we", "met <again>", "later"]);
    let mut next = String::new();
    for _ in 0..3 {
        let text = get(&service, "format=text&maxChars=16").await;
        assert_eq!(text.text.trim_end(), "so we met <again>");
        text.header("x-next-cursor").unwrap().clone_into(&mut next);
    }
    let rest = get(&service, &format!("format=text&cursor={next}")).await;
    assert_eq!((rest.text.trim_end(), rest.header("x-next-cursor")), ("later", None));
    // A cursor of another transcript.
    let other = service.get(&format!("/api/transcript?v={ARCHIVED}&cursor={next}")).await;
    assert_eq!(other.status, 400, "{other:?}");
    assert!(other.json()["detail"].as_str().unwrap().starts_with("cursor: "), "{other:?}");
}

#[tokio::test]
async fn lookup_cursor_fetches_nothing() {
    let service = start().await;
    let key = service.key().await;
    let path = format!("/api/transcript?v={NEW}&cursor=00000000-1");
    assert_eq!(service.get_with(&path, &key).await.json()["available"], false);
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn lookup_front_matter_precedes_markdown() {
    let service = start().await;
    let plain = get(&service, "format=md").await.text;
    let with = get(&service, "format=md&frontmatter=true").await.text;
    assert!(with.starts_with("---\ntitle: \"A talk\"\nauthor: \"Ann\"\n"), "{with}");
    assert!(with.contains("  - { start: \"1:00\", title: \"End\" }\n---\n\n"), "{with}");
    assert!(with.ends_with(&plain), "{with}");
}

#[tokio::test]
async fn lookup_front_matter_precedes_text_and_is_comment_of_webvtt() {
    let service = start().await;
    let plain = get(&service, "format=text").await.text;
    let with = get(&service, "format=text&frontmatter=true").await.text;
    let head = with.strip_suffix(&plain).unwrap();
    assert!(
        head.starts_with("title: A talk\nauthor: Ann\nurl: https://") && head.ends_with("\n\n"),
        "{with}"
    );
    let plain = get(&service, "format=vtt").await.text;
    let with = get(&service, "format=vtt&frontmatter=true").await.text;
    assert!(with.starts_with("WEBVTT\n\nNOTE\ntitle: A talk\nauthor: Ann\n"), "{with}");
    assert!(with.ends_with(plain.strip_prefix("WEBVTT\n").unwrap()), "{with}");
    let parsed = |text: &str| transcript_core::captions::parse(text.as_bytes());
    assert_eq!(format!("{:?}", parsed(&with)), format!("{:?}", parsed(&plain)));
    assert_eq!(get(&service, "format=srt&frontmatter=true").await.status, 400);
}

#[tokio::test]
async fn v1_views_are_those_of_lookup_and_bad_cursor_is_free() {
    let service = start().await;
    let key = service.account("ann@example.org").await;
    let get = async |query: &str| service.get_with(&format!("/api/v1/transcript?{query}"), &key).await;
    let left =
        async || service.get_with("/api/v1/me", &key).await.json()["credits_remaining"].as_u64().unwrap();
    let all = left().await;
    for _ in 0..2 {
        let view = get(&format!("video_id={TALK}&words=true&chunk=60s&max_chars=16")).await.json();
        assert_eq!(texts(&view["segments"]), ["so we", "met <again>"]);
        assert_eq!(view["segments"][0]["words"][0]["text"], "so", "{view}");
        assert_eq!((&view["total_chars"], texts(&view["chunks"]).len()), (&json!(21), 1));
        assert!(view["next_cursor"].is_string(), "{view}");
        let plain = get(&format!("video_id={TALK}")).await.json();
        assert_eq!(texts(&plain["segments"]).len(), 3);
    }
    assert_eq!(left().await, all - 4);
    service.clock.advance(Duration::from_secs(60));
    for query in [
        format!("video_id={TALK}&cursor=00000000-1"),
        format!("video_id={NEW}&cursor=00000000-1"),
        format!("video_id={TALK}&words=maybe"),
        format!("video_id={TALK}&maxChars=5"),
        format!("video_id={TALK}&chunk=5"),
    ] {
        let refused = get(&query).await;
        assert_eq!(refused.status, 400, "{query}: {refused:?}");
    }
    service.clock.advance(Duration::from_secs(60));
    for _ in 0..2 {
        let missing = get(&format!("video_id={NEW}&lang=fr")).await;
        let english = json!([{ "tag": "en", "name": "English", "kind": "manual", "original": false }]);
        assert_eq!((missing.status.as_u16(), &missing.json()["languages"]), (404, &english), "{missing:?}");
    }
    assert_eq!(left().await, all - 4);
    let translated = get(&format!("video_id={NEW}&lang=fr&translated=true")).await.json();
    assert_eq!((&translated["language"], &translated["is_generated"]), (&json!("fr"), &json!(true)));
    assert_eq!(left().await, all - 5);
}

#[tokio::test]
async fn page_language_is_selected_and_linked() {
    let service = start().await;
    let page = async |query: &str| service.get(&format!("/watch/video_site/{TALK}{query}")).await.text;
    let default = page("").await;
    assert!(default.contains("hreflang=\"de-AT\"") && default.contains("Captions written by people"));
    assert!(default.contains(">Start</h2>"), "{default}");
    for _ in 0..2 {
        let german = page("?lang=de").await;
        assert!(
            german.contains("Made by speech recognition") && german.contains("format=srt&amp;lang=de"),
            "{german}"
        );
        // Other sites link to the page with this text.
        for element in ["<link rel=\"canonical\" href", "<meta property=\"og:url\" content"] {
            let address = format!("{element}=\"https://v.example/watch/video_site/{TALK}");
            assert!(german.contains(&format!("{address}?lang=de\">")), "{german}");
            for english in [&default, &page("?lang=en").await] {
                assert!(english.contains(&format!("{address}\">")), "{english}");
            }
        }
        let french = page("?lang=fr").await;
        assert!(french.contains("no transcript in French.") && french.contains(">A talk</h1>"), "{french}");
        assert_eq!(page("?lang=%3Cscript%3E").await, default);
    }
    let new = service.get(&format!("/watch/video_site/{NEW}?lang=fr&src=mcp_other")).await.text;
    assert!(new.contains("not transcribed in French yet"), "{new}");
}

#[tokio::test]
async fn page_machine_translation_is_shown_where_it_is_named() {
    let service = start().await;
    let french = TrackInfo::new(LanguageTag::from_canonical("fr"), TrackKind::Translated);
    let selector = TrackSelector::in_language(french.language.clone(), true);
    keep_track(&service, selector, french).await;
    let get = async |query: &str| service.get(&format!("/watch/video_site/{TALK}{query}")).await;
    for _ in 0..2 {
        assert!(!get("?lang=fr").await.text.contains("met &lt;again&gt;"));
        let translated = get("?lang=fr&translated=true").await.text;
        for part in [
            "met &lt;again&gt;",
            "Translated automatically",
            "format=srt&amp;lang=fr&amp;translated=true",
            "/docx?lang=fr&amp;translated=true",
            "/ask?lang=fr&amp;translated=true",
            "?hl=de&amp;lang=fr&amp;translated=true",
            "hreflang=\"en\">English",
        ] {
            assert!(translated.contains(part), "{part}: {translated}");
        }
    }
    let moment = get("?lang=fr&translated=true&t=0").await;
    assert_eq!(moment.header("location"), Some("./ttttttttttt?lang=fr&translated=true#t0"));
    assert_eq!(get("/docx?lang=fr&translated=true").await.status, 200);
    // Without a language there is nothing to translate into.
    assert_eq!(get("?translated=true").await.text, get("").await.text);
    // One that is not archived is as the same address without it.
    let missing = get("?lang=es&translated=true").await.text;
    for part in [
        "Not in this language",
        "This video has no transcript in Spanish.",
        "<title>A talk – no transcript</title>",
        "<h1 dir=\"auto\">A talk</h1>",
        "<a href=\"?lang=en\"",
        "<a href=\"?lang=de-AT\"",
    ] {
        assert!(missing.contains(part), "{part}: {missing}");
    }
    assert!(!missing.contains("data-transcribe") && !missing.contains("API key"), "{missing}");
    let opened = get("?lang=es&translated=true&src=mcp_other&t=61&q=so%20we").await.text;
    let link = "<a href=\"?lang=de-AT&amp;src=mcp_other&amp;t=61&amp;q=so%20we\"";
    assert!(opened.contains(link), "{opened}");
    let new = service.get(&format!("/watch/video_site/{NEW}?lang=fr&translated=true")).await.text;
    assert!(new.contains("not transcribed in French yet"), "{new}");
    // The button fetches captions.
    assert!(new.contains("/transcribe?lang=fr\""), "{new}");
}
