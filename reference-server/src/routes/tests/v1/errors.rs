use crate::testing::{ServiceFixture, TestResponse, request};

/// Checks the shape of a v1 error, which must not be cached.
pub(super) fn check(answer: &TestResponse, status: u16, begins: &str) {
    assert_eq!(answer.status.as_u16(), status, "{answer:?}");
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    assert!(answer.header("x-request-id").is_some());
    let body = answer.json();
    assert_eq!(body.as_object().unwrap().len(), 2, "{body}");
    assert_eq!(body["code"], status);
    assert!(body["error"].as_str().unwrap().starts_with(begins), "{begins}: {body}");
    assert_eq!(answer.header("retry-after").is_some(), status == 429, "{answer:?}");
}

#[tokio::test]
async fn v1_unknown_path_returns_v1_error() {
    let service = ServiceFixture::start().await;
    for target in [
        "/api/v1",
        "/api/v1/",
        "/api/v1/nowhere",
        "/api/v1/register/",
        "/api/v1/register/x",
        "/api/v1//register",
        "/api/v1/%ff",
        "/api/v1/Register",
    ] {
        for method in ["GET", "POST", "OPTIONS", "NONSENSE"] {
            let answer = service.send(request(method, target, &[], "")).await;
            check(&answer, 404, "There is nothing at this address");
        }
    }
}

#[tokio::test]
async fn v1_unsupported_method_returns_405_with_allow() {
    let service = ServiceFixture::start().await;
    for (target, methods) in [
        ("/api/v1/register", "POST, OPTIONS"),
        ("/api/v1/verify", "GET, POST, OPTIONS"),
        ("/api/v1/me", "GET, OPTIONS"),
        ("/api/v1/rotate-key", "POST, OPTIONS"),
        ("/api/v1/transcript", "GET, OPTIONS"),
        ("/api/v1/subscribe", "POST, OPTIONS"),
        ("/api/v1/buy-credits", "POST, OPTIONS"),
        ("/api/v1/webhooks/stripe", "POST, OPTIONS"),
    ] {
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "NONSENSE"] {
            if methods.split(", ").any(|known| known == method) {
                continue;
            }
            let answer = service.send(request(method, target, &[], "{}")).await;
            assert_eq!(
                (answer.status.as_u16(), answer.header("allow")),
                (405, Some(methods)),
                "{method} {target}"
            );
            if method != "HEAD" {
                check(&answer, 405, &format!("This address takes {methods} only."));
            }
        }
        let headers = [("origin", "https://app.example"), ("access-control-request-method", "POST")];
        let options = service.send(request("OPTIONS", target, &headers, "")).await;
        assert_eq!((options.status.as_u16(), options.header("allow")), (204, Some(methods)));
        // Account keys are for servers: pages may only register an address.
        let has_cors = options.headers.keys().any(|name| name.as_str().starts_with("access-control"));
        assert_eq!(has_cors, target == "/api/v1/register", "{options:?}");
    }
}

#[tokio::test]
async fn v1_missing_or_unknown_key_returns_401() {
    let service = ServiceFixture::start().await;
    let other = service.key().await;
    let account = service.account("ann@example.org").await;
    let typo = format!("{}x", &account[..account.len() - 1]);
    for (method, target) in [
        ("GET", "/api/v1/me"),
        ("POST", "/api/v1/rotate-key"),
        ("GET", "/api/v1/transcript?video_id=x"),
        ("POST", "/api/v1/subscribe"),
        ("POST", "/api/v1/buy-credits"),
        ("GET", "/api/v1/jobs/%ff"),
        ("DELETE", "/api/v1/jobs/%ff"),
        ("GET", "/api/v1/jobs/%ff/results"),
        ("GET", "/api/v1/jobs/%ff/deliveries"),
    ] {
        let missing = service.send(request(method, target, &[], "")).await;
        check(&missing, 401, "This needs an API key");
        assert_eq!(missing.header("www-authenticate"), Some("Bearer realm=\"verbatim\""));
        for (credential, begins) in [
            (format!("Bearer {other}"), "This API key is for the lookup API"),
            (format!("Bearer {typo}"), "The API key is not one of this service"),
            (account.clone(), "The API key is not one of this service"),
            ("Basic dXNlcjpwdw==".to_owned(), "The API key is not one of this service"),
        ] {
            let wrong = service.send(request(method, target, &[("authorization", &credential)], "")).await;
            check(&wrong, 401, begins);
            let challenge = wrong.header("www-authenticate").unwrap();
            assert!(challenge.ends_with("error=\"invalid_token\""), "{challenge}");
            assert!(!wrong.text.contains(&account[8..]));
        }
    }
    // A key in a link is ignored.
    check(&service.get(&format!("/api/v1/me?api_key={account}")).await, 401, "This needs an API key");
}
