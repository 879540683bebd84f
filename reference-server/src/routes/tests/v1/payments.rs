use std::time::Duration;

use axum::body::Body;
use http::Request;
use serde_json::json;

use super::errors::check;
use crate::testing::{PaymentSetup, ServiceFixture, TestResponse, request};

const BUY: &str = "/api/v1/buy-credits";
const SUBSCRIBE: &str = "/api/v1/subscribe";

async fn post(service: &ServiceFixture, key: &str, path: &str, body: &str) -> TestResponse {
    post_as(service, path, &[("authorization", &format!("Bearer {key}"))], body.as_bytes()).await
}

async fn post_once(service: &ServiceFixture, key: &str, path: &str, name: &str, body: &str) -> TestResponse {
    let headers = [("authorization", &*format!("Bearer {key}")), ("idempotency-key", name)];
    post_as(service, path, &headers, body.as_bytes()).await
}

async fn post_as(
    service: &ServiceFixture,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> TestResponse {
    // More calls than a free account may make per minute.
    service.clock.advance(Duration::from_secs(7));
    let mut request = Request::post(path).header("host", "v.example");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    service.send(request.body(Body::from(body.to_vec())).unwrap()).await
}

#[tokio::test]
async fn buy_credits_matches_specification() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for (pack, credits, price) in [
        ("1k", 1_000, 12),
        ("2k", 2_000, 20),
        ("5k", 5_000, 40),
        ("10k", 10_000, 70),
        ("25k", 25_000, 150),
        ("50k", 50_000, 250),
    ] {
        let answer = post(&service, &key, BUY, &format!("{{\"pack\": \"{pack}\"}}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.header("ratelimit").is_some());
        let body = answer.json();
        assert_eq!(body.as_object().unwrap().len(), 4, "{body}");
        assert_eq!((&body["pack"], &body["credits"]), (&json!(pack), &json!(credits)));
        assert_eq!(body["price_usd"].as_f64(), Some(f64::from(price)));
        let url = body["checkout_url"].as_str().unwrap();
        assert!(url.starts_with("https://v.example/checkout/buy-credits-"), "{url}");
    }
}

#[tokio::test]
async fn subscribe_matches_specification() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for plan in ["starter", "pro"] {
        let answer = post(&service, &key, SUBSCRIBE, &format!("{{\"plan\": \"{plan}\"}}")).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        let body = answer.json();
        assert_eq!((body.as_object().unwrap().len(), &body["success"]), (2, &json!(true)), "{body}");
        let url = body["checkout_url"].as_str().unwrap();
        assert!(url.starts_with("https://v.example/checkout/subscribe-"), "{url}");
    }
    let unpriced = post(&service, &key, SUBSCRIBE, "{\"plan\": \"scale\"}").await;
    check(&unpriced, 400, "plan: scale is not for sale here");
}

#[tokio::test]
async fn order_invalid_body_is_described() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let bearer = format!("Bearer {key}");
    let authorized = ("authorization", bearer.as_str());
    let huge = [b"{\"pack\": \"".as_slice(), &vec![b'x'; 2 << 20], b"\"}"].concat();
    let packs = "pack: it must be one of 1k, 2k, 5k, 10k, 25k, 50k";
    let plans = "plan: it must be one of starter, pro, scale";
    for (path, body, status, begins) in [
        (BUY, &b""[..], 400, "body: it is missing: send JSON such as {\"pack\": …}"),
        (BUY, b"{}", 400, "pack: it is missing"),
        (BUY, b"{\"pack\": null}", 400, "pack: it is missing"),
        (BUY, b"{\"pack\": 1000}", 400, "pack: it must be a string"),
        (BUY, b"{\"pack\": [\"1k\"]}", 400, "pack: it must be a string"),
        (BUY, b"{\"pack\": \"\"}", 400, packs),
        (BUY, b"{\"pack\": \"1K\"}", 400, packs),
        (BUY, b"{\"pack\": \"3k\"}", 400, packs),
        (BUY, b"{\"pack\": \"1k\", \"plan\": \"pro\"}", 400, "body: there is no field \"plan\""),
        (BUY, b"{\"pack\": \"1k\", \"credits\": 9}", 400, "body: there is no field \"credits\""),
        (BUY, b"[\"1k\"]", 400, "body: it must be a JSON object"),
        (BUY, b"{\"pack\": \"1k\"", 400, "body: it is no valid JSON"),
        (BUY, b"{\"pack\": \"\xff\xfe\"}", 400, "body: it is no valid JSON"),
        (BUY, &huge, 413, "The body is too large"),
        (SUBSCRIBE, b"", 400, "body: it is missing: send JSON such as {\"plan\": …}"),
        (SUBSCRIBE, b"{\"pack\": \"1k\"}", 400, "body: there is no field \"pack\""),
        (SUBSCRIBE, b"{\"plan\": 3}", 400, "plan: it must be a string"),
        (SUBSCRIBE, b"{\"plan\": \"free\"}", 400, plans),
        (SUBSCRIBE, b"{\"plan\": \"Pro\"}", 400, plans),
        (SUBSCRIBE, b"\"pro\"", 400, "body: it must be a JSON object"),
        (SUBSCRIBE, b"\xc3\x28", 400, "body: it is no valid JSON"),
        (SUBSCRIBE, &huge, 413, "The body is too large"),
    ] {
        let answer = post_as(&service, path, &[authorized], body).await;
        check(&answer, status, begins);
        assert!(answer.header("ratelimit").is_some(), "{answer:?}");
        // Authentication comes first, whatever the body is.
        check(&post_as(&service, path, &[], body).await, 401, "This needs an API key");
    }
    let text = [authorized, ("content-type", "text/plain")];
    check(&post_as(&service, BUY, &text, b"{\"pack\": \"1k\"}").await, 415, "The body must be JSON");
}

#[tokio::test]
async fn order_repeated_returns_same_order() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let (one, two) = ("{\"pack\": \"1k\"}", "{\"pack\": \"2k\"}");
    let first = post_once(&service, &key, BUY, "mine", one).await;
    let again = post_once(&service, &key, BUY, "mine", one).await;
    assert_eq!((first.status.as_u16(), &first.text), (200, &again.text));
    assert_eq!(
        (first.header("idempotent-replayed"), again.header("idempotent-replayed")),
        (None, Some("true"))
    );
    check(&post_once(&service, &key, BUY, "mine", two).await, 400, "Idempotency-Key: this key was used");
    check(&post_once(&service, &key, BUY, "", one).await, 400, "Idempotency-Key: use");
    // The same idempotency key on another route or of another account is a different one.
    assert_eq!(post_once(&service, &key, SUBSCRIBE, "mine", "{\"plan\": \"pro\"}").await.status, 200);
    let ben = service.account("ben@example.org").await;
    assert_ne!(post_once(&service, &ben, BUY, "mine", one).await.text, first.text);
    // Without an idempotency key each request is a new order.
    assert_ne!(post(&service, &key, BUY, one).await.text, post(&service, &key, BUY, one).await.text);
    // A failed order can be repeated with its key.
    check(&post_once(&service, &key, BUY, "other", "{\"pack\": \"9k\"}").await, 400, "pack: ");
    assert_eq!(post_once(&service, &key, BUY, "other", two).await.status, 200);
}

#[tokio::test]
async fn order_rate_limit_is_checked_before_body() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    for _ in 0..10 {
        let answer = service.send(request("POST", BUY, &headers, "{\"pack\": \"9k\"}")).await;
        check(&answer, 400, "pack: ");
    }
    for path in [BUY, SUBSCRIBE] {
        check(&service.send(request("POST", path, &headers, "nonsense")).await, 429, "Too many requests");
    }
}

#[tokio::test]
async fn order_without_provider_returns_500() {
    let service = ServiceFixture::with_payments(PaymentSetup::Nothing).await;
    let key = service.account("ann@example.org").await;
    for (path, body) in [(BUY, "{\"pack\": \"1k\"}"), (SUBSCRIBE, "{\"plan\": \"pro\"}")] {
        let answer = post_once(&service, &key, path, "name", body).await;
        check(&answer, 500, "This server sells nothing: payments are not configured.");
        // An invalid body is reported first.
        check(&post(&service, &key, path, "{}").await, 400, "p");
    }
}

#[tokio::test]
async fn order_unavailable_provider_returns_500_and_can_be_retried() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let key = service.account("ann@example.org").await;
    for (path, body) in [(BUY, "{\"pack\": \"1k\"}"), (SUBSCRIBE, "{\"plan\": \"pro\"}")] {
        for _ in 0..2 {
            let answer = post_once(&service, &key, path, "name", body).await;
            check(&answer, 500, "The payment page could not be opened: nothing was charged");
        }
    }
    // The order of this key is stored with its first item.
    let other = post_once(&service, &key, BUY, "name", "{\"pack\": \"2k\"}").await;
    check(&other, 409, "The order of this Idempotency-Key is paid, in payment, or a different one");
}
