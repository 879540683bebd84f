use std::{io::Read, sync::atomic::Ordering};

use http_body_util::BodyExt;
use transcript_core::{
    Clock,
    archive::Archive,
    transcript::{Segment, Transcript},
    video::{Platform, VideoId},
};

use super::errors::check;
use crate::response_cache::EXPIRE;
use crate::testing::{
    ARCHIVED, DEFECT, NEW, PaymentSetup, SILENT, ServiceFixture, TestResponse, request, transcript,
};

async fn get(service: &ServiceFixture, key: &str, query: &str) -> TestResponse {
    service.get_with(&format!("/api/v1/transcript?{query}"), key).await
}

async fn get_once(service: &ServiceFixture, key: &str, name: &str, query: &str) -> TestResponse {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", name)];
    service.send(request("GET", &format!("/api/v1/transcript?{query}"), &headers, "")).await
}

async fn left(service: &ServiceFixture, key: &str) -> u64 {
    service.get_with("/api/v1/me", key).await.json()["credits_remaining"].as_u64().unwrap()
}

#[tokio::test]
async fn v1_transcript_costs_one_credit_archived_or_not() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let hit = get(&service, &key, &format!("video_id={ARCHIVED}")).await;
    assert_eq!(hit.status, 200, "{hit:?}");
    assert_eq!((hit.header("x-cache"), hit.header("x-credits-remaining")), (Some("HIT"), Some("199")));
    assert_eq!(hit.header("cache-control"), Some("no-store"));
    assert_eq!(hit.header("ratelimit"), Some("\"account\";r=9;t=60"));
    assert_eq!(
        hit.json(),
        serde_json::json!({
            "video_id": ARCHIVED, "title": "A talk", "language": "en", "is_generated": false,
            "languages": [{ "tag": "en", "name": "English", "kind": "manual", "original": false }],
            "metadata": { "title": "A talk", "author": "Ann", "duration_seconds": 60.0 },
            "segments": [
                { "text": "It is so", "start": 1.5, "duration": 1.25 },
                { "text": "quiet here.", "start": 2.75, "duration": 2.0 }
            ]
        })
    );
    let miss = get(&service, &key, &format!("url=https%3A%2F%2Fyoutu.be%2F{NEW}&lang=en-GB")).await;
    assert_eq!((miss.status.as_u16(), miss.header("x-cache")), (200, Some("MISS")), "{miss:?}");
    assert_eq!(miss.header("x-credits-remaining"), Some("198"));
    assert_eq!(left(&service, &key).await, 198);
}

#[tokio::test]
async fn v1_body_is_not_built_before_key_is_checked() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let query = format!("video_id={ARCHIVED}");
    // The first request caches what the query selects.
    assert_eq!(get(&service, &key, &query).await.status, 200);
    for wrong in ["vba_unknown", "vbk_unknown", ""] {
        for _ in 0..2 {
            let denied = get(&service, wrong, &query).await;
            assert_eq!((denied.status.as_u16(), denied.header("cache-control")), (401, Some("no-store")));
        }
        assert_eq!(service.bodies.usage(true).entries, 0);
    }
    // A body that is made fast is cached at its second request.
    for cached in [0, 1] {
        assert_eq!(get(&service, &key, &query).await.header("cache-control"), Some("no-store"));
        assert_eq!(service.bodies.usage(true).entries, cached);
    }
}

#[tokio::test]
async fn v1_transcript_failure_costs_nothing() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for (query, status, begins) in [
        ("", 400, "video_id: "),
        ("video_id=short", 400, "video_id: "),
        ("video_id=dQw4w9WgXcQ&url=https://youtu.be/dQw4w9WgXcQ", 400, "video_id and url: "),
        ("video_id=dQw4w9WgXcQ&video_id=dQw4w9WgXcQ", 400, "video_id: it is there more than once"),
        ("url=https://www.tiktok.com/@scout2015/video/6718335390845095173", 400, "url: this endpoint is for"),
        ("url=", 400, "url: this is no link to a YouTube video"),
        ("url=words", 400, "url: this is no link to a YouTube video"),
        ("url=https://vimeo.com/1", 400, "url: this is no link to a YouTube video"),
        ("url=https://www.tiktok.com/@scout2015", 400, "url: this is no link to a YouTube video"),
        ("url=https://www.youtube.com/feed/you", 400, "url: this YouTube link leads to"),
        ("video_id=dQw4w9WgXcQ&lang=english+please", 400, "lang: "),
        (&format!("video_id={SILENT}"), 404, "This video"),
        (&format!("video_id={DEFECT}"), 500, ""),
    ] {
        service.clock.advance(std::time::Duration::from_secs(60));
        let answer = get(&service, &key, query).await;
        check(&answer, status, begins);
        assert!(answer.header("ratelimit").is_some() && !answer.text.contains("TikTok"), "{answer:?}");
    }
    assert_eq!(left(&service, &key).await, 200);
}

#[tokio::test]
async fn v1_transcript_replay_costs_nothing() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let query = format!("video_id={NEW}");
    let first = get_once(&service, &key, "a-name", &query).await;
    assert_eq!((first.status.as_u16(), first.header("idempotent-replayed")), (200, None), "{first:?}");
    for _ in 0..20 {
        // Replays do not count toward the rate limit.
        let again = get_once(&service, &key, "a-name", &query).await;
        assert_eq!((again.status.as_u16(), &again.text), (200, &first.text));
        assert_eq!(again.header("idempotent-replayed"), Some("true"));
        assert_eq!(again.header("x-cache"), Some("MISS"));
        assert_eq!(again.header("x-credits-remaining"), Some("199"));
        assert_eq!(again.header("content-type"), first.header("content-type"));
        assert_eq!(again.header("ratelimit"), None);
    }
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 1);
    check(&get_once(&service, &key, "a-name", "video_id=bbbbbbbbbbb").await, 400, "Idempotency-Key: ");
    check(&get_once(&service, &key, &"x".repeat(300), &query).await, 400, "Idempotency-Key: ");
    check(&get_once(&service, &key, "", &query).await, 400, "Idempotency-Key: ");
    // A failure is not replayed: the idempotency key can be used again.
    check(&get_once(&service, &key, "other", &format!("video_id={SILENT}")).await, 404, "This video");
    check(&get_once(&service, &key, "other", "video_id=nonsense").await, 400, "video_id: ");
    assert_eq!(get_once(&service, &key, "other", &query).await.status, 200);
    assert_eq!(left(&service, &key).await, 198);
}

#[tokio::test]
async fn v1_402_without_payments_does_not_mention_buying() {
    let service = ServiceFixture::with_payments(PaymentSetup::Nothing).await;
    let key = service.account("ann@example.org").await;
    for _ in 0..200 {
        service.clock.advance(std::time::Duration::from_secs(6));
        assert_eq!(get(&service, &key, &format!("video_id={ARCHIVED}")).await.status, 200);
    }
    service.clock.advance(std::time::Duration::from_secs(6));
    let spent = get(&service, &key, &format!("video_id={ARCHIVED}")).await;
    check(&spent, 402, "Not enough credits");
    let message = spent.json()["error"].as_str().unwrap().to_owned();
    assert!(!message.contains("buy-credits") && message.ends_with("Z."), "{message}");
}

#[tokio::test]
async fn v1_transcripts_spend_account_to_zero() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for n in 0..200 {
        service.clock.advance(std::time::Duration::from_secs(6));
        let answer = get(&service, &key, &format!("video_id={ARCHIVED}")).await;
        assert_eq!(answer.header("x-credits-remaining"), Some((199 - n).to_string().as_str()), "{answer:?}");
    }
    service.clock.advance(std::time::Duration::from_secs(6));
    let spent = get(&service, &key, &format!("video_id={ARCHIVED}")).await;
    check(&spent, 402, "Not enough credits");
    assert!(spent.text.contains("Z; POST /api/v1/buy-credits adds credits now."), "{}", spent.text);
    assert_eq!(spent.header("x-credits-remaining"), Some("0"));
    // Invalid parameters are reported before missing credits.
    service.clock.advance(std::time::Duration::from_secs(6));
    check(&get(&service, &key, "video_id=short").await, 400, "video_id: ");
}

/// Requests the archived video with one more header.
async fn get_as(service: &ServiceFixture, key: &str, header: (&str, &str)) -> (http::HeaderMap, Vec<u8>) {
    let (bearer, target) = (format!("Bearer {key}"), format!("/api/v1/transcript?video_id={ARCHIVED}"));
    let request = request("GET", &target, &[("authorization", bearer.as_str()), header], "");
    let (head, body) = service.http.answer(request, [192, 0, 2, 1].into()).await.into_parts();
    assert_eq!(head.status, 200, "{head:?}");
    (head.headers, body.collect().await.unwrap().to_bytes().to_vec())
}

#[tokio::test]
async fn v1_cached_transcript_is_equal_and_charged() {
    let service = ServiceFixture::start().await;
    let (ann, ben) = (service.account("ann@example.org").await, service.account("ben@example.org").await);
    let query = format!("video_id={ARCHIVED}");
    let first = get(&service, &ann, &query).await;
    for (key, credits, requests) in [(&ann, "198", 8), (&ben, "199", 9), (&ann, "197", 7)] {
        let ready = get(&service, key, &query).await;
        assert_eq!((ready.status.as_u16(), &ready.text), (200, &first.text));
        assert_eq!(ready.header("vary"), Some("accept-encoding"), "not from the response cache: {ready:?}");
        assert_eq!(
            (ready.header("x-cache"), ready.header("x-credits-remaining")),
            (Some("HIT"), Some(credits))
        );
        assert_eq!(ready.header("ratelimit"), Some(format!("\"account\";r={requests};t=60").as_str()));
        for name in ["cache-control", "content-type", "ratelimit-policy", "x-content-type-options"] {
            assert_eq!(ready.header(name), first.header(name), "{name}");
        }
    }
    let (headers, body) = get_as(&service, &ann, ("accept-encoding", "zstd")).await;
    assert_eq!(headers["content-encoding"], "zstd");
    assert_eq!(zstd::decode_all(body.as_slice()).unwrap(), first.text.as_bytes());
    let (headers, body) = get_as(&service, &ann, ("accept-encoding", "identity;q=0, *;q=0")).await;
    assert_eq!((headers.get("content-encoding"), body), (None, first.text.clone().into_bytes()));
    // A request with an idempotency key bypasses the cache, because its response is stored.
    assert_eq!(get_once(&service, &ann, "a-name", &query).await.header("x-credits-remaining"), Some("194"));
    assert_eq!(get_once(&service, &ann, "a-name", &query).await.header("idempotent-replayed"), Some("true"));
    assert_eq!(left(&service, &ann).await, 194);
}

#[tokio::test]
async fn v1_cached_transcript_follows_archive_changes() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    for lang in ["", "&lang=en", "&lang=en-GB"] {
        let target = format!("/api/v1/transcript?video_id={ARCHIVED}{lang}");
        let bearer = format!("Bearer {key}");
        let bodies = || async {
            let mut bodies = Vec::new();
            for encoding in ["identity", "zstd", "gzip", "zstd"] {
                service.clock.advance(std::time::Duration::from_secs(6));
                let headers = [("authorization", bearer.as_str()), ("accept-encoding", encoding)];
                let request = request("GET", &target, &headers, "");
                let (head, body) = service.http.answer(request, [192, 0, 2, 1].into()).await.into_parts();
                assert_eq!(head.status, 200, "{head:?}");
                let body = body.collect().await.unwrap().to_bytes().to_vec();
                bodies.push(match head.headers.get("content-encoding").map(|is| is.to_str().unwrap()) {
                    Some("zstd") => zstd::decode_all(body.as_slice()).unwrap(),
                    Some("gzip") => {
                        let mut text = Vec::new();
                        flate2::read::GzDecoder::new(body.as_slice()).read_to_end(&mut text).unwrap();
                        text
                    }
                    _ => body,
                });
            }
            bodies.dedup();
            assert_eq!(bodies.len(), 1, "{lang}");
            serde_json::from_slice::<serde_json::Value>(&bodies[0]).unwrap()
        };
        for text in ["It is so", "It was so"] {
            service.archive.delete(&video).await.unwrap();
            let mut other = transcript(&video);
            other.segments[0].text = text.to_owned();
            service.keep(other).await;
            tokio::time::sleep(EXPIRE).await;
            for _ in 0..3 {
                assert_eq!(bodies().await["segments"][0]["text"], text, "{lang}");
            }
        }
    }
}

#[tokio::test]
async fn v1_cached_transcript_is_rejected_like_uncached() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let query = format!("video_id={ARCHIVED}");
    assert_eq!(get(&service, &key, &query).await.status, 200);
    check(&service.get(&format!("/api/v1/transcript?{query}")).await, 401, "This needs an API key");
    let wrong = get(&service, "vba_wrong", &query).await;
    check(&wrong, 401, "The API key is not one of this service");
    assert_eq!(wrong.header("www-authenticate"), Some("Bearer realm=\"verbatim\", error=\"invalid_token\""));
    for _ in 0..9 {
        assert_eq!(get(&service, &key, &query).await.status, 200);
    }
    let too_fast = get(&service, &key, &query).await;
    check(&too_fast, 429, "Too many requests");
    assert_eq!(
        (too_fast.header("retry-after"), too_fast.header("ratelimit")),
        (Some("60"), Some("\"account\";r=0;t=60"))
    );
    service.clock.advance(std::time::Duration::from_secs(60));
    // A rotated key is invalid at once, also for cached responses.
    let bearer = format!("Bearer {key}");
    let rotate = request("POST", "/api/v1/rotate-key", &[("authorization", bearer.as_str())], "");
    let new = service.send(rotate).await.json()["api_key"].as_str().unwrap().to_owned();
    check(&get(&service, &key, &query).await, 401, "The API key is unknown, or was replaced");
    assert_eq!(get(&service, &new, &query).await.header("x-credits-remaining"), Some("189"));
    // A withdrawn transcript is not sent after the change counter expired (50 ms).
    let video = VideoId::new(Platform::YouTube, ARCHIVED).unwrap();
    service.archive.withdraw(&video, true, service.clock.now()).await.unwrap();
    tokio::time::sleep(EXPIRE).await;
    check(&get(&service, &new, &query).await, 404, "This transcript was withdrawn");
    assert_eq!(left(&service, &new).await, 189);
}

#[tokio::test]
async fn account_requests_have_memory_when_others_use_all_of_theirs() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let long = VideoId::new(Platform::YouTube, "longlonglon").unwrap();
    let segments = (0..9_000).map(|n| Segment::new("a long talk", n * 401, n)).collect();
    service.keep(Transcript { segments, ..transcript(&long) }).await;
    let query = format!("video_id={}", long.id());
    // The first request caches what the query selects.
    assert_eq!(get(&service, &key, &query).await.status, 200);
    let _cached = service.bodies.cached_budget.try_reserve(1 << 40).unwrap();
    let _others = service.app.body_budget.try_reserve(1 << 40).unwrap();
    let lookup = format!("/api/transcript?v={}&format=text", long.id());
    assert_eq!(service.get(&lookup).await.status, 503);
    let bearer = format!("Bearer {key}");
    for encoding in ["gzip", "identity"] {
        let headers = [("authorization", bearer.as_str()), ("accept-encoding", encoding)];
        let sent = service.send(request("GET", &format!("/api/v1/transcript?{query}"), &headers, "")).await;
        assert_eq!((sent.status.as_u16(), sent.header("x-cache")), (200, Some("HIT")), "{encoding}");
    }
    let turn = serde_json::json!({ "role": "user", "content": "a".repeat(2_000) });
    let body = serde_json::json!({
        "video_id": ARCHIVED, "message": "How quiet is it?", "conversation_history": vec![turn; 10]
    });
    let headers = [("authorization", bearer.as_str())];
    let chat = service.send(request("POST", "/api/v1/chat", &headers, &body.to_string())).await;
    assert_eq!(chat.status, 200, "{chat:?}");
    // Their memory is bounded, too.
    let _kept = service.app.account_budget.try_reserve(1 << 40).unwrap();
    let refused = service.send(request("POST", "/api/v1/chat", &headers, &body.to_string())).await;
    check(&refused, 503, "The server is sending or receiving too many large bodies.");
}
