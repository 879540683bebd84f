use axum::body::Body;
use http::Request;

use super::errors::check;
use crate::testing::{PaymentSetup, ServiceFixture, TestResponse, request};

const PATH: &str = "/api/v1/webhooks/stripe";

async fn event(service: &ServiceFixture, signatures: &[&str], body: &[u8]) -> TestResponse {
    let mut request = Request::post(PATH).header("host", "v.example");
    for signature in signatures {
        request = request.header("stripe-signature", *signature);
    }
    service.send(request.body(Body::from(body.to_vec())).unwrap()).await
}

#[tokio::test]
async fn webhook_event_is_acknowledged_after_processing() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let answer = event(&service, &["good"], b"nothing").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "{\"received\":true}"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for body in [&b"cs_1"[..], b"pi_1"] {
        let answer = event(&service, &["good"], body).await;
        check(&answer, 500, "The event could not be processed. Send it again.");
    }
    check(&event(&service, &["good"], b"defect").await, 500, "The server could not process the request");
}

#[tokio::test(start_paused = true)]
async fn webhook_slow_provider_fails_at_timeout() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    let before = tokio::time::Instant::now();
    check(&event(&service, &["good"], b"slow").await, 500, "The event could not be processed");
    assert!(before.elapsed().as_secs() <= 10, "{:?}", before.elapsed());
}

#[tokio::test]
async fn webhook_invalid_signature_is_rejected() {
    let service = ServiceFixture::with_payments(PaymentSetup::Unavailable).await;
    check(&event(&service, &[], b"cs_1").await, 400, "The event was rejected: the signature is missing.");
    let wrong = "The event was rejected: the signature is wrong.";
    for signatures in [&["bad"][..], &[""], &["good", "good"], &["good", "bad"], &["g\u{f6}od"]] {
        check(&event(&service, signatures, b"cs_1").await, 400, wrong);
    }
    check(&event(&service, &["good"], &vec![b'x'; 2 << 20]).await, 413, "The body is too large");
    let get = service.send(request("GET", PATH, &[], "")).await;
    assert_eq!((get.status.as_u16(), get.header("allow")), (405, Some("POST, OPTIONS")));
}

#[tokio::test]
async fn webhook_without_provider_returns_404() {
    let service = ServiceFixture::with_payments(PaymentSetup::Nothing).await;
    let answer = event(&service, &["good"], b"nothing").await;
    check(&answer, 404, "This server accepts no events: payments are not configured.");
    let service = ServiceFixture::start().await;
    check(&event(&service, &["good"], b"nothing").await, 400, "The event was rejected: the sandbox");
}
