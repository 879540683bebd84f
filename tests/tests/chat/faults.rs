//! Services without a usable answer.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use transcript_core::ErrorKind;

use super::{EVENTS, streamed, verified_answer};
use crate::speech::service::{FakeSpeechService, SpeechReply};

/// Checks the error kind of a service's reply, and the number of requests.
async fn check(what: &str, reply: fn() -> SpeechReply, kind: ErrorKind, times: usize) -> Result<()> {
    let service = FakeSpeechService::start(move |_, _| reply()).await?;
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
    let html =
        || SpeechReply::Answer(200, "content-type: text/html\r\n", "<!DOCTYPE html><p>hush".to_owned());
    check("html", html, ErrorKind::Unavailable, 1).await?;
    check("garbage", || SpeechReply::Answer(200, "", "\u{1}hush{".repeat(99)), ErrorKind::Unavailable, 1)
        .await?;
    check("other json", || SpeechReply::json(&json!({ "ok": true })), ErrorKind::Unavailable, 1).await?;
    check(
        "10 MB",
        || SpeechReply::json(&json!({ "choices": ["a".repeat(10 << 20)] })),
        ErrorKind::Corrupt,
        1,
    )
    .await?;
    check(
        "html as events",
        || SpeechReply::Answer(200, EVENTS, "<html>\n<p>\n".to_owned()),
        ErrorKind::Unavailable,
        1,
    )
    .await?;
    check(
        "no events",
        || SpeechReply::Answer(200, EVENTS, "data: [DONE]\n\n".to_owned()),
        ErrorKind::Unavailable,
        1,
    )
    .await?;
    check("empty", || SpeechReply::Answer(200, EVENTS, String::new()), ErrorKind::Unavailable, 1).await?;
    let line = || SpeechReply::Answer(200, EVENTS, format!("data: {}", "a".repeat(10 << 20)));
    check("one line of 10 MB", line, ErrorKind::Unavailable, 1).await?;
    // The model returns only white space.
    check("silence", || streamed(&[" \n"]), ErrorKind::Corrupt, 1).await
}

#[tokio::test]
async fn endless_answer_is_truncated_and_used() -> Result<()> {
    let service = FakeSpeechService::start(|_, _| streamed(&["In one night [s2]. "; 9_000])).await?;
    let answer = verified_answer(&service).await?;
    assert!(answer.response.starts_with("In one night [1:05].") && answer.response.len() < 64 << 10);
    assert_eq!(answer.citations.len(), 1);
    Ok(())
}

#[tokio::test]
async fn service_errors_map_to_error_kinds() -> Result<()> {
    let refusal =
        |status| SpeechReply::Answer(status, "", r#"{"error":{"message":"hush sk-secret"}}"#.to_owned());
    check("a wrong key", || SpeechReply::Answer(401, "", "hush".to_owned()), ErrorKind::Invalid, 1).await?;
    check("no such model", || SpeechReply::Answer(404, "", "hush".to_owned()), ErrorKind::Invalid, 1).await?;
    let long = || SpeechReply::Answer(400, "", r#"{"error":{"code":"context_length_exceeded"}}"#.to_owned());
    check("too long", long, ErrorKind::Invalid, 1).await?;
    check("refused", || SpeechReply::Answer(400, "", "hush".to_owned()), ErrorKind::Unsupported, 1).await?;
    // Transient faults are retried twice.
    check("server error", || SpeechReply::Answer(500, "", "hush".to_owned()), ErrorKind::Unavailable, 3)
        .await?;
    check("closed connection", || SpeechReply::Closed, ErrorKind::Unavailable, 3).await?;
    let busy = FakeSpeechService::start(
        move |_, before| if before < 2 { refusal(503) } else { streamed(&["Ice [s2]."]) },
    )
    .await?;
    assert_eq!(verified_answer(&busy).await?.response, "Ice [1:05].");
    let late = || SpeechReply::Answer(429, "retry-after: 3600\r\n", "hush".to_owned());
    check("an hour's cooldown", late, ErrorKind::Unavailable, 1).await
}

#[tokio::test]
async fn stalled_service_fails_at_timeout() -> Result<()> {
    let started = Instant::now();
    check("never", || SpeechReply::Never, ErrorKind::Unavailable, 1).await?;
    assert!(started.elapsed() < Duration::from_secs(30));
    Ok(())
}
