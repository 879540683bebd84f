//! Cached responses over real HTTP: encodings, entity tags, and changes made by another process.

use std::{
    io::Read,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::Result;
use http::Method;
use serde_json::Value;
use storage_sqlx::{SqliteArchive, SqliteOptions};
use tempfile::TempDir;
use transcript_core::{
    Timestamp,
    archive::{Archive, PutRequest, TrackSelector},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use super::harness::{ServerFixture, ServerReply};

const VIDEO: &str = "dyke-walk-0";
const PATH: &str = "/api/transcript?v=dyke-walk-0";
/// Timeout until a change is visible, with room for a busy machine.
const CHANGE_TIMEOUT: Duration = Duration::from_secs(30);

/// The archive as another process opens it, and a server on the same file.
async fn start() -> Result<(SqliteArchive, ServerFixture, TempDir)> {
    let data = TempDir::new()?;
    let archive = SqliteArchive::open(SqliteOptions::new(data.path().join("archive.db"))).await?;
    archive.put(put_request("The sheep keep the grass short.", false)?).await?;
    let server = ServerFixture::start(&data, &[])?;
    Ok((archive, server, data))
}

fn video() -> Result<VideoId> {
    Ok(VideoId::new(Platform::YouTube, VIDEO)?)
}

fn put_request(text: &str, replace: bool) -> Result<PutRequest> {
    put_request_for(VIDEO, text, replace)
}

/// A transcript of a video whose segments all have this text.
pub(crate) fn put_request_for(video: &str, text: &str, replace: bool) -> Result<PutRequest> {
    let video = VideoId::new(Platform::YouTube, video)?;
    let track = TrackInfo::new(LanguageTag::english(), TrackKind::Human);
    let segments = (0..200).map(|n| Segment::new(text, n * 1_000, 900)).collect();
    Ok(PutRequest {
        video: video.clone(),
        selectors: vec![TrackSelector::Default],
        transcript: Arc::new(Transcript {
            video,
            title: None,
            author: None,
            duration_ms: None,
            track: track.clone(),
            source: "youtube-captions".to_owned(),
            segments,
        }),
        known_tracks: vec![track],
        metadata: Default::default(),
        parser_version: 1,
        replace,
        now: Timestamp::from_millis(1_795_132_800_000),
    })
}

async fn send(server: &ServerFixture, headers: &[(&str, &str)]) -> Result<ServerReply> {
    server.send(Method::GET, PATH, headers, "").await
}

/// Sends requests until a response meets the expectation.
async fn poll_for(
    server: &ServerFixture,
    headers: &[(&str, &str)],
    what: &str,
    expect: impl Fn(&ServerReply) -> bool,
) -> Result<ServerReply> {
    let deadline = Instant::now() + CHANGE_TIMEOUT;
    loop {
        let reply = send(server, headers).await?;
        if expect(&reply) {
            return Ok(reply);
        }
        assert!(Instant::now() < deadline, "{what} did not become visible: {reply:?}");
    }
}

/// The JSON of a response, in any encoding.
fn read(reply: &ServerReply) -> Result<Value> {
    let body = match reply.header("content-encoding") {
        "zstd" => zstd::decode_all(&reply.body[..])?,
        _ => reply.body.to_vec(),
    };
    Ok(serde_json::from_slice(&body)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn cache_change_by_other_process_is_visible_at_once() -> Result<()> {
    // The stored body is sent unchanged in the first encoding, and rendered for the second.
    for encoding in ["zstd", "identity"] {
        check_changes_visible(&[("accept-encoding", encoding)]).await?;
    }
    Ok(())
}

async fn check_changes_visible(headers: &[(&str, &str)]) -> Result<()> {
    let (archive, server, _data) = start().await?;
    let now = Timestamp::from_millis(0);
    let has_text = |reply: &ServerReply, words: &str| {
        read(reply).is_ok_and(|json| json["transcript"][0]["text"].as_str().is_some_and(|is| is == words))
    };
    let has_first_text = |reply: &ServerReply| has_text(reply, "The sheep keep the grass short.");
    let first = poll_for(&server, headers, "the first response", has_first_text).await?;
    for _ in 0..3 {
        archive.withdraw(&video()?, true, now).await?;
        let is_withdrawn =
            |reply: &ServerReply| read(reply).is_ok_and(|json| json["failureReason"] == "no_captions");
        let gone = poll_for(&server, headers, "a withdrawal", is_withdrawn).await?;
        assert_eq!((gone.header("etag"), gone.header("cache-control")), ("", "no-store"));
        archive.withdraw(&video()?, false, now).await?;
        let back = poll_for(&server, headers, "the end of the withdrawal", has_first_text).await?;
        assert_eq!((back.header("etag"), &back.body), (first.header("etag"), &first.body));
    }
    archive.put(put_request("The cows do.", true)?).await?;
    let renewed = poll_for(&server, headers, "a refresh", |reply| has_text(reply, "The cows do.")).await?;
    assert_ne!(renewed.header("etag"), first.header("etag"));
    let stale = [headers, &[("if-none-match", first.header("etag"))]].concat();
    assert_eq!(send(&server, &stale).await?.status, 200);
    archive.delete(&video()?).await?;
    let is_deleted =
        |reply: &ServerReply| read(reply).is_ok_and(|json| json["failureReason"] == "needs_verification");
    poll_for(&server, headers, "the deletion", is_deleted).await?;
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_other_language_is_not_sent_to_servers() -> Result<()> {
    let (archive, server, _data) = start().await?;
    let mut german = put_request_for("dyke-walk-1", "Die Schafe halten das Gras kurz.", false)?;
    let track = TrackInfo::new(LanguageTag::from_canonical("de"), TrackKind::Human);
    Arc::make_mut(&mut german.transcript).track = track.clone();
    (german.selectors, german.known_tracks) = (vec![track.selector()], vec![track]);
    archive.put(german).await?;
    let path = "/api/transcript?v=dyke-walk-1";
    // Often enough to be cached.
    for _ in 0..3 {
        assert_eq!(server.get(path).await?.json()["language"], "de");
    }
    let hop = server.send(Method::GET, path, &[("x-verbatim-hop", "1")], "").await?.json();
    assert_eq!(hop["failureReason"], "needs_verification", "{hop}");
    assert_eq!(server.get(path).await?.json()["language"], "de");
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_response_supports_encodings_and_conditions() -> Result<()> {
    let (archive, server, _data) = start().await?;
    let plain = server.get(PATH).await?;
    assert!(plain.json()["available"] == true && plain.header("content-encoding").is_empty());
    for round in 0..2 {
        let gzip = send(&server, &[("accept-encoding", "br;q=0.5, gzip;q=0.8, *;q=0.1")]).await?;
        assert_eq!((gzip.header("content-encoding"), gzip.status.as_u16()), ("gzip", 200));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_string(&mut text)?;
        assert!(text == plain.text() && gzip.body.len() < plain.body.len() / 4, "round {round}");
        assert_eq!(gzip.header("content-length"), gzip.body.len().to_string());
        let tag = gzip.header("etag");
        assert_ne!(tag, plain.header("etag"));
        let same = send(&server, &[("accept-encoding", "gzip"), ("if-none-match", tag)]).await?;
        assert_eq!((same.status.as_u16(), same.body.len()), (304, 0));
        assert_eq!((same.header("etag"), same.header("vary")), (tag, "accept-encoding, authorization"));
        assert_eq!(same.header("cache-control"), "no-cache");
        let other = send(&server, &[("if-none-match", tag)]).await?;
        assert_eq!((other.status.as_u16(), &other.body), (200, &plain.body));
        let head = server.send(Method::HEAD, PATH, &[("accept-encoding", "gzip")], "").await?;
        assert_eq!((head.header("etag"), head.body.len()), (tag, 0));
        assert_eq!(head.header("content-length"), gzip.body.len().to_string());
        let part = send(&server, &[("range", "bytes=0-9"), ("if-range", tag)]).await?;
        assert_eq!((part.status.as_u16(), &part.body), (200, &plain.body));
    }
    // Rendered for the first and the second request, cached for the third.
    for round in 0..3 {
        let headers = [("accept-encoding", "gzip;q=0.3, zstd")];
        let zstd = send(&server, &headers).await?;
        assert_eq!((zstd.header("content-encoding"), zstd.status.as_u16()), ("zstd", 200));
        assert!(zstd::decode_all(&zstd.body[..])? == plain.body, "round {round}");
        assert_eq!(zstd.header("content-length"), zstd.body.len().to_string());
        let head = server.send(Method::HEAD, PATH, &headers, "").await?;
        assert_eq!(head.header("content-length"), zstd.body.len().to_string());
        assert_eq!((head.header("etag"), head.body.len()), (zstd.header("etag"), 0));
        let same = send(&server, &[headers[0], ("if-none-match", zstd.header("etag"))]).await?;
        assert_eq!(
            (same.status.as_u16(), same.body.len(), same.header("etag")),
            (304, 0, zstd.header("etag"))
        );
        assert_ne!(zstd.header("etag"), plain.header("etag"));
    }
    for hostile in ["gzip;q=0,".repeat(2_000), "*".repeat(20_000), ";q=1;".repeat(4_000), "\t,".repeat(9_000)]
    {
        let reply = send(&server, &[("accept-encoding", &hostile), ("if-none-match", &hostile)]).await?;
        assert!(matches!(reply.status.as_u16(), 200 | 431), "{reply:?}");
    }
    assert_eq!(send(&server, &[("accept-encoding", "*;q=0")]).await?.status, 406);
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn cached_response_is_equal_for_concurrent_callers() -> Result<()> {
    let (archive, server, _data) = start().await?;
    let headers = [("accept-encoding", "zstd")];
    let callers = futures_util::future::join_all((0..64).map(|_| send(&server, &headers))).await;
    let mut tags = Vec::new();
    for reply in callers {
        let reply = reply?;
        assert_eq!((reply.status.as_u16(), reply.header("content-encoding")), (200, "zstd"));
        tags.push((reply.header("etag").to_owned(), reply.body));
    }
    tags.dedup();
    assert_eq!(tags.len(), 1);
    archive.close().await;
    Ok(())
}
