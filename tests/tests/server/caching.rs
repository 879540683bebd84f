//! Ready answers over real HTTP: encodings, tags, and changes that another process makes.

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
    archive::{Archive, Keep, Wish},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
    video::{Platform, VideoId},
};

use super::harness::{Reply, Server};

const VIDEO: &str = "dyke-walk-0";
const PATH: &str = "/api/transcript?v=dyke-walk-0";
/// How soon a change must be seen, with room for a busy machine.
const SOON: Duration = Duration::from_secs(30);

/// The archive as another process has it open, and a server over the same file.
async fn stage() -> Result<(SqliteArchive, Server, TempDir)> {
    let data = TempDir::new()?;
    let archive = SqliteArchive::open(SqliteOptions::new(data.path().join("archive.db"))).await?;
    archive.keep(keep("The sheep keep the grass short.", false)?).await?;
    let server = Server::start(&data, &[])?;
    Ok((archive, server, data))
}

fn video() -> Result<VideoId> {
    Ok(VideoId::new(Platform::VideoSite, VIDEO)?)
}

fn keep(text: &str, replace: bool) -> Result<Keep> {
    let track = TrackInfo::new(LanguageTag::english(), TrackKind::Human);
    let segments = (0..200).map(|n| Segment::new(text, n * 1_000, 900)).collect();
    Ok(Keep {
        video: video()?,
        wishes: vec![Wish::Default],
        transcript: Arc::new(Transcript {
            video: video()?,
            title: None,
            author: None,
            duration_ms: None,
            track: track.clone(),
            source: "youtube-captions".to_owned(),
            segments,
        }),
        known_tracks: vec![track],
        parser_version: 1,
        replace,
        now: Timestamp::from_millis(1_795_132_800_000),
    })
}

async fn ask(server: &Server, headers: &[(&str, &str)]) -> Result<Reply> {
    server.send(Method::GET, PATH, headers, "").await
}

/// Asks until the answer is as it must become.
async fn soon(
    server: &Server,
    headers: &[(&str, &str)],
    what: &str,
    expect: impl Fn(&Reply) -> bool,
) -> Result<Reply> {
    let until = Instant::now() + SOON;
    loop {
        let reply = ask(server, headers).await?;
        if expect(&reply) {
            return Ok(reply);
        }
        assert!(Instant::now() < until, "{what} was not seen: {reply:?}");
    }
}

/// The JSON of an answer, whatever its encoding.
fn read(reply: &Reply) -> Result<Value> {
    let body = match reply.header("content-encoding") {
        "zstd" => zstd::decode_all(&reply.body[..])?,
        _ => reply.body.to_vec(),
    };
    Ok(serde_json::from_slice(&body)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_process_changes_is_seen_at_once() -> Result<()> {
    // What is stored is sent as it is to the first, and made for the second.
    for encoding in ["zstd", "identity"] {
        changes_are_seen_by(&[("accept-encoding", encoding)]).await?;
    }
    Ok(())
}

async fn changes_are_seen_by(headers: &[(&str, &str)]) -> Result<()> {
    let (archive, server, _data) = stage().await?;
    let now = Timestamp::from_millis(0);
    let says = |reply: &Reply, words: &str| {
        read(reply).is_ok_and(|json| json["transcript"][0]["text"].as_str().is_some_and(|is| is == words))
    };
    let sheep = |reply: &Reply| says(reply, "The sheep keep the grass short.");
    let first = soon(&server, headers, "the first", sheep).await?;
    for _ in 0..3 {
        archive.withdraw(&video()?, true, now).await?;
        let withdrawn = |reply: &Reply| read(reply).is_ok_and(|json| json["failureReason"] == "no_captions");
        let gone = soon(&server, headers, "a withdrawal", withdrawn).await?;
        assert_eq!((gone.header("etag"), gone.header("cache-control")), ("", "no-store"));
        archive.withdraw(&video()?, false, now).await?;
        let back = soon(&server, headers, "its end", sheep).await?;
        assert_eq!((back.header("etag"), &back.body), (first.header("etag"), &first.body));
    }
    archive.keep(keep("The cows do.", true)?).await?;
    let renewed = soon(&server, headers, "a refresh", |reply| says(reply, "The cows do.")).await?;
    assert_ne!(renewed.header("etag"), first.header("etag"));
    let stale = [headers, &[("if-none-match", first.header("etag"))]].concat();
    assert_eq!(ask(&server, &stale).await?.status, 200);
    archive.forget(&video()?).await?;
    let forgotten =
        |reply: &Reply| read(reply).is_ok_and(|json| json["failureReason"] == "needs_verification");
    soon(&server, headers, "forgetting", forgotten).await?;
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn encodings_and_conditions_over_the_wire() -> Result<()> {
    let (archive, server, _data) = stage().await?;
    let plain = server.get(PATH).await?;
    assert!(plain.json()["available"] == true && plain.header("content-encoding").is_empty());
    for round in 0..2 {
        let gzip = ask(&server, &[("accept-encoding", "br;q=0.5, gzip;q=0.8, *;q=0.1")]).await?;
        assert_eq!((gzip.header("content-encoding"), gzip.status.as_u16()), ("gzip", 200));
        let mut text = String::new();
        flate2::read::GzDecoder::new(&gzip.body[..]).read_to_string(&mut text)?;
        assert!(text == plain.text() && gzip.body.len() < plain.body.len() / 4, "round {round}");
        assert_eq!(gzip.header("content-length"), gzip.body.len().to_string());
        let tag = gzip.header("etag");
        assert_ne!(tag, plain.header("etag"));
        let same = ask(&server, &[("accept-encoding", "gzip"), ("if-none-match", tag)]).await?;
        assert_eq!((same.status.as_u16(), same.body.len()), (304, 0));
        assert_eq!((same.header("etag"), same.header("vary")), (tag, "accept-encoding, authorization"));
        assert_eq!(same.header("cache-control"), "no-cache");
        let other = ask(&server, &[("if-none-match", tag)]).await?;
        assert_eq!((other.status.as_u16(), &other.body), (200, &plain.body));
        let head = server.send(Method::HEAD, PATH, &[("accept-encoding", "gzip")], "").await?;
        assert_eq!((head.header("etag"), head.body.len()), (tag, 0));
        assert_eq!(head.header("content-length"), gzip.body.len().to_string());
        let part = ask(&server, &[("range", "bytes=0-9"), ("if-range", tag)]).await?;
        assert_eq!((part.status.as_u16(), &part.body), (200, &plain.body));
    }
    // Made for the first, for the second, and ready.
    for round in 0..3 {
        let headers = [("accept-encoding", "gzip;q=0.3, zstd")];
        let zstd = ask(&server, &headers).await?;
        assert_eq!((zstd.header("content-encoding"), zstd.status.as_u16()), ("zstd", 200));
        assert!(zstd::decode_all(&zstd.body[..])? == plain.body, "round {round}");
        assert_eq!(zstd.header("content-length"), zstd.body.len().to_string());
        let head = server.send(Method::HEAD, PATH, &headers, "").await?;
        assert_eq!(head.header("content-length"), zstd.body.len().to_string());
        assert_eq!((head.header("etag"), head.body.len()), (zstd.header("etag"), 0));
        let same = ask(&server, &[headers[0], ("if-none-match", zstd.header("etag"))]).await?;
        assert_eq!(
            (same.status.as_u16(), same.body.len(), same.header("etag")),
            (304, 0, zstd.header("etag"))
        );
        assert_ne!(zstd.header("etag"), plain.header("etag"));
    }
    for hostile in ["gzip;q=0,".repeat(2_000), "*".repeat(20_000), ";q=1;".repeat(4_000), "\t,".repeat(9_000)]
    {
        let reply = ask(&server, &[("accept-encoding", &hostile), ("if-none-match", &hostile)]).await?;
        assert!(matches!(reply.status.as_u16(), 200 | 431), "{reply:?}");
    }
    assert_eq!(ask(&server, &[("accept-encoding", "*;q=0")]).await?.status, 406);
    archive.close().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_gets_the_same_bytes() -> Result<()> {
    let (archive, server, _data) = stage().await?;
    let headers = [("accept-encoding", "zstd")];
    let crowd = futures_util::future::join_all((0..64).map(|_| ask(&server, &headers))).await;
    let mut tags = Vec::new();
    for reply in crowd {
        let reply = reply?;
        assert_eq!((reply.status.as_u16(), reply.header("content-encoding")), (200, "zstd"));
        tags.push((reply.header("etag").to_owned(), reply.body));
    }
    tags.dedup();
    assert_eq!(tags.len(), 1);
    archive.close().await;
    Ok(())
}
