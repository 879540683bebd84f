use std::{sync::Arc, time::Duration};

use proptest::prelude::*;
use serde_json::{Value, json};
use transcript_core::{
    Timestamp,
    archive::{Archive, PutRequest, StoredTranscript, content_digest},
    chat::{Chat, passages},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};
use verbatim::service::{Caller, LocalService};

use super::{
    McpTools,
    cursor::PassageCursor,
    page::{self, PassagePage},
    passages::PassageCache,
    tools,
    transcript::PLACES,
};
use crate::testing::{ARCHIVED, DEFECT, LONG, NEW, SILENT, ServiceFixture, long_segments, transcript};

fn stored(segments: Vec<Segment>) -> StoredTranscript {
    let transcript = Transcript {
        video: VideoId::new(Platform::YouTube, "dQw4w9WgXcQ").unwrap(),
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Human),
        source: "imported".to_owned(),
        segments,
    };
    StoredTranscript {
        content_sha256: content_digest(&transcript),
        transcript: Arc::new(transcript),
        revision: 1,
        parser_version: 1,
        stored_at: Timestamp::from_millis(0),
        details: Arc::default(),
    }
}

fn page(
    stored: &StoredTranscript,
    from: Option<PassageCursor>,
    max_chars: usize,
    timestamps: bool,
) -> Result<PassagePage, String> {
    page::page(stored, &passages(&stored.transcript.segments), from, max_chars, timestamps)
}

/// A text without its white space.
fn dense(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn pages_together_contain_every_word_once(
        spoken in proptest::collection::vec(("[ -~äß中文。]{0,60}|x{900}", 0..8_000_u64), 0..20),
        max_chars in 20_usize..400,
    ) {
        let mut at = 0;
        let segments: Vec<Segment> = spoken.into_iter().map(|(text, gap)| {
            at += gap;
            Segment::new(text, at, 500)
        }).collect();
        let given: String = segments.iter().map(|segment| segment.text.as_str()).collect();
        let stored = stored(segments);
        let (mut all, mut cursor, mut last_start) = (String::new(), None, 0);
        for _ in 0..10_000 {
            let page = page(&stored, cursor, max_chars, false).unwrap();
            prop_assert!(page.text.chars().count() <= max_chars);
            prop_assert!(page.start_ms >= last_start);
            last_start = page.start_ms;
            all.push_str(&page.text);
            cursor = page.next;
            if let Some(next) = cursor {
                prop_assert_eq!(PassageCursor::parse(&next.to_string()), Some(next));
                continue;
            }
            break;
        }
        prop_assert!(cursor.is_none());
        prop_assert_eq!(dense(&all), dense(&given));
    }

    #[test]
    fn page_arbitrary_cursor_is_rejected(text in "[0-9a-f]{8}-[0-9]{1,12}-[0-9]{1,12}|.{0,40}") {
        let stored = stored(vec![Segment::new("äöü one two", 0, 1_000)]);
        if let Some(cursor) = PassageCursor::parse(&text) {
            prop_assert!(page(&stored, Some(cursor), 500, true).is_err());
        }
    }
}

#[test]
fn cursor_of_another_transcript_is_rejected() {
    let one = stored((0..20).map(|n| Segment::new("It is so quiet here.", n * 10_000, 2_000)).collect());
    let other = stored(vec![Segment::new("Another one.", 0, 1_000)]);
    let first = page(&one, None, 60, true).unwrap();
    assert_eq!(first.text, "[0:00] It is so quiet here.\n[0:10] It is so quiet here.\n");
    assert_eq!((first.start_ms, first.end_ms), (0, 12_000));
    let next = page(&one, first.next, 60, true).unwrap();
    assert!(next.text.starts_with("[0:20] It"), "{next:?}");
    assert!(
        page(&other, first.next, 60, true)
            .unwrap_err()
            .starts_with("cursor: it belongs to another transcript")
    );
    // Offsets inside a character and behind the end.
    let umlauts = stored(vec![Segment::new("äöü", 0, 1_000)]);
    for (passage, offset) in [(0, 1), (0, 7), (1, 0), (usize::MAX, usize::MAX)] {
        assert!(page(&umlauts, Some(PassageCursor::new(&umlauts, passage, offset)), 500, true).is_err());
    }
    assert_eq!(page(&stored(Vec::new()), None, 500, true).unwrap().text, "");
}

#[test]
fn tools_all_arguments_are_described() {
    for scope in [tools::ToolScope::Service, tools::ToolScope::Archive] {
        let all = tools::all(scope);
        assert_eq!(all.len(), if scope == tools::ToolScope::Service { 8 } else { 5 });
        for tool in all.into_iter().chain([tools::search_archive()]) {
            let schema = tool.schema_as_json_value();
            assert_eq!(schema["additionalProperties"], false, "{}", tool.name);
            assert!(tool.description.is_some_and(|text| text.len() > 60), "{}", tool.name);
            for (name, property) in schema["properties"].as_object().unwrap() {
                assert!(property["description"].is_string(), "{} {name}", tool.name);
            }
        }
    }
}

#[tokio::test]
async fn passages_of_one_content_are_cut_once() {
    let chat = Chat::extractive(tokio::runtime::Handle::current());
    let fixture = ServiceFixture::start().await;
    let cache = PassageCache::new(fixture.transcripts.clone(), chat);
    let one = stored(vec![Segment::new("It is so quiet here.", 0, 1_000)]);
    let other = stored(vec![Segment::new("Another one.", 0, 1_000)]);
    let first = cache.get(&one).await.unwrap();
    // The same content again, read from the archive a second time.
    let again = cache.get(&stored(one.transcript.segments.clone())).await.unwrap();
    assert!(Arc::ptr_eq(&first, &again));
    assert_eq!(cache.get(&other).await.unwrap()[0].text, "Another one.");
    assert_eq!(cache.len(), 2);
    assert_eq!(first.to_vec(), passages(&one.transcript.segments));
}

fn tools_of(fixture: &ServiceFixture) -> McpTools {
    let app = &fixture.app;
    let service = LocalService::new(app.lookup.clone(), app.accounts.clone(), app.chat.clone());
    let passages = PassageCache::new(fixture.transcripts.clone(), app.chat.clone());
    McpTools::for_service(service, app.accounts.clone(), app.chat.clone(), passages)
}

/// Calls a tool as a caller without a key.
async fn call(tools: &McpTools, tool: &str, arguments: Value) -> Value {
    call_as(&Caller::default(), tools, tool, arguments).await
}

async fn call_as(caller: &Caller, tools: &McpTools, tool: &str, arguments: Value) -> Value {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let result = tools.call(tool, arguments, caller).await.unwrap();
    serde_json::to_value(result).unwrap()
}

#[tokio::test(start_paused = true)]
async fn call_with_long_transcript_and_no_place_is_refused_with_retry_time() {
    let fixture = ServiceFixture::start().await;
    let video = VideoId::new(Platform::YouTube, NEW).unwrap();
    fixture.keep(Transcript { segments: long_segments(), ..transcript(&video) }).await;
    let tools = tools_of(&fixture);
    let all = Arc::clone(&tools.places).acquire_many_owned(PLACES as u32).await.unwrap();
    let page = |video: &str| json!({ "video": video });
    let search = |video: &str| json!({ "video": video, "query": "quiet" });
    for (tool, arguments) in [(tools::GET_TRANSCRIPT, page(NEW)), (tools::SEARCH_TRANSCRIPT, search(NEW))] {
        let refused = call(&tools, tool, arguments).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert_eq!(refused["_meta"]["verbatim/code"], 503);
        assert_eq!(refused["_meta"]["verbatim/retry_after"], 5);
        let text = "The server is working on other long transcripts.\nRetry in 5 seconds.\n";
        assert_eq!(refused["content"][0]["text"], text);
    }
    // A short transcript needs no place.
    assert_eq!(call(&tools, tools::SEARCH_TRANSCRIPT, search(ARCHIVED)).await["isError"], false);
    drop(all);
    for (tool, arguments) in [(tools::GET_TRANSCRIPT, page(NEW)), (tools::SEARCH_TRANSCRIPT, search(NEW))] {
        assert_eq!(call(&tools, tool, arguments).await["isError"], false, "{tool}");
    }
    assert_eq!(tools.places.available_permits(), PLACES);
}

#[tokio::test(start_paused = true)]
async fn call_that_has_paid_waits_for_place() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    let caller = Caller::with_key(fixture.account("ann@example.org").await);
    let all = Arc::clone(&tools.places).acquire_many_owned(PLACES as u32).await.unwrap();
    let release = async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        drop(all);
    };
    let paid = call_as(&caller, &tools, tools::GET_TRANSCRIPT, json!({ "video": LONG }));
    let (paid, ()) = tokio::join!(paid, release);
    assert_eq!(paid["isError"], false, "{paid}");
    let text = paid["content"][0]["text"].as_str().unwrap();
    assert!(text.contains("Credits charged for this transcript: 1"), "{text}");
    assert_eq!(tools.places.available_permits(), PLACES);
}

#[tokio::test]
async fn transcript_in_any_language_is_paid_by_key() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    let welsh = |video: &str| json!({ "video": video, "lang": "cy" });
    let unkeyed = call(&tools, tools::GET_TRANSCRIPT, welsh(NEW)).await;
    assert_eq!(unkeyed["_meta"]["verbatim/failure_reason"], "needs_verification", "{unkeyed}");
    let keyed = Caller::with_key(fixture.key().await);
    let account = Caller::with_key(fixture.account("ann@example.org").await);
    for (caller, video, note) in [
        (&keyed, NEW, "charged to the API key: 1 of 25 are used"),
        (&account, "bbbbbbbbbbb", "Credits charged for this transcript: 1"),
    ] {
        for is_first in [true, false] {
            let got = call_as(caller, &tools, tools::GET_TRANSCRIPT, welsh(video)).await;
            assert_eq!(got["_meta"]["verbatim/language"], "cy", "{got}");
            let text = got["content"][0]["text"].as_str().unwrap();
            assert_eq!(text.contains(note), is_first, "{text}");
        }
    }
}

#[tokio::test]
async fn default_transcript_is_sold_beside_archived_language() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    let german = TrackInfo::new(LanguageTag::from_canonical("de"), TrackKind::Human);
    for video in [NEW, SILENT, DEFECT] {
        let video = VideoId::new(Platform::YouTube, video).unwrap();
        let request = PutRequest {
            video: video.clone(),
            selectors: vec![german.selector()],
            known_tracks: vec![german.clone(), TrackInfo::new(LanguageTag::english(), TrackKind::Human)],
            transcript: Arc::new(Transcript { track: german.clone(), ..transcript(&video) }),
            metadata: Default::default(),
            parser_version: 1,
            replace: false,
            now: Timestamp::from_millis(0),
        };
        fixture.archive.put(request).await.unwrap();
    }
    let account = Caller::with_key(fixture.account("ann@example.org").await);
    // The second call reads the archive; of the last videos the default cannot be bought.
    for (video, language, is_charged) in
        [(NEW, "en", true), (NEW, "en", false), (SILENT, "de", false), (DEFECT, "de", false)]
    {
        let got = call_as(&account, &tools, tools::GET_TRANSCRIPT, json!({ "video": video })).await;
        assert_eq!(got["_meta"]["verbatim/language"], language, "{got}");
        let text = got["content"][0]["text"].as_str().unwrap();
        assert_eq!(text.contains("Credits charged"), is_charged, "{text}");
    }
}
