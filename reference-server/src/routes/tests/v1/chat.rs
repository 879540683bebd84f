use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use serde_json::{Value, json};
use tokio::{runtime::Handle, sync::Semaphore};
use transcript_core::{
    Error, Result, Timestamp,
    archive::{Archive, PutRequest},
    chat::{Chat, ChatModel, ChatOptions, DeltaSink, ModelReply, ModelRequest},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use super::errors::check;
use crate::testing::{ARCHIVED, DEFECT, NEW, SILENT, ServiceFixture, TestResponse, request, transcript};

async fn chat(service: &ServiceFixture, key: &str, body: &Value, headers: &[(&str, &str)]) -> TestResponse {
    let bearer = format!("Bearer {key}");
    let headers = [&[("authorization", bearer.as_str())], headers].concat();
    service.send(request("POST", "/api/v1/chat", &headers, &body.to_string())).await
}

fn question(video: &str) -> Value {
    json!({ "video_id": video, "message": "How quiet is it?" })
}

async fn left(service: &ServiceFixture, key: &str) -> u64 {
    service.get_with("/api/v1/me", key).await.json()["credits_remaining"].as_u64().unwrap()
}

#[tokio::test]
async fn chat_question_is_answered_from_track_in_its_language() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    let german = TrackInfo::new(LanguageTag::from_canonical("de"), TrackKind::Human);
    let segments = vec![Segment::new("Es ist hier sehr ruhig.", 3_000, 1_000)];
    let put = PutRequest {
        video: video.clone(),
        selectors: vec![german.selector()],
        known_tracks: vec![german.clone(), TrackInfo::new(LanguageTag::english(), TrackKind::Human)],
        transcript: Arc::new(Transcript { track: german, segments, ..transcript(&video) }),
        metadata: Default::default(),
        parser_version: 1,
        replace: false,
        now: Timestamp::from_millis(0),
    };
    service.archive.put(put).await.unwrap();
    for (message, expect) in [
        ("Wie ruhig ist es hier?", "“Es ist hier sehr ruhig.” [0:03]"),
        ("How quiet is it?", "“It is so quiet here.” [0:01]"),
    ] {
        let answer = chat(&service, &key, &json!({ "video_id": ARCHIVED, "message": message }), &[]).await;
        assert_eq!((answer.status.as_u16(), &answer.json()["response"]), (200, &json!(expect)), "{answer:?}");
    }
    assert_eq!(left(&service, &key).await, 198);
}

#[tokio::test]
async fn chat_answer_costs_one_credit_including_transcript() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let hit = chat(&service, &key, &question(ARCHIVED), &[]).await;
    assert_eq!(hit.status, 200, "{hit:?}");
    assert_eq!((hit.header("x-cache"), hit.header("x-credits-remaining")), (Some("HIT"), Some("199")));
    assert_eq!(hit.header("ratelimit"), Some("\"account\";r=9;t=60"));
    assert_eq!(hit.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(
        hit.json(),
        json!({
            "video_id": ARCHIVED,
            "response": "“It is so quiet here.” [0:01]",
            "credits": { "used": 1, "limit": 200, "remaining": 199 },
            "citations": [{
                "start": 1.5, "end": 4.75, "text": "It is so quiet here.",
                "url": format!("https://www.youtube.com/watch?v={ARCHIVED}&t=1s")
            }],
            "coverage": 1.0
        })
    );
    // The transcript that is fetched for the answer costs nothing more.
    let miss = chat(&service, &key, &question(NEW), &[]).await;
    assert_eq!((miss.status.as_u16(), miss.header("x-cache")), (200, Some("MISS")), "{miss:?}");
    assert_eq!(miss.json()["credits"], json!({ "used": 2, "limit": 200, "remaining": 198 }));
    assert_eq!(left(&service, &key).await, 198);
    // An answer without citations is charged, too.
    let other = json!({ "video_id": ARCHIVED, "message": "Xylophones?", "conversation_history": null });
    let other = chat(&service, &key, &other, &[]).await;
    assert_eq!(other.json()["response"], "The transcript does not cover this.", "{other:?}");
    assert_eq!((&other.json()["citations"], left(&service, &key).await), (&json!([]), 197));
}

#[tokio::test]
async fn chat_invalid_question_costs_nothing() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let history =
        |items: Value| json!({ "video_id": ARCHIVED, "message": "a", "conversation_history": items });
    let turn = |role: &str| json!({ "role": role, "content": "b" });
    let message = |text: &str| json!({ "video_id": ARCHIVED, "message": text });
    for (body, status, begins) in [
        (json!({}), 400, "video_id: "),
        (json!({ "video_id": ARCHIVED }), 400, "message: it is missing"),
        (json!({ "video_id": "short", "message": "a" }), 400, "video_id: "),
        (json!({ "video_id": 7, "message": "a" }), 400, "video_id: "),
        (message(""), 400, "message: it is empty"),
        (message(" \n\u{200b}\u{7}"), 400, "message: it is empty"),
        (message(&"ä".repeat(2_001)), 400, "message: it has more than 2000 characters"),
        (history(json!(vec![turn("user"); 21])), 400, "conversation_history: it has more than 20 items"),
        (history(json!([turn("system")])), 400, "conversation_history: the role"),
        (history(json!([turn("User")])), 400, "conversation_history: the role"),
        (history(json!([{ "role": "user" }])), 400, "conversation_history: the content"),
        (history(json!([{ "role": "user", "content": 7 }])), 400, "conversation_history: the content"),
        (
            history(json!([{ "role": "user", "content": "", "name": "x" }])),
            400,
            "conversation_history: an item",
        ),
        (history(json!(["b"])), 400, "conversation_history: each item"),
        (history(json!({ "role": "user" })), 400, "conversation_history: it must be an array"),
        (json!({ "video_id": ARCHIVED, "message": "a", "model": "b" }), 400, "body: there is no field"),
        (json!({ "video_id": ARCHIVED, "message": "a".repeat(300_000) }), 413, "The body is too large"),
        (question(SILENT), 404, "This video"),
        (question(DEFECT), 500, ""),
    ] {
        service.clock.advance(Duration::from_secs(60));
        check(&chat(&service, &key, &body, &[]).await, status, begins);
    }
    let whole = json!({ "video_id": ARCHIVED, "message": "ä".repeat(2_000),
        "conversation_history": vec![turn("assistant"); 20] });
    service.clock.advance(Duration::from_secs(60));
    assert_eq!(left(&service, &key).await, 200);
    assert_eq!(chat(&service, &key, &whole, &[]).await.status, 200);
    let bearer = format!("Bearer {key}");
    for method in ["GET", "HEAD", "PUT"] {
        let answer = service.send(request(method, "/api/v1/chat", &[("authorization", &bearer)], "")).await;
        assert_eq!((answer.status.as_u16(), answer.header("allow")), (405, Some("POST, OPTIONS")));
    }
    check(&service.send(request("POST", "/api/v1/chat", &[], "{}")).await, 401, "This needs an API key");
}

#[tokio::test]
async fn chat_repeated_question_replays_answer() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let name = [("idempotency-key", "once")];
    let first = chat(&service, &key, &question(NEW), &name).await;
    assert_eq!((first.status.as_u16(), first.header("idempotent-replayed")), (200, None), "{first:?}");
    let again = chat(&service, &key, &question(NEW), &name).await;
    assert_eq!((again.header("idempotent-replayed"), &again.text), (Some("true"), &first.text));
    check(&chat(&service, &key, &question(ARCHIVED), &name).await, 400, "Idempotency-Key: ");
    assert_eq!(left(&service, &key).await, 199);
}

#[tokio::test]
async fn chat_without_credits_returns_402() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for index in 0..200 {
        if index % 10 == 0 {
            service.clock.advance(Duration::from_secs(60));
        }
        assert_eq!(chat(&service, &key, &question(ARCHIVED), &[]).await.status, 200);
    }
    service.clock.advance(Duration::from_secs(60));
    for video in [ARCHIVED, NEW] {
        let spent = chat(&service, &key, &question(video), &[]).await;
        check(&spent, 402, "Not enough credits");
        assert_eq!(spent.header("x-credits-remaining"), Some("0"));
    }
    let events = chat(&service, &key, &question(ARCHIVED), &[("accept", "text/event-stream")]).await;
    check(&events, 402, "Not enough credits");
}

#[tokio::test]
async fn chat_events_carry_sentences_then_answer() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let headers = [("accept", "text/event-stream"), ("idempotency-key", "events")];
    let streamed = chat(&service, &key, &question(ARCHIVED), &headers).await;
    assert_eq!(
        (streamed.status.as_u16(), streamed.header("content-type")),
        (200, Some("text/event-stream")),
        "{streamed:?}"
    );
    assert_eq!(streamed.header("cache-control"), Some("no-store"));
    let events: Vec<(&str, Value)> = streamed
        .text
        .split_terminator("\n\n")
        .map(|event| {
            let (name, data) = event.split_once('\n').unwrap();
            let data = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
            (name.strip_prefix("event: ").unwrap(), data)
        })
        .collect();
    let [("sentence", sentence), ("answer", answer)] = events.as_slice() else { panic!("{events:?}") };
    assert_eq!(sentence["text"], answer["response"]);
    assert_eq!(sentence["citations"], answer["citations"]);
    assert_eq!((&answer["credits"]["remaining"], left(&service, &key).await), (&json!(199), 199));
    // A replay is the stored answer.
    let again = chat(&service, &key, &question(ARCHIVED), &headers).await;
    assert_eq!((again.header("idempotent-replayed"), &again.json()), (Some("true"), answer));
    // A failure before the first sentence has its own status.
    check(
        &chat(&service, &key, &question(SILENT), &[("accept", "text/event-stream")]).await,
        404,
        "This video",
    );
    assert_eq!(left(&service, &key).await, 199);
}

/// A model that waits for a permit.
#[derive(Debug)]
struct GatedModel {
    requested: Arc<Semaphore>,
    go_on: Arc<Semaphore>,
}

#[async_trait]
impl ChatModel for GatedModel {
    fn context_tokens(&self) -> u32 {
        8_000
    }

    async fn complete(&self, _: ModelRequest, _: Option<Arc<dyn DeltaSink>>) -> Result<ModelReply> {
        self.requested.add_permits(1);
        self.go_on.acquire().await.unwrap().forget();
        Ok(ModelReply { text: "It is so quiet here [s1].".to_owned(), usage: None })
    }
}

/// The client disconnects when its answer is ready and not yet sent: the answer is charged, so it must be stored.
#[tokio::test]
async fn chat_answer_of_leaving_client_is_stored() {
    let (requested, go_on) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let model = GatedModel { requested: Arc::clone(&requested), go_on: Arc::clone(&go_on) };
    let chat_with_model = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let service = ServiceFixture::with_chat(chat_with_model).await;
    let key = service.account("ann@example.org").await;
    let (body, name) = (question(ARCHIVED), [("idempotency-key", "once")]);
    let mut first = Box::pin(chat(&service, &key, &body, &name));
    tokio::select! {
        early = &mut first => panic!("{early:?}"),
        permit = requested.acquire() => permit.unwrap().forget(),
    }
    go_on.add_permits(1);
    // The first call is not polled again.
    let mut repeat = chat(&service, &key, &body, &name).await;
    for _ in 0..500 {
        if repeat.status != 409 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
        service.clock.advance(Duration::from_secs(60));
        repeat = chat(&service, &key, &body, &name).await;
    }
    drop(first);
    assert_eq!(
        (repeat.status.as_u16(), repeat.header("idempotent-replayed")),
        (200, Some("true")),
        "{repeat:?}"
    );
    assert_eq!(repeat.json()["response"], "It is so quiet here [0:01].", "{repeat:?}");
    assert_eq!((left(&service, &key).await, requested.available_permits()), (199, 0));
}

/// A model that returns an empty answer or is down.
#[derive(Debug)]
struct FailingModel {
    is_down: Arc<AtomicBool>,
}

#[async_trait]
impl ChatModel for FailingModel {
    fn context_tokens(&self) -> u32 {
        8_000
    }

    async fn complete(&self, _: ModelRequest, _: Option<Arc<dyn DeltaSink>>) -> Result<ModelReply> {
        match self.is_down.load(Ordering::Relaxed) {
            true => Err(Error::unavailable("the model is down")),
            false => Ok(ModelReply { text: String::new(), usage: None }),
        }
    }
}

/// A client can cause an unreadable answer: it is free, but the calls of the model are limited. An outage is not
/// counted.
#[tokio::test]
async fn chat_unreadable_answer_is_free_and_limited() {
    let is_down = Arc::new(AtomicBool::new(true));
    let model = FailingModel { is_down: Arc::clone(&is_down) };
    let failing = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let service = ServiceFixture::with_chat(failing).await;
    let key = service.account("ann@example.org").await;
    for _ in 0..61 {
        service.clock.advance(Duration::from_secs(15));
        check(&chat(&service, &key, &question(ARCHIVED), &[]).await, 500, "The chat model did not answer");
    }
    is_down.store(false, Ordering::Relaxed);
    let events = [("accept", "text/event-stream")];
    // The fetch before the answer is free too, and not counted on its own.
    check(&chat(&service, &key, &question(NEW), &[]).await, 500, "The chat model returned an unreadable");
    for number in 1..60 {
        service.clock.advance(Duration::from_secs(15));
        let headers = if number % 2 == 0 { &events[..] } else { &[] };
        let unreadable = chat(&service, &key, &question(ARCHIVED), headers).await;
        check(&unreadable, 500, "The chat model returned an unreadable");
    }
    service.clock.advance(Duration::from_secs(60));
    let limited = chat(&service, &key, &question(ARCHIVED), &[]).await;
    check(&limited, 429, "Too many new transcripts or questions of this account failed");
    assert_eq!(left(&service, &key).await, 200);
}

/// A model that refuses every question; counts its calls.
#[derive(Debug)]
struct RefusingModel(Arc<AtomicU32>);

#[async_trait]
impl ChatModel for RefusingModel {
    fn context_tokens(&self) -> u32 {
        8_000
    }

    async fn complete(&self, _: ModelRequest, _: Option<Arc<dyn DeltaSink>>) -> Result<ModelReply> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Err(Error::unsupported("the model refuses this"))
    }
}

/// A client can cause a refusal: it pays for the fetch before it, and its calls of the model are limited.
#[tokio::test]
async fn chat_refused_question_costs_its_fetch_and_is_limited() {
    const REFUSED: &str = "message: the chat model refused this question";
    let calls = Arc::new(AtomicU32::new(0));
    let model = RefusingModel(Arc::clone(&calls));
    let refusing = Chat::new(Handle::current(), Arc::new(model), ChatOptions::default());
    let service = ServiceFixture::with_chat(refusing).await;
    let key = service.account("ann@example.org").await;
    check(&chat(&service, &key, &question(NEW), &[]).await, 400, REFUSED);
    assert_eq!(left(&service, &key).await, 199);
    let delivered = service.get_with(&format!("/api/v1/transcript?video_id={NEW}"), &key).await;
    assert_eq!(delivered.status, 200, "{delivered:?}");
    assert_eq!(left(&service, &key).await, 199, "the delivery was prepaid");
    for _ in 1..60 {
        service.clock.advance(Duration::from_secs(15));
        check(&chat(&service, &key, &question(ARCHIVED), &[]).await, 400, REFUSED);
    }
    service.clock.advance(Duration::from_secs(60));
    let limited = chat(&service, &key, &question(ARCHIVED), &[("accept", "text/event-stream")]).await;
    check(&limited, 429, "Too many new transcripts or questions of this account failed");
    assert_eq!((calls.load(Ordering::Relaxed), left(&service, &key).await), (60, 199));
}
