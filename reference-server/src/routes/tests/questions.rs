//! Tests of questions of visitors: by the script with a challenge, and by the form without.

use std::{
    sync::{Arc, atomic::Ordering::Relaxed},
    time::Duration,
};

use async_trait::async_trait;
use http_body_util::BodyExt;
use serde_json::json;
use tokio::runtime::Handle;
use transcript_core::{
    Error, Result,
    chat::{Chat, ChatModel, ChatOptions, DeltaSink, ModelReply, ModelRequest},
    lookup::LookupOptions,
    transcript::{Segment, Transcript},
    video::{Platform, VideoId},
};

use super::visitor::{cookie, solved};
use crate::testing::{ARCHIVED, LONG, NEW, ServiceFixture, TestResponse, request, transcript};

const JSON: (&str, &str) = ("content-type", "application/json");
const OWN: (&str, &str) = ("sec-fetch-site", "same-origin");
/// The clock of the service starts at midnight UTC.
const HOUR: Duration = Duration::from_secs(3_600);
/// Seconds from an hour after midnight until the next one.
const UNTIL_MIDNIGHT: &str = "82800";

/// Sends a question as the script does.
async fn send_question(
    service: &ServiceFixture,
    question: &str,
    cookie: Option<&str>,
    peer: &str,
) -> TestResponse {
    let altcha = solved(service, ARCHIVED).await;
    send_with(service, question, &altcha, cookie, peer).await
}

async fn send_with(
    service: &ServiceFixture,
    question: &str,
    altcha: &str,
    cookie: Option<&str>,
    peer: &str,
) -> TestResponse {
    let body = json!({ "question": question, "altcha": altcha }).to_string();
    let mut headers = vec![JSON, OWN];
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    let target = format!("/watch/video_site/{ARCHIVED}/ask");
    service.send_from(peer, request("POST", &target, &headers, &body)).await
}

/// Sends the form of the page.
async fn send_form(
    service: &ServiceFixture,
    video: &str,
    form: &str,
    headers: &[(&str, &str)],
) -> TestResponse {
    let target = format!("/watch/video_site/{video}/ask?lang=en");
    let kind = [("content-type", "application/x-www-form-urlencoded")];
    service.send(request("POST", &target, &[&kind, headers].concat(), form)).await
}

#[tokio::test]
async fn question_of_script_is_answered_and_counted() {
    let service = ServiceFixture::start().await;
    service.clock.advance(HOUR);
    let first = send_question(&service, "How quiet is it?", None, "192.0.2.1").await;
    assert_eq!(first.status, 200, "{first:?}");
    assert_eq!(first.header("content-type"), Some("text/event-stream"));
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let sentence = "event: sentence\ndata: {\"text\":\"“It is so quiet here.” [0:01]\"}\n\n";
    assert_eq!(first.text, format!("{sentence}event: answer\ndata: {{\"covered\":true}}\n\n"));
    let visitor = cookie(&first);
    assert!(visitor.starts_with("verbatim_visitor=visitor-"), "{visitor}");
    let missed = send_question(&service, "Xylophones?", Some(&visitor), "192.0.2.1").await;
    assert!(missed.text.ends_with("event: answer\ndata: {\"covered\":false}\n\n"), "{missed:?}");
    assert_eq!(send_question(&service, "quiet?", Some(&visitor), "192.0.2.1").await.status, 200);
    let fourth = send_question(&service, "quiet?", Some(&visitor), "192.0.2.1").await;
    assert_eq!(fourth.status, 429, "{fourth:?}");
    assert!(fourth.json()["detail"].as_str().unwrap().contains("(3 a day)"), "{fourth:?}");
    assert_eq!(fourth.header("retry-after"), Some(UNTIL_MIDNIGHT), "{fourth:?}");
    assert!(fourth.header("set-cookie").is_none());
    service.clock.advance(Duration::from_secs(24 * 3_600));
    assert_eq!(send_question(&service, "quiet?", Some(&visitor), "192.0.2.1").await.status, 200);
}

#[tokio::test]
async fn question_needs_unused_challenge_of_page_and_own_site() {
    let service = ServiceFixture::start().await;
    let altcha = solved(&service, ARCHIVED).await;
    assert_eq!(send_with(&service, "quiet?", &altcha, None, "192.0.2.1").await.status, 200);
    for (solution, question, status) in [
        (altcha.as_str(), "quiet?", 403),
        ("nonsense", "quiet?", 403),
        (&solved(&service, NEW).await, "quiet?", 403),
        (&solved(&service, ARCHIVED).await, " ", 400),
        (&solved(&service, ARCHIVED).await, &"a".repeat(2_001), 400),
    ] {
        let refused = send_with(&service, question, solution, None, "192.0.2.1").await;
        assert_eq!(refused.status, status, "{refused:?}");
        assert!(refused.header("set-cookie").is_none());
    }
    let target = format!("/watch/video_site/{ARCHIVED}/ask");
    let foreign = [JSON, ("sec-fetch-site", "cross-site")];
    assert_eq!(service.send(request("POST", &target, &foreign, "{}")).await.status, 403);
    assert_eq!(service.send(request("POST", &target, &[OWN], "{}")).await.status, 415);
}

#[tokio::test]
async fn question_limits_of_network_and_service_hold_without_cookie() {
    let service = ServiceFixture::with_options(LookupOptions {
        questions_per_network_per_day: 2,
        questions_per_service_per_day: 3,
        ..LookupOptions::default()
    })
    .await;
    service.clock.advance(HOUR);
    for (peer, status, detail) in [
        ("192.0.2.1", 200, ""),
        ("192.0.2.1", 200, ""),
        ("192.0.2.1", 429, "your network"),
        ("192.0.2.2", 200, ""),
        ("192.0.2.3", 429, "This site"),
    ] {
        let answer = send_question(&service, "quiet?", None, peer).await;
        assert_eq!(answer.status, status, "{peer} {answer:?}");
        assert!(answer.text.contains(detail), "{answer:?}");
        assert_eq!(answer.header("retry-after"), (status == 429).then_some(UNTIL_MIDNIGHT), "{answer:?}");
    }
    // An answer without the model does not count for the service.
    let plain = send_form(&service, ARCHIVED, "question=quiet", &[OWN]).await;
    assert_eq!(
        (plain.status.as_u16(), plain.header("retry-after")),
        (429, Some(UNTIL_MIDNIGHT)),
        "{plain:?}"
    );
}

#[tokio::test]
async fn question_of_form_is_answered_on_the_page() {
    let service = ServiceFixture::start().await;
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert!(page.text.contains("<details class=\"questions\" id=\"questions\">"), "{}", page.text);
    assert!(page.header("set-cookie").is_none());
    let answered = send_form(&service, ARCHIVED, "question=How+quiet+is+it%3F", &[OWN]).await;
    assert_eq!((answered.status.as_u16(), answered.header("cache-control")), (200, Some("no-store")));
    assert!(answered.header("set-cookie").unwrap().starts_with("verbatim_visitor="), "{answered:?}");
    for part in [
        "<details class=\"questions\" id=\"questions\" open>",
        "value=\"How quiet is it?\"",
        "<p dir=\"auto\">“It is so quiet here.” [<a href=\"#t1\">0:01</a>]</p>",
        "id=\"t1\"",
        "href=\"../dQw4w9WgXcQ/docx?lang=en\"",
        "href=\"../dQw4w9WgXcQ/pdf?lang=en\"",
    ] {
        assert!(answered.text.contains(part), "{part}: {}", answered.text);
    }
    let hostile = send_form(&service, ARCHIVED, "question=%22%3E%3Cscript%3Ealert(1)", &[OWN]).await;
    assert!(hostile.text.contains("The transcript does not answer this question."), "{}", hostile.text);
    assert!(hostile.text.contains("value=\"&quot;&gt;&lt;script&gt;alert(1)\""), "{}", hostile.text);
    assert_eq!(send_form(&service, ARCHIVED, "question=", &[OWN]).await.status, 400);
    assert_eq!(send_form(&service, ARCHIVED, "question=a", &[]).await.status, 403);
    for (query, location) in [
        ("?hl=de", "../dQw4w9WgXcQ?hl=de"),
        ("?q=tide%20%26b&t=61&lang=en&hl=de", "../dQw4w9WgXcQ?lang=en&t=61&q=tide%20%26b&hl=de"),
    ] {
        let again = service.get(&format!("/watch/video_site/{ARCHIVED}/ask{query}")).await;
        assert_eq!(again.header("location"), Some(location), "{query}");
    }
    // Without a transcript the page says why.
    let none = send_form(&service, NEW, "question=a", &[OWN]).await;
    assert_eq!((none.status.as_u16(), none.header("location")), (303, Some("../aaaaaaaaaaa?lang=en")));
}

#[tokio::test]
async fn archive_failure_of_question_or_document_is_503() {
    let service = ServiceFixture::start().await;
    let altcha = solved(&service, ARCHIVED).await;
    let fail_once = || service.archive.failing_find.store(1, Relaxed);
    fail_once();
    let script = send_with(&service, "quiet?", &altcha, None, "192.0.2.1").await;
    fail_once();
    let form = send_form(&service, ARCHIVED, "question=quiet", &[OWN]).await;
    let mut all = vec![script, form];
    let documents: &[&str] = if cfg!(feature = "documents") { &["docx", "pdf"] } else { &[] };
    for kind in documents {
        fail_once();
        all.push(service.get(&format!("/watch/video_site/{ARCHIVED}/{kind}")).await);
    }
    for refused in all {
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("5")), "{refused:?}");
    }
    // No question was counted, and the solution was not used.
    assert_eq!(send_with(&service, "quiet?", &altcha, None, "192.0.2.1").await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn page_of_long_transcript_needs_memory_for_answer_and_moment() {
    let service = ServiceFixture::start().await;
    let long = Transcript {
        segments: (0..9_000).map(|n| Segment::new("a long talk", n * 401, 400)).collect(),
        ..transcript(&VideoId::new(Platform::YouTube, LONG).unwrap())
    };
    service.keep(long).await;
    let (question, moment) = ("question=talk", format!("/watch/video_site/{LONG}?t=61"));
    let used = || service.app.body_budget.usage().0;
    let all = service.app.body_budget.try_reserve(1 << 40).unwrap();
    for refused in [send_form(&service, LONG, question, &[OWN]).await, service.get(&moment).await] {
        assert_eq!((refused.status.as_u16(), refused.header("retry-after")), (503, Some("5")), "{refused:?}");
    }
    // Short ones take none.
    assert_eq!(send_form(&service, ARCHIVED, "question=quiet", &[OWN]).await.status, 200);
    assert_eq!(service.get(&format!("/watch/video_site/{ARCHIVED}?t=2")).await.status, 303);
    drop(all);
    assert_eq!(service.get(&moment).await.status, 303);
    let form = [("content-type", "application/x-www-form-urlencoded"), OWN];
    let sent = request("POST", &format!("/watch/video_site/{LONG}/ask"), &form, question);
    let answer = service.http.answer(sent, "192.0.2.7".parse().unwrap()).await;
    assert_eq!(answer.status(), 200);
    let held = used();
    let page = answer.into_body().collect().await.unwrap().to_bytes();
    assert_eq!(held, (page.len() as u64).next_multiple_of(1024));
    drop(page);
    assert_eq!(used(), 0);
}

#[tokio::test]
async fn questions_can_be_switched_off() {
    let options = LookupOptions { questions_per_visitor_per_day: 0, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let page = service.get(&format!("/watch/video_site/{ARCHIVED}")).await;
    assert!(page.status == 200 && !page.text.contains("id=\"questions\""), "{}", page.text);
    assert_eq!(send_form(&service, ARCHIVED, "question=quiet", &[OWN]).await.status, 404);
    assert_eq!(send_with(&service, "quiet?", "x", None, "192.0.2.1").await.status, 404);
}

#[derive(Debug)]
struct FailingModel;

#[async_trait]
impl ChatModel for FailingModel {
    fn context_tokens(&self) -> u32 {
        8_000
    }

    async fn complete(&self, _: ModelRequest, _: Option<Arc<dyn DeltaSink>>) -> Result<ModelReply> {
        Err(Error::unavailable("no model"))
    }
}

#[tokio::test]
async fn question_is_answered_with_passages_when_model_fails() {
    let chat = Chat::new(Handle::current(), Arc::new(FailingModel), ChatOptions::default());
    let service = ServiceFixture::with_chat(chat).await;
    let answer = send_question(&service, "How quiet is it?", None, "192.0.2.1").await;
    assert!(answer.text.contains("“It is so quiet here.” [0:01]"), "{answer:?}");
    // The form never calls the model.
    let plain = send_form(&service, ARCHIVED, "question=quiet", &[OWN]).await;
    assert!(plain.text.contains("“It is so quiet here.”"), "{}", plain.text);
}
