//! Tests of the sandbox checkout page and the order page.

use std::{
    sync::atomic::{AtomicU32, Ordering::Relaxed},
    time::Duration,
};

use serde_json::json;
use tokio::time::Instant;

use crate::testing::{PaymentSetup, ServiceFixture, TestResponse, request};

/// Places an order; returns the path and query of its sandbox page.
async fn order(service: &ServiceFixture, key: &str, item: &str) -> String {
    service.clock.advance(Duration::from_secs(7));
    let (path, body) = match item {
        "starter" | "pro" => ("subscribe", json!({ "plan": item })),
        pack => ("buy-credits", json!({ "pack": pack })),
    };
    let headers = [("authorization", format!("Bearer {key}"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let answer = service.send(request("POST", &format!("/api/v1/{path}"), &headers, &body.to_string())).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let url = answer.json()["checkout_url"].as_str().unwrap().to_owned();
    url.strip_prefix("https://v.example").unwrap().to_owned()
}

/// Sends a request from the server's machine.
async fn send(service: &ServiceFixture, method: &str, target: &str, body: &str) -> TestResponse {
    let mut request = request(method, target, &[], body);
    request.headers_mut().insert("host", "localhost:8080".parse().unwrap());
    service.send_from("127.0.0.1", request).await
}

async fn get(service: &ServiceFixture, target: &str) -> TestResponse {
    send(service, "GET", target, "").await
}

/// Presses a button of a page.
async fn press(service: &ServiceFixture, page: &str, action: &str) -> TestResponse {
    let (path, token) = page.split_once("?token=").unwrap();
    send(service, "POST", path, &format!("token={token}&deed={action}")).await
}

async fn me(service: &ServiceFixture, key: &str) -> (String, u64) {
    service.clock.advance(Duration::from_secs(7));
    let me = service.get_with("/api/v1/me", key).await.json();
    (me["plan"].as_str().unwrap().to_owned(), me["credits_remaining"].as_u64().unwrap())
}

/// Path of the order page that belongs to a sandbox page.
fn order_path(page: &str) -> &str {
    page.split_once("/sandbox").unwrap().0
}

fn is_page(answer: &TestResponse, status: u16, title: &str) {
    assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(
        (answer.header("cache-control"), answer.header("referrer-policy")),
        (Some("no-store"), Some("no-referrer"))
    );
    let policy = answer.header("content-security-policy").unwrap();
    for part in ["default-src 'none'", "form-action 'self'", "frame-ancestors 'none'"] {
        assert!(policy.contains(part) && !policy.contains("script"), "{policy}");
    }
    assert!(answer.text.contains(&format!("<title>{title}</title>")), "{title}: {}", answer.text);
    assert!(!answer.text.contains("<script") && !answer.text.contains(" style="), "{}", answer.text);
}

#[tokio::test]
async fn checkout_pack_payment_adds_credits_once() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    let shown = get(&service, &page).await;
    is_page(&shown, 200, "Test checkout");
    let german = format!("<a href=\"?hl=de&amp;{}\"", page.split_once('?').unwrap().1);
    for text in ["This is a test.", "1,000 credits", "$12.00", "Pretend to pay $12.00", "Cancel", &german] {
        assert!(shown.text.contains(text), "{text}: {}", shown.text);
    }
    // Read methods change nothing, however often they are called.
    for method in ["GET", "HEAD", "OPTIONS"] {
        for path in [&page, order_path(&page)] {
            assert!(send(&service, method, path, "").await.status.is_success());
        }
    }
    is_page(&get(&service, order_path(&page)).await, 200, "Not paid yet");
    assert_eq!(me(&service, &key).await, ("free".to_owned(), 200));

    for _ in 0..3 {
        let paid = press(&service, &page, "pay").await;
        assert_eq!(paid.status, 303, "{paid:?}");
        let order = order_path(&page).rsplit('/').next().unwrap();
        assert_eq!(paid.header("location"), Some(format!("../{order}").as_str()));
        assert_eq!(me(&service, &key).await, ("free".to_owned(), 1_200));
    }
    let paid = get(&service, order_path(&page)).await;
    is_page(&paid, 200, "Paid");
    assert!(paid.text.contains("1,000 credits were added to your account."), "{}", paid.text);
    // A paid order cannot be cancelled.
    assert_eq!(press(&service, &page, "cancel").await.status, 303);
    assert_eq!(me(&service, &key).await.1, 1_200);
}

#[tokio::test]
async fn checkout_second_plan_replaces_first() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "starter").await;
    assert!(get(&service, &page).await.text.contains("Plan starter: 2,000 credits a month"));
    press(&service, &page, "pay").await;
    assert_eq!(me(&service, &key).await, ("starter".to_owned(), 2_000));
    let shown = get(&service, order_path(&page)).await;
    assert!(shown.text.contains("Your account now has the plan starter"), "{}", shown.text);
    let headers = [("authorization", format!("Bearer {key}"))];
    let headers = headers.each_ref().map(|(name, value)| (*name, value.as_str()));
    let again = service.send(request("POST", "/api/v1/subscribe", &headers, "{\"plan\": \"starter\"}")).await;
    assert_eq!(again.json()["error"], "plan: this account has the plan starter already");
    let first = page;
    let page = order(&service, &key, "pro").await;
    press(&service, &page, "pay").await;
    assert_eq!(me(&service, &key).await.0, "pro");
    let replaced = get(&service, order_path(&first)).await;
    assert!(replaced.text.contains("was bought with this order"), "{}", replaced.text);
    assert!(!replaced.text.contains("now has the plan starter"), "{}", replaced.text);
}

#[tokio::test]
async fn checkout_late_plan_payment_is_shown_as_credits() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let closed = order(&service, &key, "starter").await;
    let slow = order(&service, &key, "starter").await;
    press(&service, &slow, "pay-later").await;
    press(&service, &closed, "pay").await;
    is_page(&get(&service, order_path(&closed)).await, 200, "Cancelled");
    let pro = order(&service, &key, "pro").await;
    press(&service, &pro, "pay").await;
    press(&service, &slow, "arrive").await;
    assert_eq!(me(&service, &key).await, ("pro".to_owned(), 12_000));
    let shown = get(&service, order_path(&slow)).await;
    assert!(shown.text.contains("2,000 credits were added instead"), "{}", shown.text);
    assert!(get(&service, order_path(&pro)).await.text.contains("Your account now has the plan pro"));
}

#[tokio::test]
async fn checkout_pending_payment_adds_credits_on_completion() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    for (outcome, credits, title) in [("fail", 200, "Cancelled"), ("arrive", 2_200, "Paid")] {
        let page = order(&service, &key, "2k").await;
        let pending = press(&service, &page, "pay-later").await;
        assert_eq!(pending.status, 303);
        assert!(pending.header("location").unwrap().starts_with("sandbox?token="), "{pending:?}");
        assert!(get(&service, &page).await.text.contains("The payment is pending."));
        is_page(&get(&service, order_path(&page)).await, 200, "Not paid yet");
        assert_eq!(me(&service, &key).await.1, 200);
        assert_eq!(press(&service, &page, outcome).await.status, 303);
        assert_eq!(me(&service, &key).await.1, credits, "{outcome}");
        is_page(&get(&service, order_path(&page)).await, 200, title);
    }
}

#[tokio::test]
async fn checkout_refund_removes_credits_in_proportion() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    press(&service, &page, "pay").await;
    let refund = async |cents: &str| press(&service, &page, &format!("refund&cents={cents}")).await;
    for wrong in ["", "0", "-1", "1201", "1.5", "x", "99999999999999999999"] {
        is_page(&refund(wrong).await, 400, "That did not work");
    }
    assert_eq!(refund("300").await.status, 303);
    assert_eq!(me(&service, &key).await.1, 950);
    assert!(get(&service, &page).await.text.contains("Refunded: $3.00."));
    is_page(&refund("901").await, 400, "That did not work");
    assert_eq!(refund("900").await.status, 303);
    assert_eq!(me(&service, &key).await.1, 200);
    is_page(&get(&service, order_path(&page)).await, 200, "Refunded");
}

#[tokio::test]
async fn checkout_cancelled_order_adds_nothing() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    assert_eq!(press(&service, &page, "cancel").await.status, 303);
    let cancelled = get(&service, order_path(&page)).await;
    is_page(&cancelled, 200, "Cancelled");
    assert!(get(&service, &page).await.text.contains("The order was cancelled"));
    press(&service, &page, "pay").await;
    assert_eq!(me(&service, &key).await.1, 200);
}

#[tokio::test(start_paused = true)]
async fn order_page_limits_provider_reads_and_their_wait() {
    static READS: AtomicU32 = AtomicU32::new(0);
    let service = ServiceFixture::with_payments(PaymentSetup::Stalled(&READS)).await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    for load in 1..=21 {
        let started = Instant::now();
        is_page(&get(&service, &page).await, 200, "Not paid yet");
        assert!(started.elapsed() < Duration::from_secs(9), "{load}");
        assert_eq!(READS.load(Relaxed), load.min(20));
    }
    service.clock.advance(Duration::from_secs(60));
    is_page(&get(&service, &page).await, 200, "Not paid yet");
    assert_eq!(READS.load(Relaxed), 21);
}

#[tokio::test]
async fn checkout_page_requires_its_secret() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    let other = order(&service, &key, "50k").await;
    let (path, token) = page.split_once("?token=").unwrap();
    let stolen = other.split_once("?token=").unwrap().1;
    for target in [
        path.to_owned(),
        format!("{path}?token="),
        format!("{path}?token={}", &token[..62]),
        format!("{path}?token={stolen}"),
        format!("{page}&token={token}"),
        format!("/checkout/unknown/sandbox?token={token}"),
        format!("/checkout/%ff/sandbox?token={token}"),
        format!("/checkout/{}/sandbox?token={token}", "x".repeat(500)),
    ] {
        is_page(&get(&service, &target).await, 404, "No such order");
    }
    for body in [
        "",
        "deed=pay",
        "token=&deed=pay",
        &format!("token={stolen}&deed=pay"),
        &format!("token={token}&token={token}&deed=pay"),
    ] {
        is_page(&send(&service, "POST", path, body).await, 404, "No such order");
    }
    // The secret in the query does not authorize an action: opening a link changes nothing.
    is_page(&send(&service, "POST", &page, "deed=pay").await, 404, "No such order");
    for action in ["", "Pay", "arrive%00", "pay&deed=pay"] {
        is_page(&press(&service, &page, action).await, 400, "That did not work");
    }
    let huge = format!("token={token}&deed=pay&{}", "x".repeat(100_000));
    is_page(&send(&service, "POST", path, &huge).await, 413, "That did not work");
    assert_eq!(me(&service, &key).await.1, 200);
    for path in ["/checkout/unknown", "/checkout/%00", "/checkout/a%2Fb", "/checkout/<b>"] {
        is_page(&get(&service, &path.replace('<', "%3C").replace('>', "%3E")).await, 404, "No such order");
    }
    let put = send(&service, "PUT", path, "").await;
    assert_eq!((put.status.as_u16(), put.header("allow")), (405, Some("GET, HEAD, POST, OPTIONS")));
}

#[tokio::test]
async fn checkout_without_sandbox_returns_404() {
    let sandbox = ServiceFixture::start().await;
    let key = sandbox.account("ann@example.org").await;
    let page = order(&sandbox, &key, "1k").await;
    for setup in [PaymentSetup::Nothing, PaymentSetup::Unavailable] {
        let service = ServiceFixture::with_payments(setup).await;
        is_page(&get(&service, &page).await, 404, "No such order");
        is_page(&press(&service, &page, "pay").await, 404, "No such order");
        is_page(&get(&service, order_path(&page)).await, 404, "No such order");
    }
}

#[tokio::test]
async fn sandbox_serves_callers_on_its_machine_only() {
    let service = ServiceFixture::start().await;
    let key = service.account("ann@example.org").await;
    let page = order(&service, &key, "1k").await;
    let (path, token) = page.split_once("?token=").unwrap();
    let form = format!("token={token}&deed=pay");
    for (peer, host, header) in [
        ("192.0.2.1", "localhost", None),
        // A trusted proxy is no exception.
        ("10.0.0.1", "localhost", None),
        ("127.0.0.1", "v.example", None),
        ("127.0.0.1", "localhost", Some("x-forwarded-for")),
        ("127.0.0.1", "localhost", Some("forwarded")),
        ("127.0.0.1", "localhost", Some("x-real-ip")),
        ("127.0.0.1", "localhost", Some("via")),
    ] {
        for (method, target, body) in [("GET", page.as_str(), ""), ("POST", path, form.as_str())] {
            let mut request = request(method, target, &[], body);
            request.headers_mut().insert("host", host.parse().unwrap());
            if let Some(header) = header {
                request.headers_mut().insert(header, "127.0.0.1".parse().unwrap());
            }
            is_page(&service.send_from(peer, request).await, 403, "That did not work");
        }
    }
    assert_eq!(me(&service, &key).await.1, 200);
    // The page of the order is for everyone who has its address.
    is_page(&service.get(order_path(&page)).await, 200, "Not paid yet");
    assert_eq!(press(&service, &page, "pay").await.status, 303);
    assert_eq!(me(&service, &key).await.1, 1_200);
}
