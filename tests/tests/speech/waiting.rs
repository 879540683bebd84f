//! Listening that takes longer than its callers wait: they are told when to ask again, and lose nothing by it.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    built::speaking,
    service::{Reply, Seen, Service},
    sounds::tones,
    stage::PATIENCE,
};
use crate::server::{
    harness::{Reply as Told, Server, borrowed, keys},
    v1::post::{Outbox, account, credits},
};

const VIDEO: &str = "dyke-walk-0";

/// A proxy for YouTube, on which one video has no captions, and a sound of ten seconds.
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
    let asked = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let file = Rule::get(files, "/videoplayback").answer(Answer::bytes("audio/mp4", tones(10)?));
    ReplayProxy::start(Script::new().rule(asked.answer(Answer::json(&player))).rule(file))
}

/// A service that hears each part once it may.
async fn service(may: &Arc<Semaphore>) -> Result<Service> {
    let may = Arc::clone(may);
    let hear = move |seen: &Seen, place: usize| {
        let heard = Reply::heard(&[(0.0, seen.seconds(), &format!("part {place}"))]);
        Reply::Held(Arc::clone(&may), Box::new(heard))
    };
    Service::start(hear).await
}

/// A server that listens there in five parts, one after the other, and whose callers wait for a moment.
fn serve(data: &TempDir, temporary: &TempDir, proxy: &ReplayProxy, service: &Service) -> Result<Server> {
    let mut settings = speaking(proxy, &service.base_url, temporary);
    for (name, value) in [
        ("VERBATIM_LIMITS__WAIT", "300ms"),
        ("VERBATIM_SPEECH__PART", "3s"),
        ("VERBATIM_SPEECH__FORMAT", "wav"),
        ("VERBATIM_SPEECH__CONCURRENCY", "1"),
    ] {
        settings.push((name.to_owned(), value.to_owned()));
    }
    let settings = borrowed(&settings);
    Server::start(data, &settings)
}

/// Waits until the service was sent so many parts.
async fn until_sent(service: &Service, parts: usize) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while service.seen().len() < parts {
        ensure!(Instant::now() < end, "the service was sent {} parts", service.seen().len());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

/// Asks until there is a transcript, as a client does.
async fn until_there(server: &Server, key: &str, path: &str) -> Result<Told> {
    let end = Instant::now() + PATIENCE;
    loop {
        let told = server.get_as(key, path).await?;
        if told.status == StatusCode::OK && told.json()["available"] != json!(false) {
            return Ok(told);
        }
        ensure!(Instant::now() < end, "{}", told.text());
    }
}

/// Fails unless an answer of Surface A says that the work goes on, and when to ask again.
fn check_goes_on(told: &Told, part: &str) -> Result<Value> {
    let body = told.json();
    let message = body["failureMessage"].as_str().unwrap_or_default();
    assert_eq!((told.status, &body["failureReason"]), (StatusCode::OK, &json!("fetch_error")), "{body}");
    assert!(message.contains("still being transcribed") && message.contains(part), "{message}");
    let again: u64 =
        told.header("retry-after").parse().with_context(|| told.header("retry-after").to_owned())?;
    assert!((2..=300).contains(&again), "{again}");
    Ok(body)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_asks_again_joins_the_work_and_pays_once() -> Result<()> {
    let may = Arc::new(Semaphore::new(0));
    let (proxy, service) = (platform()?, service(&may).await?);
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let mut outbox = Outbox::of(&data);
    let server = serve(&data, &temporary, &proxy, &service)?;
    let keys = keys(&data, 2)?;
    let path = format!("/api/transcript?v={VIDEO}");
    check_goes_on(&server.get_as(&keys[0], &path).await?, "please ask again in")?;
    until_asked(&server, &keys[0], &path, &service, 1).await?;
    // In text it is a 404, with the same header.
    let text = server.get_as(&keys[0], &format!("{path}&format=text")).await?;
    assert_eq!(text.status, StatusCode::NOT_FOUND);
    assert!(text.text().contains("still being transcribed") && !text.header("retry-after").is_empty());

    // Two of the five parts are heard by the time that the third one is sent.
    may.add_permits(2);
    until_sent(&service, 3).await?;
    let again = check_goes_on(&server.get_as(&keys[0], &path).await?, "(40 % is done)")?;
    let other = check_goes_on(&server.get_as(&keys[1], &path).await?, "(40 % is done)")?;
    assert_eq!((&again["key"]["used"], &other["key"]["used"]), (&json!(1), &json!(0)));

    // On Surface B it is a 500 whose sentence says when; Retry-After belongs to 429 there.
    let key = account(&server, &mut outbox, "ann@example.org").await?;
    let v1 = format!("/api/v1/transcript?video_id={VIDEO}");
    let refused = server.get_as(&key, &v1).await?;
    assert_eq!((refused.status, refused.header("retry-after")), (StatusCode::INTERNAL_SERVER_ERROR, ""));
    let error = refused.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.contains("(40 % is done): nothing was charged, please ask again in "), "{error}");
    let before = credits(&server, &key).await?;

    may.add_permits(100);
    let there = until_there(&server, &keys[0], &path).await?;
    let body = there.json();
    assert_eq!((&body["source"], there.header("retry-after")), (&json!("speech-to-text"), ""));
    assert_eq!((body["transcript"].as_array().map(Vec::len), &body["key"]["used"]), (Some(5), &json!(1)));
    let free = server.get_as(&keys[1], &path).await?.json();
    assert_eq!((&free["fromCache"], &free["key"]["used"]), (&json!(true), &json!(0)));
    let paid = server.get_as(&key, &v1).await?;
    assert_eq!((paid.status, paid.header("x-cache")), (StatusCode::OK, "HIT"), "{}", paid.text());
    assert_eq!(credits(&server, &key).await?, before - 1);
    assert_eq!(service.seen().len(), 5, "each part was heard once");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_fails_in_the_end_is_told_and_returned() -> Result<()> {
    let may = Arc::new(Semaphore::new(0));
    let held = Arc::clone(&may);
    let hear = move |seen: &Seen, place: usize| {
        let heard = match place {
            0 => Reply::Answer(500, "", String::new()),
            _ => Reply::heard(&[(0.0, seen.seconds(), "sheep")]),
        };
        Reply::Held(Arc::clone(&held), Box::new(heard))
    };
    let (proxy, service) = (platform()?, Service::start(hear).await?);
    let (data, temporary) = (TempDir::new()?, TempDir::new()?);
    let server = serve(&data, &temporary, &proxy, &service)?;
    let key = keys(&data, 1)?.remove(0);
    let path = format!("/api/transcript?v={VIDEO}");
    check_goes_on(&server.get_as(&key, &path).await?, "please ask again in")?;
    until_asked(&server, &key, &path, &service, 1).await?;
    may.add_permits(1);
    // The failure costs the key nothing; whoever asks after it has the work done anew.
    until_asked(&server, &key, &path, &service, 2).await?;
    may.add_permits(100);
    let body = until_there(&server, &key, &path).await?.json();
    assert_eq!((&body["available"], &body["key"]["used"]), (&json!(true), &json!(1)), "{body}");
    Ok(())
}

/// Asks until the service was sent so many parts: work that nobody waits for any more when its turn comes does not
/// begin, and whoever asks after work that ended has it done anew.
async fn until_asked(server: &Server, key: &str, path: &str, service: &Service, parts: usize) -> Result<()> {
    let end = Instant::now() + PATIENCE;
    while service.seen().len() < parts {
        server.get_as(key, path).await?;
        ensure!(Instant::now() < end, "the service was sent {} parts", service.seen().len());
    }
    Ok(())
}
