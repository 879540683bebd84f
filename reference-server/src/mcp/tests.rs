use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::{runtime::Handle, time::timeout};
use transcript_core::{
    Timestamp,
    archive::{Archive, PutRequest, StoredTranscript, content_digest},
    chat::{Chat, passages},
    engine::Transcripts,
    supplier::{
        ListOutcome, ListPosition, ListedVideo, SupplyError, SupplyReason, VideoListPage, VideoLister,
    },
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId, VideoList},
};
use verbatim::service::{Caller, LocalService};

use super::{
    McpTools,
    arguments::{SearchArchiveArgs, read},
    cursor::PassageCursor,
    jobs::LIST_PLACES,
    page::{self, PassagePage},
    passages::PassageCache,
    tools,
    transcript::PLACES,
};
use crate::testing::{
    ARCHIVED, DEFECT, LONG, NEW, SILENT, SequentialRandom, ServiceFixture, long_segments, transcript,
};

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
            // What a server may charge for is not read-only.
            let may_cost = scope == tools::ToolScope::Service
                && [tools::GET_TRANSCRIPT, tools::SEARCH_TRANSCRIPT, tools::ASK_VIDEO, tools::START_JOB]
                    .contains(&&*tool.name);
            let hints = serde_json::to_value(&tool.annotations).unwrap();
            assert_eq!(hints["readOnlyHint"], !may_cost, "{}", tool.name);
            assert!(!may_cost || hints["destructiveHint"] == false, "{}", tool.name);
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
    let cache = PassageCache::new(Chat::extractive(Handle::current()));
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

pub(super) fn tools_of(fixture: &ServiceFixture) -> McpTools {
    let app = &fixture.app;
    let service = LocalService::new(app.lookup.clone(), app.accounts.clone(), app.chat.clone());
    let passages = PassageCache::new(app.chat.clone());
    McpTools::for_service(service, app.accounts.clone(), app.chat.clone(), passages)
}

/// Calls a tool as a caller without a key.
async fn call(tools: &McpTools, tool: &str, arguments: Value) -> Value {
    call_as(&Caller::default(), tools, tool, arguments).await
}

pub(super) async fn call_as(caller: &Caller, tools: &McpTools, tool: &str, arguments: Value) -> Value {
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let result = tools.call(tool, arguments, caller).await.unwrap();
    serde_json::to_value(result).unwrap()
}

#[tokio::test]
async fn search_result_names_query_as_written() {
    let fixture = ServiceFixture::start().await;
    for (query, expect) in [
        ("ไอซ์แลนด์\u{202E} \"wicked sum\"", "No passage matches “ไอซ์แลนด์ \"wicked sum\"”.\n"),
        ("quiets", "No passage has all words of “quiets” in these forms. 1 of 1 that have some"),
    ] {
        let arguments = json!({ "video": ARCHIVED, "query": query });
        let found = call(&tools_of(&fixture), tools::SEARCH_TRANSCRIPT, arguments).await;
        assert!(found["content"][0]["text"].as_str().unwrap().contains(expect), "{found}");
    }
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

/// Lister whose pages have one video each. After `pages` of them it fails, or without an error never returns.
#[derive(Debug)]
struct FakeLister {
    pages: usize,
    error: Option<SupplyError>,
}

#[async_trait]
impl VideoLister for FakeLister {
    async fn list_page(
        &self,
        _: &VideoList,
        position: Option<&ListPosition>,
        _: Timestamp,
    ) -> Result<ListOutcome, SupplyError> {
        let number: usize = position.map_or(0, |position| position.as_str().parse().unwrap());
        if number == self.pages {
            match &self.error {
                Some(error) => return Err(error.clone()),
                None => std::future::pending::<()>().await,
            }
        }
        let video = ListedVideo {
            video: VideoId::new(Platform::YouTube, &format!("list-{number:0>6}")).unwrap(),
            title: None,
            author: None,
            duration_s: None,
            published: None,
            live: None,
            members_only: false,
            is_unavailable: false,
        };
        let next = ListPosition::new((number + 1).to_string());
        Ok(ListOutcome::Page(VideoListPage { videos: vec![video], next, ..VideoListPage::default() }))
    }
}

/// Tools of an archive with this lister.
fn tools_with_lister(fixture: &ServiceFixture, lister: FakeLister) -> McpTools {
    let (archive, clock) = (Arc::clone(&fixture.archive) as _, Arc::clone(&fixture.clock) as _);
    let random = Arc::new(SequentialRandom::default());
    let engine = Transcripts::builder(archive, clock, random, Handle::current());
    let mut tools = tools_of(fixture);
    tools.jobs.transcripts = engine.video_lister(Platform::YouTube, Arc::new(lister)).build();
    tools.jobs.accounts = None;
    tools
}

#[tokio::test(start_paused = true)]
async fn list_videos_returns_what_was_read_before_failure() {
    let fixture = ServiceFixture::start().await;
    let wait = Duration::from_secs(30);
    let throttled = SupplyError::new(SupplyReason::Throttled(Some(wait)), "It is throttled.");
    // A repeated call for a long list would read the same pages. Many clients wait for a minute.
    for (error, results) in [
        (Some(throttled), [(3, Some(30), "It is throttled."), (0, Some(30), "It is throttled.")]),
        (
            None,
            [
                (3, None, "The list takes too long. Name a smaller limit, or use `verbatim get`."),
                (0, None, "The list takes too long. Name a smaller limit, or use `verbatim get`."),
            ],
        ),
    ] {
        for (pages, seconds, message) in results {
            let tools = tools_with_lister(&fixture, FakeLister { pages, error: error.clone() });
            let arguments = json!({ "list": "", "search": "tide mills", "limit": 500 });
            let called = call(&tools, tools::LIST_VIDEOS, arguments);
            let got = timeout(Duration::from_secs(55), called).await.unwrap();
            let meta = &got["_meta"];
            let text = got["content"][0]["text"].as_str().unwrap();
            assert_eq!(meta["verbatim/retry_after"], json!(seconds), "{got}");
            if pages == 0 {
                assert_eq!((&got["isError"], &meta["verbatim/code"]), (&json!(true), &json!(503)), "{got}");
                assert!(text.starts_with(message), "{text}");
            } else {
                assert_eq!(
                    (&got["isError"], &meta["verbatim/has_more"]),
                    (&json!(false), &json!(true)),
                    "{got}"
                );
                assert_eq!(meta["verbatim/videos"].as_array().map(Vec::len), Some(3), "{got}");
                assert!(text.contains(&format!("They were not read: {message}")), "{text}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn list_page_keeps_place_after_its_caller_left() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_with_lister(&fixture, FakeLister { pages: 1, error: None });
    let list = |limit: u32| json!({ "search": "tide mills", "limit": limit });
    assert_eq!(call(&tools, tools::LIST_VIDEOS, list(1)).await["isError"], false);
    assert_eq!(tools.jobs.places.available_permits(), LIST_PLACES);
    for left in (0..LIST_PLACES).rev() {
        let reading = call(&tools, tools::LIST_VIDEOS, list(2));
        assert!(timeout(Duration::from_secs(1), reading).await.is_err());
        assert_eq!(tools.jobs.places.available_permits(), left);
    }
    // The next call waits for a place: a repeated one may get it.
    let refused = call(&tools, tools::LIST_VIDEOS, list(1)).await;
    assert_eq!(refused["_meta"]["verbatim/code"], 503, "{refused}");
    assert_eq!(refused["_meta"]["verbatim/retry_after"], 5, "{refused}");
}

#[tokio::test]
async fn list_pages_of_account_are_limited() {
    let fixture = ServiceFixture::start().await;
    let mut tools = tools_with_lister(&fixture, FakeLister { pages: 1_000, error: None });
    tools.jobs.accounts = tools_of(&fixture).jobs.accounts;
    let list = |limit: u32| json!({ "search": "tide mills", "limit": limit });
    let ann = Caller::with_key(fixture.account("ann@example.org").await);
    let bob = Caller::with_key(fixture.account("bob@example.org").await);
    for minute in 0..11 {
        let got = call_as(&ann, &tools, tools::LIST_VIDEOS, list(500)).await;
        let text = got["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("This account has read too many pages of lists"), "{minute}: {text}");
        if minute < 10 {
            assert_eq!(got["_meta"]["verbatim/videos"].as_array().map(Vec::len), Some(30), "{minute}: {got}");
            assert_eq!(got["_meta"]["verbatim/retry_after"], if minute < 9 { 60 } else { 3_060 }, "{got}");
        } else {
            assert_eq!(got["_meta"]["verbatim/code"], 429, "{got}");
        }
        fixture.clock.advance(Duration::from_secs(60));
    }
    let other = call_as(&bob, &tools, tools::LIST_VIDEOS, list(5)).await;
    assert_eq!(other["_meta"]["verbatim/videos"].as_array().map(Vec::len), Some(5), "{other}");
}

#[tokio::test]
async fn invalid_arguments_are_named_as_in_schema() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    let caller = Caller::with_key(fixture.account("ann@example.org").await);
    let key = json!({ "video": ARCHIVED, "question": "Is it quiet?", "idempotency_key": "two words" });
    for (tool, arguments, name) in [
        (tools::ASK_VIDEO, json!({ "video": ARCHIVED, "question": " " }), "question"),
        (tools::ASK_VIDEO, json!({ "video": "https://x.com/a/status/1", "question": "Why?" }), "video"),
        (tools::ASK_VIDEO, key, "idempotency_key"),
        (tools::START_JOB, json!({}), "videos"),
        (tools::START_JOB, json!({ "videos": [ARCHIVED], "channel": "@a" }), "videos"),
        (tools::START_JOB, json!({ "videos": vec!["a"; 20_000] }), "videos"),
        (tools::START_JOB, json!({ "search": "tide mills" }), "limit"),
        (tools::LIST_VIDEOS, json!({}), "list"),
        (tools::JOB_RESULTS, json!({ "job": "job_a", "limit": 50, "max_chars": 2_001 }), "max_chars"),
    ] {
        let refused = call_as(&caller, &tools, tool, arguments).await;
        assert_eq!(refused["_meta"]["verbatim/code"], 400, "{tool}: {refused}");
        let text = refused["content"][0]["text"].as_str().unwrap();
        assert!(text.starts_with(&format!("{name}: ")), "{tool}: {text}");
        let tool = tools.all.iter().find(|other| other.name == tool).unwrap();
        assert!(tool.schema_as_json_value()["properties"][name].is_object(), "{name}");
    }
}

#[tokio::test]
async fn empty_optional_arguments_are_absent() {
    let arguments = json!({ "query": "quiet", "lang": " ", "cursor": "" });
    let args = read::<SearchArchiveArgs>(arguments.as_object().cloned().unwrap()).unwrap();
    assert_eq!((args.lang, args.cursor), (None, None));
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    let caller = Caller::with_key(fixture.account("ann@example.org").await);
    let job = json!({ "videos": [ARCHIVED], "playlist": "", "channel": "", "search": "", "since": "", "lang": "",
        "idempotency_key": "" });
    let transcript = json!({ "video": ARCHIVED, "lang": "", "cursor": " " });
    for (tool, arguments) in [(tools::START_JOB, job), (tools::GET_TRANSCRIPT, transcript)] {
        let got = call_as(&caller, &tools, tool, arguments).await;
        assert_eq!(got["isError"], false, "{got}");
    }
}

#[tokio::test]
async fn job_with_idempotency_argument_is_started_once() {
    let fixture = ServiceFixture::start().await;
    let tools = tools_of(&fixture);
    // A header of the client's configuration is the same for all calls.
    let caller = Caller {
        idempotency_key: Some("fixed".to_owned()),
        ..Caller::with_key(fixture.account("ann@example.org").await)
    };
    let mut jobs = Vec::new();
    for (video, key) in [(ARCHIVED, "one"), (ARCHIVED, "one"), (NEW, "two")] {
        let arguments = json!({ "videos": [video], "idempotency_key": key });
        let started = call_as(&caller, &tools, tools::START_JOB, arguments).await;
        assert_eq!(started["isError"], false, "{started}");
        jobs.push(started["_meta"]["verbatim/job"].clone());
    }
    assert!(jobs[0].is_string() && jobs[0] == jobs[1] && jobs[1] != jobs[2], "{jobs:?}");
}
