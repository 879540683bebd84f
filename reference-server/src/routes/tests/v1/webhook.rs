use axum::body::Body;
use http::Request;

use super::errors::check;
use crate::testing::{Answer, Selling, Service, request};

const PATH: &str = "/api/v1/webhooks/stripe";

async fn event(service: &Service, signatures: &[&str], body: &[u8]) -> Answer {
    let mut request = Request::post(PATH).header("host", "v.example");
    for signature in signatures {
        request = request.header("stripe-signature", *signature);
    }
    service.send(request.body(Body::from(body.to_vec())).unwrap()).await
}

#[tokio::test]
async fn an_event_is_acknowledged_when_it_is_done() {
    let service = Service::selling(Selling::Away).await;
    let answer = event(&service, &["good"], b"nothing").await;
    assert_eq!((answer.status.as_u16(), answer.text.as_str()), (200, "{\"received\":true}"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    for body in [&b"cs_1"[..], b"pi_1"] {
        let answer = event(&service, &["good"], body).await;
        check(&answer, 500, "What the event is about could not be settled now: please send it again.");
    }
    check(&event(&service, &["good"], b"defect").await, 500, "Something went wrong on our side");
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_does_not_answer_keeps_nobody_waiting() {
    let service = Service::selling(Selling::Away).await;
    let before = tokio::time::Instant::now();
    check(&event(&service, &["good"], b"slow").await, 500, "What the event is about");
    assert!(before.elapsed().as_secs() <= 10, "{:?}", before.elapsed());
}

#[tokio::test]
async fn what_is_not_signed_is_refused() {
    let service = Service::selling(Selling::Away).await;
    check(&event(&service, &[], b"cs_1").await, 400, "The event is not believed: the signature is missing.");
    let wrong = "The event is not believed: the signature is wrong.";
    for signatures in [&["bad"][..], &[""], &["good", "good"], &["good", "bad"], &["g\u{f6}od"]] {
        check(&event(&service, signatures, b"cs_1").await, 400, wrong);
    }
    check(&event(&service, &["good"], &vec![b'x'; 2 << 20]).await, 413, "The body is too large");
    let get = service.send(request("GET", PATH, &[], "")).await;
    assert_eq!((get.status.as_u16(), get.header("allow")), (405, Some("POST, OPTIONS")));
}

#[tokio::test]
async fn events_are_taken_only_where_their_sender_is_set_up() {
    let service = Service::selling(Selling::Nothing).await;
    let answer = event(&service, &["good"], b"nothing").await;
    check(&answer, 404, "No events are taken here: payments are not configured.");
    let service = Service::start().await;
    check(&event(&service, &["good"], b"nothing").await, 400, "The event is not believed: the sandbox");
}
