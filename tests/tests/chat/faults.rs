//! Services that give no answer.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use transcript_core::ErrorKind;

use super::{EVENTS, asked, streamed};
use crate::speech::service::{Reply, Service};

/// What becomes of a service's answer: the kind of error, and how often it is asked.
async fn check(what: &str, reply: fn() -> Reply, kind: ErrorKind, times: usize) -> Result<()> {
    let service = Service::start(move |_, _| reply()).await?;
    let error = asked(&service).await.map(|answer| answer.response).expect_err(what);
    assert_eq!((error.kind(), service.seen().len()), (kind, times), "{what}: {error}");
    for secret in ["sk-secret", "hush", "pier", "127.0.0.1"] {
        assert!(!error.to_string().contains(secret), "{what}: {error}");
    }
    Ok(())
}

#[tokio::test]
async fn what_cannot_be_read_is_no_answer() -> Result<()> {
    let html = || Reply::Answer(200, "content-type: text/html\r\n", "<!DOCTYPE html><p>hush".to_owned());
    check("html", html, ErrorKind::Corrupt, 1).await?;
    check("garbage", || Reply::Answer(200, "", "\u{1}hush{".repeat(99)), ErrorKind::Corrupt, 1).await?;
    check("other json", || Reply::json(&json!({ "ok": true })), ErrorKind::Corrupt, 1).await?;
    check("10 MB", || Reply::json(&json!({ "choices": ["a".repeat(10 << 20)] })), ErrorKind::Corrupt, 1)
        .await?;
    check("html as events", || Reply::Answer(200, EVENTS, "<html>\n<p>\n".to_owned()), ErrorKind::Corrupt, 1)
        .await?;
    check("no events", || Reply::Answer(200, EVENTS, "data: [DONE]\n\n".to_owned()), ErrorKind::Corrupt, 1)
        .await?;
    check("empty", || Reply::Answer(200, EVENTS, String::new()), ErrorKind::Corrupt, 1).await?;
    let line = || Reply::Answer(200, EVENTS, format!("data: {}", "a".repeat(10 << 20)));
    check("one line of 10 MB", line, ErrorKind::Corrupt, 1).await?;
    // It answers nothing at all.
    check("silence", || streamed(&[" \n"]), ErrorKind::Corrupt, 1).await
}

#[tokio::test]
async fn endless_answers_are_cut_off_and_used() -> Result<()> {
    let service = Service::start(|_, _| streamed(&["In one night [s2]. "; 9_000])).await?;
    let answer = asked(&service).await?;
    assert!(answer.response.starts_with("In one night [1:05].") && answer.response.len() < 64 << 10);
    assert_eq!(answer.citations.len(), 1);
    Ok(())
}

#[tokio::test]
async fn refusals_are_told_apart() -> Result<()> {
    let refusal = |status| Reply::Answer(status, "", r#"{"error":{"message":"hush sk-secret"}}"#.to_owned());
    check("a wrong key", || Reply::Answer(401, "", "hush".to_owned()), ErrorKind::Invalid, 1).await?;
    check("no such model", || Reply::Answer(404, "", "hush".to_owned()), ErrorKind::Invalid, 1).await?;
    let long = || Reply::Answer(400, "", r#"{"error":{"code":"context_length_exceeded"}}"#.to_owned());
    check("too long", long, ErrorKind::Invalid, 1).await?;
    // Passing faults are tried again, twice.
    check("a fault of its own", || Reply::Answer(500, "", "hush".to_owned()), ErrorKind::Unavailable, 3)
        .await?;
    check("nobody there", || Reply::Closed, ErrorKind::Unavailable, 3).await?;
    let busy =
        Service::start(move |_, before| if before < 2 { refusal(503) } else { streamed(&["Ice [s2]."]) })
            .await?;
    assert_eq!(asked(&busy).await?.response, "Ice [1:05].");
    let late = || Reply::Answer(429, "retry-after: 3600\r\n", "hush".to_owned());
    check("an hour's rest", late, ErrorKind::Unavailable, 1).await
}

#[tokio::test]
async fn a_service_that_stalls_is_given_up() -> Result<()> {
    let started = Instant::now();
    check("never", || Reply::Never, ErrorKind::Unavailable, 1).await?;
    assert!(started.elapsed() < Duration::from_secs(30));
    Ok(())
}
