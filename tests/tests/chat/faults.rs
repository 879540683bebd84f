//! Services without a usable answer.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use serde_json::json;
use tokio::sync::Semaphore;
use transcript_core::ErrorKind;

use super::{EVENTS, event, stream_start, streamed, verified_answer};
use crate::service::fake::{FakeReply, FakeService};

/// Checks the error kind of a service's reply, and the number of requests.
async fn check(what: &str, reply: fn() -> FakeReply, kind: ErrorKind, times: usize) -> Result<()> {
    let service = FakeService::start(move |_, _| reply()).await?;
    let error = verified_answer(&service).await.map(|answer| answer.response).expect_err(what);
    assert_eq!((error.kind(), service.requests().len()), (kind, times), "{what}: {error}");
    for secret in ["sk-secret", "hush", "pier", "127.0.0.1"] {
        assert!(!error.to_string().contains(secret), "{what}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn unreadable_reply_is_error() -> Result<()> {
    // What no model wrote is an outage.
    let html = || FakeReply::new(200, "content-type: text/html\r\n", "<!DOCTYPE html><p>hush");
    check("html", html, ErrorKind::Unavailable, 1).await?;
    check("garbage", || FakeReply::new(200, "", "\u{1}hush{".repeat(99)), ErrorKind::Unavailable, 1).await?;
    check("other json", || FakeReply::json(&json!({ "ok": true })), ErrorKind::Unavailable, 1).await?;
    check("10 MB", || FakeReply::json(&json!({ "choices": ["a".repeat(10 << 20)] })), ErrorKind::Corrupt, 1)
        .await?;
    check("html as events", || FakeReply::new(200, EVENTS, "<html>\n<p>\n"), ErrorKind::Unavailable, 1)
        .await?;
    check("no events", || FakeReply::new(200, EVENTS, "data: [DONE]\n\n"), ErrorKind::Unavailable, 1).await?;
    check("empty", || FakeReply::new(200, EVENTS, ""), ErrorKind::Unavailable, 1).await?;
    let line = || FakeReply::new(200, EVENTS, format!("data: {}", "a".repeat(10 << 20)));
    check("one line of 10 MB", line, ErrorKind::Unavailable, 1).await?;
    // The model returns only white space.
    check("silence", || streamed(&[" \n"]), ErrorKind::Corrupt, 1).await
}

#[tokio::test]
async fn stream_without_end_is_retried_before_text_only() -> Result<()> {
    let role = || FakeReply::new(200, EVENTS, stream_start(&[]));
    check("no text", role, ErrorKind::Unavailable, 3).await?;
    let line = || FakeReply::new(200, EVENTS, stream_start(&[]) + "data: {\"choi");
    check("half a line", line, ErrorKind::Unavailable, 3).await?;
    let half = || FakeReply::new(200, EVENTS, stream_start(&["In one night [s2]. The mus"]));
    check("half an answer", half, ErrorKind::Unavailable, 1).await?;
    let stop = event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] }));
    let body = stream_start(&["In one night [s2]."]) + &stop;
    let ended = {
        let body = body.clone();
        move || FakeReply::new(200, EVENTS, body.clone())
    };
    // The connection fails behind the end of the answer.
    let cut = move || FakeReply::Partial(EVENTS, body.clone(), Arc::new(Semaphore::new(1)), None);
    for service in
        [FakeService::start(move |_, _| ended()).await?, FakeService::start(move |_, _| cut()).await?]
    {
        assert_eq!(verified_answer(&service).await?.response, "In one night [1:05].");
    }
    Ok(())
}

#[tokio::test]
async fn endless_answer_is_truncated_and_used() -> Result<()> {
    let service = FakeService::start(|_, _| streamed(&["In one night [s2]. "; 9_000])).await?;
    let answer = verified_answer(&service).await?;
    assert!(answer.response.starts_with("In one night [1:05].") && answer.response.len() < 64 << 10);
    assert_eq!(answer.citations.len(), 1);
    Ok(())
}

#[tokio::test]
async fn service_errors_map_to_error_kinds() -> Result<()> {
    let refusal = |status| FakeReply::new(status, "", r#"{"error":{"message":"hush sk-secret"}}"#);
    check("a wrong key", || FakeReply::new(401, "", "hush"), ErrorKind::Invalid, 1).await?;
    check("no such model", || FakeReply::new(404, "", "hush"), ErrorKind::Invalid, 1).await?;
    let long = || FakeReply::new(400, "", r#"{"error":{"code":"context_length_exceeded"}}"#);
    check("too long", long, ErrorKind::Invalid, 1).await?;
    check("refused", || FakeReply::new(400, "", "hush"), ErrorKind::Unsupported, 1).await?;
    // Transient faults are retried twice.
    check("server error", || FakeReply::new(500, "", "hush"), ErrorKind::Unavailable, 3).await?;
    check("closed connection", || FakeReply::Closed, ErrorKind::Unavailable, 3).await?;
    let busy =
        FakeService::start(move |_, before| if before < 2 { refusal(503) } else { streamed(&["Ice [s2]."]) })
            .await?;
    assert_eq!(verified_answer(&busy).await?.response, "Ice [1:05].");
    let late = || FakeReply::new(429, "retry-after: 3600\r\n", "hush");
    check("an hour's cooldown", late, ErrorKind::Unavailable, 1).await
}

#[tokio::test]
async fn stalled_service_fails_at_timeout() -> Result<()> {
    let started = Instant::now();
    check("never", || FakeReply::Never, ErrorKind::Unavailable, 1).await?;
    assert!(started.elapsed() < Duration::from_secs(30));
    Ok(())
}
