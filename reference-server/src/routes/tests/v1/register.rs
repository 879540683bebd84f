use super::errors::check;
use crate::testing::{ServiceFixture, request};

#[tokio::test]
async fn register_response_is_same_for_every_address() {
    let service = ServiceFixture::start().await;
    let json = [("content-type", "application/json")];
    let mut answers = Vec::new();
    for email in ["ann@example.org", "ann@example.org", "Ben+x@EXAMPLE.org"] {
        let body = format!("{{\"email\": \"{email}\"}}");
        let answer = service.send(request("POST", "/api/v1/register", &json, &body)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert_eq!(answer.json()["success"], true);
        answers.push(answer.text);
        let mail = service.mail().await;
        assert_eq!(mail.to.to_lowercase(), email.to_lowercase());
        assert!(mail.text.contains("https://v.example/api/v1/verify?token="), "{}", mail.text);
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
}

#[tokio::test]
async fn register_invalid_body_is_described() {
    let service = ServiceFixture::start().await;
    let json = [("content-type", "application/json")];
    let long = format!("{{\"email\": \"{}@example.org\"}}", "x".repeat(300));
    let huge = format!("{{\"email\": \"{}\"}}", "x".repeat(2 << 20));
    for (headers, body, status, message) in [
        (&[][..], "", 400, "body: it is missing: send JSON such as {\"email\": …}"),
        (&json[..], "{}", 400, "email: it is missing"),
        (&json, "{\"email\": 7}", 400, "email: it must be a string"),
        (&json, "{\"email\": \"a@b.example\", \"plan\": \"pro\"}", 400, "body: there is no field \"plan\""),
        (&json, "{\"email\": \"invalid\"}", 400, ""),
        (&json, "{\"email\": \"a@b.example\\nBcc: c@d.example\"}", 400, ""),
        (&json, "{\"email\": \"a@b.example\\u0000\"}", 400, ""),
        (&json, &long, 400, ""),
        (&json, &huge, 413, "The body is too large"),
        (&[("content-type", "text/plain")], "{}", 415, "The body must be JSON"),
    ] {
        let answer = service.send(request("POST", "/api/v1/register", headers, body)).await;
        check(&answer, status, message);
    }
}

#[tokio::test]
async fn register_network_limit_returns_429() {
    let service = ServiceFixture::start().await;
    let register = async |n: u32| {
        let body = format!("{{\"email\": \"{n}@example.org\"}}");
        service.send(request("POST", "/api/v1/register", &[], &body)).await
    };
    for n in 0..5 {
        assert_eq!(register(n).await.status, 200);
    }
    let refused = register(5).await;
    check(&refused, 429, "Too many registrations");
    assert_eq!(refused.header("retry-after"), Some("3600"));
    service.clock.advance(std::time::Duration::from_secs(3_600));
    assert_eq!(register(6).await.status, 200);
}

#[tokio::test]
async fn register_from_page_of_other_site_is_refused() {
    let service = ServiceFixture::start().await;
    let body = "{\"email\": \"ann@example.org\"}";
    let foreign = [("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")];
    // More than the limit of a network: what is refused counts for nothing.
    for _ in 0..6 {
        let refused = service.send(request("POST", "/api/v1/register", &foreign, body)).await;
        check(&refused, 403, "Pages of other sites may not send this request");
    }
    let own = [("origin", "https://v.example"), ("sec-fetch-site", "same-origin")];
    assert_eq!(service.send(request("POST", "/api/v1/register", &own, body)).await.status, 200);
    assert_eq!(service.mail().await.to, "ann@example.org");
}

#[tokio::test]
async fn register_cors_allows_configured_origins_only() {
    let service = ServiceFixture::start().await;
    let body = "{\"email\": \"ann@example.org\"}";
    for (origin, is_allowed) in [("https://app.example", true), ("https://evil.example", false)] {
        let headers = [
            ("origin", origin),
            ("sec-fetch-site", "cross-site"),
            ("content-type", "application/json"),
            ("access-control-request-method", "POST"),
        ];
        for (method, status) in [("OPTIONS", 204), ("POST", if is_allowed { 200 } else { 403 })] {
            let answer = service.send(request(method, "/api/v1/register", &headers, body)).await;
            assert_eq!(answer.status.as_u16(), status, "{answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), is_allowed.then_some(origin));
            assert_eq!(answer.header("vary"), Some("origin"));
        }
    }
    assert_eq!(service.mail().await.to, "ann@example.org");
}
