//! Transcriptions that outlast their callers: the callers learn when to retry, and the work is kept.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{cli::speech_settings, sounds::tones};
use crate::{
    server::{
        harness::{ServerFixture, ServerReply, borrow_settings, create_keys, wait_until},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::{FakeReply, FakeService, SeenRequest},
};

const VIDEO: &str = "dyke-walk-0";

/// A proxy for YouTube with one video that has no captions and ten seconds of audio.
fn platform() -> Result<ReplayProxy> {
    let files = "rr1---sn-a.googlevideo.com";
    let player = json!({
        "playabilityStatus": {"status": "OK"},
        "videoDetails": {"videoId": VIDEO, "title": "A walk along the dyke", "lengthSeconds": "10"},
        "streamingData": {"adaptiveFormats": [{
            "mimeType": "audio/mp4; codecs=\"mp4a.40.2\"", "bitrate": 48_000, "contentLength": "9000",
            "url": format!("https://{files}/videoplayback?expire=1795000000"),
        }]},
    });
    let player_rule = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let file = Rule::get(files, "/videoplayback").respond(ReplayResponse::bytes("audio/mp4", tones(10)?));
    ReplayProxy::start(Script::new().rule(player_rule.respond(ReplayResponse::json(&player))).rule(file))
}

/// A service that transcribes each chunk once it has a permit.
async fn service(permits: &Arc<Semaphore>) -> Result<FakeService> {
    let permits = Arc::clone(permits);
    let script = move |request: &SeenRequest, index: usize| {
        let chunk_reply = FakeReply::transcription(&[(0.0, request.seconds(), &format!("part {index}"))]);
        FakeReply::Gated(Arc::clone(&permits), Box::new(chunk_reply))
    };
    FakeService::start(script).await
}

/// A server that transcribes there in five successive chunks and whose callers wait for 300 ms.
fn serve(
    data: &TempDir,
    temporary: &TempDir,
    proxy: &ReplayProxy,
    service: &FakeService,
) -> Result<ServerFixture> {
    let mut settings = speech_settings(proxy, &service.base_url, temporary);
    for (name, value) in [
        ("VERBATIM_LIMITS__WAIT", "300ms"),
        ("VERBATIM_SPEECH__CHUNK_DURATION", "3s"),
        ("VERBATIM_SPEECH__FORMAT", "wav"),
        ("VERBATIM_SPEECH__CONCURRENCY", "1"),
    ] {
        settings.push((name.to_owned(), value.to_owned()));
    }
    let settings = borrow_settings(&settings);
    ServerFixture::start(data, &settings)
}

/// Waits until the service has received this many chunks.
async fn wait_for_chunks(service: &FakeService, parts: usize) -> Result<()> {
    let failure = format!("the service did not receive {parts} chunks");
    wait_until(&failure, async || Ok(service.requests().len() >= parts)).await
}

/// Repeats the lookup until there is a transcript, as a client does.
async fn poll_until_available(server: &ServerFixture, key: &str, path: &str) -> Result<ServerReply> {
    let mut last = None;
    wait_until("there is no transcript", async || {
        let reply = server.get_as(key, path).await?;
        let is_available = reply.status == StatusCode::OK && reply.json()["available"] != json!(false);
        last = Some(reply);
        Ok(is_available)
    })
    .await?;
    last.context("no response")
}

/// Fails unless a response of the lookup API says that the work continues, and when to retry.
fn check_in_progress(reply: &ServerReply, part: &str) -> Result<Value> {
    let body = reply.json();
    let message = body["failureMessage"].as_str().unwrap_or_default();
    assert_eq!((reply.status, &body["failureReason"]), (StatusCode::OK, &json!("fetch_error")), "{body}");
    assert!(message.contains("still being transcribed") && message.contains(part), "{message}");
    let retry_after: u64 =
        reply.header("retry-after").parse().with_context(|| reply.header("retry-after").to_owned())?;
    assert!((2..=300).contains(&retry_after), "{retry_after}");
    Ok(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_repeated_joins_flight_and_pays_once() -> Result<()> {
    let permits = Arc::new(Semaphore::new(0));
    let (proxy, service) = (platform()?, service(&permits).await?);
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let server = serve(&data, &temporary, &proxy, &service)?;
    let keys = create_keys(&data, 2)?;
    let path = format!("/api/transcript?v={VIDEO}");
    check_in_progress(&server.get_as(&keys[0], &path).await?, "Try again in")?;
    poll_until_chunks(&server, &keys[0], &path, &service, 1).await?;
    // The text format has status 404 and the same header.
    let text = server.get_as(&keys[0], &format!("{path}&format=text")).await?;
    assert_eq!(text.status, StatusCode::NOT_FOUND);
    assert!(text.text().contains("still being transcribed") && !text.header("retry-after").is_empty());

    // Two of the five chunks are transcribed by the time that the third one is sent.
    permits.add_permits(2);
    wait_for_chunks(&service, 3).await?;
    let repeated = check_in_progress(&server.get_as(&keys[0], &path).await?, "(40 % done)")?;
    let other = check_in_progress(&server.get_as(&keys[1], &path).await?, "(40 % done)")?;
    assert_eq!((&repeated["key"]["used"], &other["key"]["used"]), (&json!(1), &json!(0)));

    // The v1 API has status 500 with the wait in its message; there `Retry-After` belongs to 429.
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let v1 = format!("/api/v1/transcript?video_id={VIDEO}");
    let refused = server.get_as(&key, &v1).await?;
    assert_eq!((refused.status, refused.header("retry-after")), (StatusCode::INTERNAL_SERVER_ERROR, ""));
    let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("(40 % done); nothing was charged. Try again in "), "{error}");
    let before = remaining_credits(&server, &key).await?;

    permits.add_permits(100);
    let there = poll_until_available(&server, &keys[0], &path).await?;
    let body = there.json();
    assert_eq!((&body["source"], there.header("retry-after")), (&json!("speech-to-text"), ""));
    assert_eq!((body["transcript"].as_array().map(Vec::len), &body["key"]["used"]), (Some(5), &json!(1)));
    let free = server.get_as(&keys[1], &path).await?.json();
    assert_eq!((&free["fromCache"], &free["key"]["used"]), (&json!(true), &json!(0)));
    let paid = server.get_as(&key, &v1).await?;
    assert_eq!((paid.status, paid.header("x-cache")), (StatusCode::OK, "HIT"), "{}", paid.text());
    assert_eq!(remaining_credits(&server, &key).await?, before - 1);
    assert_eq!(service.requests().len(), 5, "not every chunk was sent once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_failed_transcription_is_reported_and_refunded() -> Result<()> {
    let permits = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&permits);
    let script = move |request: &SeenRequest, index: usize| {
        let chunk_reply = match index {
            0 => FakeReply::new(500, "", ""),
            _ => FakeReply::transcription(&[(0.0, request.seconds(), "sheep")]),
        };
        FakeReply::Gated(Arc::clone(&held), Box::new(chunk_reply))
    };
    let (proxy, service) = (platform()?, FakeService::start(script).await?);
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let server = serve(&data, &temporary, &proxy, &service)?;
    let key = create_keys(&data, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    check_in_progress(&server.get_as(&key, &path).await?, "Try again in")?;
    poll_until_chunks(&server, &key, &path, &service, 1).await?;
    permits.add_permits(1);
    // The failure costs the key nothing; a lookup after it starts the work again.
    poll_until_chunks(&server, &key, &path, &service, 2).await?;
    permits.add_permits(100);
    let body = poll_until_available(&server, &key, &path).await?.json();
    assert_eq!((&body["available"], &body["key"]["used"]), (&json!(true), &json!(1)), "{body}");
    Ok(())
}

/// Repeats the lookup until the service has received this many chunks.
///
/// Queued work without waiters does not start, and a lookup after finished work starts it again.
async fn poll_until_chunks(
    server: &ServerFixture,
    key: &str,
    path: &str,
    service: &FakeService,
    parts: usize,
) -> Result<()> {
    wait_until(&format!("the service did not receive {parts} chunks"), async || {
        server.get_as(key, path).await?;
        Ok(service.requests().len() >= parts)
    })
    .await
}
