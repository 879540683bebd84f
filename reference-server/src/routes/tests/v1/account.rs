use std::time::Duration;

use super::errors::check;
use crate::testing::{ARCHIVED, ServiceFixture, request};

#[tokio::test]
async fn account_info_shows_plan_and_credits() {
    let service = ServiceFixture::start().await;
    let key = service.account("Ann@Example.org").await;
    let me = service.get_with("/api/v1/me", &key).await;
    assert_eq!(me.status, 200, "{me:?}");
    assert_eq!(
        me.json(),
        serde_json::json!({
            "email": "ann@example.org", "plan": "free", "credits_remaining": 200, "credits_total": 200,
            "resets_at": "2026-12-20T00:00:00Z"
        })
    );
    assert_eq!(me.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(me.header("cache-control"), Some("no-store"));
    assert_eq!(me.header("ratelimit-policy"), Some("\"account\";q=10;w=60"));
    assert_eq!(me.header("ratelimit"), Some("\"account\";r=9;t=60"));
    assert_eq!(service.get_with("/api/v1/me", &key).await.header("ratelimit"), Some("\"account\";r=8;t=60"));
}

#[tokio::test]
async fn rate_limit_retry_after_is_sufficient() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for n in 0..10 {
        assert_eq!(service.get_with("/api/v1/me", &key).await.status, 200);
        service.clock.advance(Duration::from_secs(if n < 9 { 1 } else { 0 }));
    }
    let refused = service.get_with("/api/v1/me", &key).await;
    check(&refused, 429, "Too many requests: this account may make 10 in any 60 seconds");
    assert_eq!(refused.header("retry-after"), Some("51"));
    assert_eq!(refused.header("ratelimit"), Some("\"account\";r=0;t=51"));
    assert_eq!(refused.header("ratelimit-policy"), Some("\"account\";q=10;w=60"));
    // The rate limit is checked before the parameters.
    check(&service.get_with("/api/v1/transcript", &key).await, 429, "Too many");
    service.clock.advance(Duration::from_secs(51));
    assert_eq!(service.get_with("/api/v1/me", &key).await.status, 200);
    check(&service.get_with("/api/v1/me", &key).await, 429, "Too many");
}

#[tokio::test]
async fn malformed_idempotency_key_is_counted_and_rejected_with_rate_limit() {
    let service = ServiceFixture::start().await;
    let bearer = format!("Bearer {}", service.account("ann@example.org").await);
    let chat = format!(r#"{{"video_id":"{ARCHIVED}","message":"Is it quiet?"}}"#);
    let transcript = format!("/api/v1/transcript?video_id={ARCHIVED}");
    let too_long = "k".repeat(256);
    for (name, remaining) in [("a b", [9, 8]), ("", [7, 6]), (&too_long, [5, 4])] {
        let headers = [
            ("authorization", bearer.as_str()),
            ("idempotency-key", name),
            ("content-type", "application/json"),
        ];
        let get = service.send(request("GET", &transcript, &headers, "")).await;
        let post = service.send(request("POST", "/api/v1/chat", &headers, &chat)).await;
        for (refused, remaining) in [get, post].iter().zip(remaining) {
            check(refused, 400, "Idempotency-Key: use 1 to 255 visible ASCII characters");
            assert_eq!(refused.header("ratelimit-policy"), Some("\"account\";q=10;w=60"));
            assert_eq!(refused.header("ratelimit"), Some(&*format!("\"account\";r={remaining};t=60")));
        }
    }
}

#[tokio::test]
async fn rotate_key_invalidates_old_key_at_once() {
    let service = ServiceFixture::start().await;
    let old = service.account("ann@example.org").await;
    assert_eq!(service.get_with(&format!("/api/v1/transcript?video_id={ARCHIVED}"), &old).await.status, 200);
    let bearer = format!("Bearer {old}");
    // The idempotency key and the body are ignored.
    let headers = [("authorization", bearer.as_str()), ("idempotency-key", "once")];
    let rotated = service.send(request("POST", "/api/v1/rotate-key", &headers, "no body at all")).await;
    assert_eq!(rotated.status, 200, "{rotated:?}");
    assert_eq!(rotated.header("cache-control"), Some("no-store"));
    assert_eq!(rotated.json()["success"], true);
    let new = rotated.json()["api_key"].as_str().unwrap().to_owned();
    assert!(new.starts_with("vba_") && new != old);
    let again = service.send(request("POST", "/api/v1/rotate-key", &headers, "")).await;
    check(&again, 401, "The API key is unknown, or was replaced");
    let me = service.get_with("/api/v1/me", &new).await;
    assert_eq!((me.status.as_u16(), &me.json()["credits_remaining"]), (200, &199.into()));
}
