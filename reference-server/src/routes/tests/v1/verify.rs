use super::errors::check;
use crate::testing::{ServiceFixture, TestResponse, request};

const BROWSER: (&str, &str) = ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");
const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");

async fn post(service: &ServiceFixture, headers: &[(&str, &str)], body: &str) -> TestResponse {
    service.send(request("POST", "/api/v1/verify", headers, body)).await
}

#[tokio::test]
async fn verify_program_gets_new_account_key_at_once() {
    let service = ServiceFixture::start().await;
    let token = service.token("ann@example.org").await;
    let verified = service.get(&format!("/api/v1/verify?token={token}")).await;
    assert_eq!(verified.status, 200, "{verified:?}");
    assert_eq!(verified.header("cache-control"), Some("no-store"));
    assert_eq!(verified.header("vary"), Some("accept, accept-language"));
    let body = verified.json();
    assert_eq!(
        (&body["success"], &body["credits"], &body["plan"]),
        (&true.into(), &200.into(), &"free".into())
    );
    assert_eq!(body.as_object().unwrap().len(), 4);
    assert!(body["api_key"].as_str().unwrap().starts_with("vba_"));
    // Used, unknown and malformed tokens get the same response.
    let used = service.get(&format!("/api/v1/verify?token={token}")).await;
    check(&used, 400, "token: this verification link is invalid");
    for other in ["0".repeat(64), "x".to_owned(), "0".repeat(5_000), "%00".to_owned()] {
        let refused = service.get(&format!("/api/v1/verify?token={other}")).await;
        assert_eq!((refused.status, &refused.text), (used.status, &used.text), "{other}");
    }
    for query in ["", "?token=", "?token=a&token=b", "?token=%zz"] {
        check(&service.get(&format!("/api/v1/verify{query}")).await, 400, "token: ");
    }
}

#[tokio::test]
async fn verify_browser_gets_page_and_button_redeems() {
    let service = ServiceFixture::start().await;
    let token = service.token("ann@example.org").await;
    let target = format!("/api/v1/verify?token={token}");
    for _ in 0..3 {
        let page = service.send(request("GET", &target, &[BROWSER], "")).await;
        assert_eq!(
            (page.status.as_u16(), page.header("content-type")),
            (200, Some("text/html; charset=utf-8"))
        );
        assert!(page.text.contains(&format!("<input type=\"hidden\" name=\"token\" value=\"{token}\">")));
        assert!(
            page.text.contains("<form method=\"post\" action=\"verify\">") && !page.text.contains("vba_")
        );
        assert!(page.header("content-security-policy").unwrap().contains("form-action 'self'"), "{page:?}");
        assert_eq!(page.header("referrer-policy"), Some("same-origin"));
        assert_eq!(
            (page.header("cache-control"), page.header("vary")),
            (Some("no-store"), Some("accept, accept-language"))
        );
    }
    let german = service.send(request("GET", &format!("{target}&hl=de"), &[BROWSER], "")).await;
    assert!(german.text.contains("<form method=\"post\" action=\"verify?hl=de\">"), "{}", german.text);
    let shown = post(&service, &[BROWSER, FORM], &format!("token={token}")).await;
    assert_eq!(shown.status, 200, "{shown:?}");
    for part in ["id=\"key\" dir=\"ltr\">vba_", "you have 200 credits"] {
        assert!(shown.text.contains(part), "{part}: {}", shown.text);
    }
    assert_eq!(shown.header("cache-control"), Some("no-store"));
    let again = post(&service, &[BROWSER, FORM], &format!("token={token}")).await;
    assert_eq!(
        (again.status.as_u16(), again.header("content-type")),
        (400, Some("text/html; charset=utf-8"))
    );
    assert!(again.text.contains("This link was used before"), "{}", again.text);
}

#[tokio::test]
async fn verify_attempts_are_limited_per_network() {
    let service = ServiceFixture::start().await;
    let target = format!("/api/v1/verify?token={}", "0".repeat(64));
    for _ in 0..120 {
        check(&service.get(&target).await, 400, "token: this verification link is invalid");
    }
    let refused = service.get(&target).await;
    check(&refused, 429, "Too many verification links were opened from your network");
    assert_eq!(refused.header("retry-after"), Some("60"));
    let page = post(&service, &[BROWSER, FORM], &format!("token={}", "0".repeat(64))).await;
    assert_eq!((page.status.as_u16(), page.header("retry-after")), (429, Some("60")), "{page:?}");
    assert_eq!(page.header("content-type"), Some("text/html; charset=utf-8"));
    assert!(page.text.contains("Try again in 1 min."), "{page:?}");
    let other = service.send_from("192.0.2.2", request("GET", &target, &[], "")).await;
    check(&other, 400, "token: this verification link is invalid");
}

#[tokio::test]
async fn verify_link_of_page_is_redeemed_by_post_only() {
    let service = ServiceFixture::start().await;
    for (index, language) in ["en", "de", "xx"].iter().enumerate() {
        let token = service.token(&format!("{index}@example.org")).await;
        let target = format!("/api/v1/verify?token={token}&hl={language}");
        for accept in ["*/*", "application/json", "text/plain"] {
            let scanned = service.send(request("GET", &target, &[("accept", accept)], "")).await;
            check(&scanned, 409, "This link was requested on a page");
        }
        let confirmed = service.send(request("POST", &target, &[], "")).await;
        assert_eq!(confirmed.status, 200, "{confirmed:?}");
    }
}

#[tokio::test]
async fn verify_only_post_replaces_existing_key() {
    let service = ServiceFixture::start().await;
    let old = service.account("ann@example.org").await;
    let token = service.token("ann@example.org").await;
    let target = format!("/api/v1/verify?token={token}");
    // A mail scanner may send any read method and Accept header.
    for accept in ["*/*", "application/json", "text/html", "text/plain"] {
        for method in ["HEAD", "GET", "OPTIONS"] {
            let answer = service.send(request(method, &target, &[("accept", accept)], "")).await;
            assert!(!answer.text.contains("vba_"), "{answer:?}");
            if method == "GET" && accept != "text/html" {
                check(&answer, 409, "This address has an account");
            }
        }
        let me = service.get_with("/api/v1/me", &old).await;
        assert_eq!(me.status, 200, "{accept}: {me:?}");
    }
    let confirmed = service.send(request("POST", &target, &[], "")).await;
    assert_eq!(confirmed.status, 200, "{confirmed:?}");
    let new = confirmed.json()["api_key"].as_str().unwrap().to_owned();
    check(&service.get_with("/api/v1/me", &old).await, 401, "The API key is unknown");
    assert_eq!(service.get_with("/api/v1/me", &new).await.status, 200);
}

#[tokio::test]
async fn verify_post_accepts_form_json_and_query() {
    let service = ServiceFixture::start().await;
    let json = ("content-type", "application/json");
    for (n, headers) in [[FORM], [json]].iter().enumerate() {
        let token = service.token(&format!("{n}@example.org")).await;
        let body =
            if headers[0] == FORM { format!("token={token}") } else { format!("{{\"token\": \"{token}\"}}") };
        let verified = post(&service, headers, &body).await;
        assert_eq!(verified.status, 200, "{verified:?}");
    }
    let (upper_case, other) = (FORM.1.to_uppercase(), format!("{}x", FORM.1));
    for (headers, body, status, begins) in [
        (&[FORM][..], "", 400, "token: it is missing"),
        (&[FORM], "token=", 400, "token: it is missing"),
        (&[FORM], "token=a&token=b", 400, "token: it is there more than once"),
        (&[(FORM.0, upper_case.as_str())], "token=", 400, "token: it is missing"),
        (&[(FORM.0, other.as_str())], "token=", 415, "The body must be JSON"),
        (&[json], "{}", 400, "token: it is missing"),
        (&[json], "{\"token\": 1}", 400, "token: it must be a string"),
        (&[("content-type", "text/plain")], "x", 415, "The body must be JSON"),
        (&[json], &"x".repeat(20_000), 413, "The body is too large"),
    ] {
        check(&post(&service, headers, body).await, status, begins);
    }
}
