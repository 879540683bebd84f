//! Tests of the response cache: equal responses, validators and encodings.

use std::{io::Read, time::Duration};

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use transcript_core::{
    archive::Archive,
    transcript::{Chapter, LiveStatus, Segment, Transcript, VideoMetadata},
    video::{Platform, VideoId},
};

use crate::testing::{ARCHIVED, NEW, ServiceFixture, TestResponse, request, transcript};

fn path(rest: &str) -> String {
    format!("/api/transcript?v={ARCHIVED}{rest}")
}

/// Status, headers and bytes of a response that may not be text.
async fn raw(service: &ServiceFixture, request: Request<Body>) -> (http::response::Parts, Vec<u8>) {
    let (head, body) = service.http.answer(request, "192.0.2.1".parse().unwrap()).await.into_parts();
    (head, body.collect().await.unwrap().to_bytes().to_vec())
}

async fn get(service: &ServiceFixture, target: &str, headers: &[(&str, &str)]) -> TestResponse {
    service.send(request("GET", target, headers, "")).await
}

#[tokio::test]
async fn cached_response_equals_first_response() {
    let service = ServiceFixture::start().await;
    for rest in ["", "&format=text", "&format=md", "&src=mcp_other"] {
        let mut first = service.get(&path(rest)).await;
        for _ in 0..3 {
            let mut again = service.get(&path(rest)).await;
            assert!(first.headers.remove("x-request-id") != again.headers.remove("x-request-id"));
            first.headers.remove("content-length");
            again.headers.remove("content-length");
            assert_eq!((&first.headers, &first.text), (&again.headers, &again.text), "{rest}");
        }
        assert_eq!(first.header("cache-control"), Some("no-cache"));
    }
}

#[tokio::test]
async fn cached_response_requires_one_host_header() {
    let service = ServiceFixture::start().await;
    for _ in 0..3 {
        assert_eq!(service.get(&path("")).await.status, 200);
        let without = Request::get(path("")).body(Body::empty()).unwrap();
        let twice = request("GET", &path(""), &[("host", "other.example")], "");
        for refused in [without, twice] {
            assert_eq!(raw(&service, refused).await.0.status, 400);
        }
    }
}

#[tokio::test]
async fn stored_body_equals_serialized_response() {
    let service = ServiceFixture::start().await;
    let long = VideoId::new(Platform::YouTube, "longlonglon").unwrap();
    let segments = (0..9_000).map(|n| Segment::new(format!("\u{1F980} \"{n}\" \0"), n * 401, n)).collect();
    service.keep(Transcript { segments, ..transcript(&long) }).await;
    for rest in ["", "&src=mcp_other", "&format=json"] {
        for video in [ARCHIVED, long.id()] {
            let target = format!("/api/transcript?v={video}{rest}");
            // An unknown key bypasses the cache; its response has no key usage.
            let written = get(&service, &target, &[("authorization", "Bearer vbk_unknown")]).await;
            assert!(written.text.len() > if video == ARCHIVED { 200 } else { 500_000 });
            for headers in [&[][..], &[("accept-encoding", "zstd")]] {
                let (head, bytes) = raw(&service, request("GET", &target, headers, "")).await;
                let is_zstd = head.headers.contains_key("content-encoding");
                let text = if is_zstd { zstd::decode_all(&bytes[..]).unwrap() } else { bytes };
                assert_eq!(is_zstd, !headers.is_empty());
                assert!(text == written.text.as_bytes(), "{target}");
                assert_eq!(head.headers["content-type"], written.header("content-type").unwrap());
            }
        }
    }
}

#[tokio::test]
async fn large_body_is_counted_once_for_all_its_responses() {
    let service = ServiceFixture::start().await;
    let long = VideoId::new(Platform::YouTube, "longlonglon").unwrap();
    let segments = (0..9_000).map(|n| Segment::new("a long talk", n * 401, n)).collect();
    service.keep(Transcript { segments, ..transcript(&long) }).await;
    let used = || (service.bodies.cached_budget.usage().0, service.app.account_budget.usage().0);
    let answer = async |format: &str| {
        let target = format!("/api/transcript?v={}&format={format}", long.id());
        let answer =
            service.http.answer(request("GET", &target, &[], ""), "192.0.2.1".parse().unwrap()).await;
        assert_eq!(answer.status(), 200);
        answer
    };
    let reserved = async |format: &str| {
        let body = answer(format).await.into_body().collect().await.unwrap().to_bytes();
        assert!(body.len() > 64 * 1024);
        (body.len() as u64).next_multiple_of(1024)
    };
    let held = [answer("text").await, answer("text").await, answer("text").await];
    assert_eq!(used(), (reserved("text").await, 0));
    drop(held);
    // It is still in the cache.
    assert_eq!(used(), (reserved("text").await, 0));

    // Removed bodies have the rest of the cache's memory.
    let _rest = service.bodies.cached_budget.reserve_available(1 << 40).unwrap();
    let (cached, _) = used();
    let held = [answer("srt").await, answer("srt").await];
    assert_eq!(used(), (cached, 2 * reserved("srt").await));
    drop(held);
    assert_eq!(used(), (cached, 0));
    assert_eq!(service.bodies.usage(false).entries, 1);
}

#[tokio::test]
async fn large_body_longer_than_estimate_is_sent_uncached_if_cache_has_no_memory() {
    let service = ServiceFixture::start().await;
    let long = VideoId::new(Platform::YouTube, "longlonglon").unwrap();
    // WebVTT escapes `&`: five bytes for one.
    let segments = (0..1_000).map(|n| Segment::new("&".repeat(100), n * 1_000, 900)).collect();
    service.keep(Transcript { segments, ..transcript(&long) }).await;
    let all = usize::try_from(service.bodies.cached_budget.usage().1).unwrap();
    let _most = service.bodies.cached_budget.try_reserve(all - (300 << 10)).unwrap();
    let target = format!("/api/transcript?v={}&format=vtt", long.id());
    let sent = service.get(&target).await;
    assert_eq!(sent.status, 200, "{sent:?}");
    assert!(sent.text.len() > 500_000);
    assert_eq!(service.bodies.usage(false).entries, 0);
    let _others = service.app.body_budget.try_reserve(1 << 40).unwrap();
    assert_eq!(service.get(&target).await.status, 503);
}

/// The metadata of a live video with one chapter, whose title is hostile.
fn live_metadata() -> VideoMetadata {
    VideoMetadata {
        author_id: Some("UCann".to_owned()),
        live: Some(LiveStatus::WasLive),
        chapters: vec![Chapter { title: "</script>\" one".to_owned(), start_ms: 1_500 }],
        ..VideoMetadata::default()
    }
}

#[tokio::test]
async fn changed_details_change_cached_bodies_and_etag() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let v1 = format!("/api/v1/transcript?video_id={ARCHIVED}&lang=en");
    let (mut earlier, mut charged) = (service.get(&path("")).await, service.get_with(&v1, &key).await);
    for _ in 0..2 {
        earlier = service.get(&path("")).await;
        charged = service.get_with(&v1, &key).await;
    }
    assert_eq!((earlier.json().get("chapters"), charged.json().get("chapters")), (None, None));
    assert_eq!(charged.json()["requested_language"], "en");
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    service.keep_with(transcript(&video), live_metadata()).await;
    tokio::time::sleep(verbatim::read_cache::CHANGE_COUNTER_AGE_MAX).await;
    let expect = serde_json::json!([{ "title": "</script>\" one", "start": 1.5 }]);
    for _ in 0..3 {
        let (now, charged) = (service.get(&path("")).await, service.get_with(&v1, &key).await);
        assert_eq!((&now.json()["chapters"], &charged.json()["chapters"]), (&expect, &expect));
        assert_eq!(now.json()["metadata"]["live"], "was_live");
        assert_eq!(now.json()["metadata"]["authorId"], "UCann");
        assert_eq!(charged.json()["metadata"]["author_id"], "UCann");
        assert!(now.header("etag") != earlier.header("etag"));
        assert_eq!((&now.json()["transcript"], now.status), (&earlier.json()["transcript"], earlier.status));
    }
    let written = get(&service, &path(""), &[("authorization", "Bearer vbk_unknown")]).await;
    assert_eq!(written.text, service.get(&path("")).await.text);
}

#[tokio::test]
async fn encodings_have_same_content_and_own_etag() {
    let service = ServiceFixture::start().await;
    let plain = service.get(&path("")).await;
    let mut tags = vec![plain.header("etag").unwrap().to_owned()];
    assert_eq!(plain.header("content-encoding"), None);
    for encoding in ["gzip", "br", "zstd"] {
        for _ in 0..2 {
            let request = request("GET", &path(""), &[("accept-encoding", encoding)], "");
            let (head, bytes) = raw(&service, request).await;
            assert_eq!(head.headers["content-encoding"], encoding);
            assert_eq!(head.headers["vary"], "accept-encoding, authorization");
            let mut text = String::new();
            match encoding {
                "gzip" => drop(flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut text)),
                "br" => drop(brotli::Decompressor::new(&bytes[..], 4096).read_to_string(&mut text)),
                _ => text = String::from_utf8(zstd::decode_all(&bytes[..]).unwrap()).unwrap(),
            }
            assert_eq!(text, plain.text, "{encoding}");
            tags.push(head.headers["etag"].to_str().unwrap().to_owned());
        }
    }
    for rest in ["&format=text", "&format=md", "&src=mcp_other"] {
        tags.extend([service.get(&path(rest)).await.header("etag").unwrap().to_owned()]);
    }
    tags.sort_unstable();
    tags.dedup();
    assert_eq!(tags.len(), 7, "{tags:?}");
}

#[tokio::test]
async fn request_of_other_server_leaves_etag_of_callers() {
    let service = ServiceFixture::start().await;
    let tag = service.get(&path("&fresh")).await.header("etag").unwrap().to_owned();
    for _ in 0..2 {
        let hop = get(&service, &path(""), &[("x-verbatim-hop", "1")]).await;
        assert_eq!((hop.status.as_u16(), &hop.json()["available"]), (200, &true.into()));
        assert_eq!(service.get(&path("")).await.header("etag"), Some(tag.as_str()));
    }
}

#[tokio::test]
async fn if_none_match_current_etag_returns_304() {
    let service = ServiceFixture::start().await;
    let tag = service.get(&path("")).await.header("etag").unwrap().to_owned();
    assert!(tag.starts_with('"') && tag.ends_with('"'), "a strong tag: {tag}");
    let weak = format!("\"x,y\", W/{tag}");
    for (name, value, status) in [
        ("if-none-match", tag.as_str(), 304),
        ("if-none-match", &weak, 304),
        ("if-none-match", "*", 304),
        ("if-none-match", "\"other\"", 200),
        ("if-none-match", "\u{e9}\"", 200),
        ("if-modified-since", "Fri, 20 Nov 2099 00:00:00 GMT", 200),
        ("if-modified-since", "nonsense", 200),
        ("if-match", "\"other\"", 200),
        ("if-range", &tag, 200),
        ("range", "bytes=0-0", 200),
        ("range", "bytes=99999999-", 200),
        ("range", "nonsense=\u{e9}", 200),
    ] {
        for target in [path(""), path("&fresh")] {
            let answer = get(&service, &target, &[(name, value)]).await;
            assert_eq!(answer.status.as_u16(), status, "{name}: {value}");
            assert_eq!(answer.header("etag"), Some(tag.as_str()), "{name}: {value}");
            assert_eq!(answer.header("vary"), Some("accept-encoding, authorization"));
            assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
            if status == 304 {
                assert_eq!((answer.text.as_str(), answer.header("content-length")), ("", None));
                assert_eq!(answer.header("cache-control"), Some("no-cache"));
            } else {
                assert_eq!(answer.json()["available"], true);
                assert_eq!(answer.header("content-range"), None);
            }
        }
    }
}

#[tokio::test]
async fn head_response_has_headers_of_get() {
    let service = ServiceFixture::start().await;
    for _ in 0..2 {
        for headers in [&[][..], &[("accept-encoding", "gzip")]] {
            let (head, body) = raw(&service, request("HEAD", &path(""), headers, "")).await;
            let (get, whole) = raw(&service, request("GET", &path(""), headers, "")).await;
            assert_eq!((head.status.as_u16(), body.len()), (200, 0));
            assert_eq!(head.headers["content-length"], whole.len().to_string());
            assert_eq!(head.headers["etag"], get.headers["etag"]);
        }
    }
}

#[tokio::test]
async fn cache_control_allows_archived_anonymous_responses_only() {
    let service = ServiceFixture::start().await;
    let key = format!("Bearer {}", service.key().await);
    let tag = service.get(&path("")).await.header("etag").unwrap().to_owned();
    let keyed = [("authorization", key.as_str()), ("if-none-match", tag.as_str())];
    for target in [path(""), path("&format=text")] {
        service.get(&target).await;
        let answer = get(&service, &target, &keyed).await;
        assert_eq!((answer.status.as_u16(), answer.header("cache-control")), (200, Some("no-store")));
    }
    let answer = get(&service, &path(""), &keyed).await;
    assert_eq!((&answer.json()["key"]["used"], answer.header("etag")), (&0.into(), None));
    // A request with an unknown key is not an anonymous request.
    let unknown = get(&service, &path(""), &[("authorization", "Bearer vbk_unknown")]).await;
    assert_eq!(unknown.header("cache-control"), Some("no-store"));
    let miss = get(&service, &format!("/api/transcript?v={NEW}"), &[("if-none-match", "*")]).await;
    assert_eq!((miss.status.as_u16(), miss.header("cache-control")), (200, Some("no-store")));
    assert_eq!(miss.header("etag"), None);
}

#[tokio::test]
async fn accept_encoding_without_match_returns_406() {
    let service = ServiceFixture::start().await;
    for _ in 0..2 {
        let refused = get(&service, &path(""), &[("accept-encoding", "identity;q=0")]).await;
        assert_eq!(refused.status, 406);
        assert_eq!(refused.header("vary"), Some("accept-encoding, authorization"));
        assert_eq!(service.get(&path("")).await.status, 200);
    }
}

#[tokio::test]
async fn archive_change_invalidates_cached_response() {
    let service = ServiceFixture::start().await;
    let first = service.get(&path("")).await;
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    let now = transcript_core::Timestamp::from_millis(0);
    let bound = verbatim::read_cache::CHANGE_COUNTER_AGE_MAX + Duration::from_millis(1);
    service.archive.withdraw(&video, true, now).await.unwrap();
    tokio::time::sleep(bound).await;
    assert_eq!(service.get(&path("")).await.json()["failureReason"], "no_captions");
    service.archive.withdraw(&video, false, now).await.unwrap();
    tokio::time::sleep(bound).await;
    let back = service.get(&path("")).await;
    assert_eq!((back.header("etag"), &back.text), (first.header("etag"), &first.text));
    // Deleted and archived again with other words.
    service.archive.delete(&video).await.unwrap();
    let mut other = transcript(&video);
    other.segments[0].text = "It is not so".to_owned();
    service.keep(other).await;
    tokio::time::sleep(bound).await;
    let renewed = service.get(&path("")).await;
    assert_ne!(renewed.header("etag"), first.header("etag"));
    assert_eq!(renewed.json()["transcript"][0]["text"], "It is not so");
    let gone = service.archive.delete(&video).await;
    gone.unwrap();
    tokio::time::sleep(bound).await;
    assert_eq!(service.get(&path("")).await.json()["failureReason"], "needs_verification");
}
