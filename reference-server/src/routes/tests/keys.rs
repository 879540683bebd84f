use std::time::Duration;

use crate::testing::{ServiceFixture, request};

#[tokio::test]
async fn create_key_returns_key_once_with_allowance() {
    let service = ServiceFixture::start().await;
    let json = [("content-type", "application/json; charset=utf-8")];
    let body = "{\"label\": \" laptop \", \"email\": \"a@b.example\", \"later\": 1}";
    let created = service.send(request("POST", "/api/keys", &json, body)).await;
    assert_eq!(created.status, 201);
    assert_eq!(created.header("cache-control"), Some("no-store"));
    assert_eq!(created.header("content-type"), Some("application/json; charset=utf-8"));
    let mut fields = created.json();
    let key = fields["key"].as_str().unwrap().to_owned();
    assert!(key.starts_with("vbk_") && key.len() == 40, "{key}");
    for (name, value) in [("label", "laptop"), ("plan", "free"), ("period", "month")] {
        assert_eq!(fields[name], value, "{fields}");
    }
    assert_eq!(
        (&fields["used"], &fields["allowance"], &fields["remaining"]),
        (&0.into(), &25.into(), &25.into())
    );
    assert_eq!(fields["resetsAt"], "2026-12-01T00:00:00Z");
    assert_eq!(fields["createdAt"], "2026-11-20T00:00:00Z");
    let status = service.get_with("/api/keys/me", &key).await;
    assert_eq!(status.status, 200);
    assert_eq!(status.header("cache-control"), Some("no-store"));
    fields.as_object_mut().unwrap().remove("key");
    assert_eq!(status.json(), fields);
}

#[tokio::test]
async fn create_key_without_body_succeeds() {
    let service = ServiceFixture::start().await;
    let typed = [("content-type", "text/plain")];
    for (headers, body) in [
        (&[][..], ""),
        (&typed[..], " \n"),
        (&[("content-type", "APPLICATION/JSON")][..], "{}"),
        (&[][..], "{\"label\": null}"),
        (&[][..], "{\"label\": \" \\u200b \", \"email\": \"\"}"),
    ] {
        let answer = service.send(request("POST", "/api/keys", headers, body)).await;
        assert_eq!(answer.status, 201, "{body}: {answer:?}");
        assert_eq!(answer.json()["label"], serde_json::Value::Null);
    }
}

#[tokio::test]
async fn create_key_invalid_body_is_described() {
    let service = ServiceFixture::start().await;
    let json = [("content-type", "application/json")];
    let long = format!("{{\"label\": \"{}\"}}", "x".repeat(101));
    let padded = format!("{{\"label\": \"x{}\"}}", " ".repeat(100));
    let deep = "[".repeat(10_000);
    let huge = format!("{{\"label\": \"{}\"}}", "x".repeat(20_000));
    for (headers, body, status, detail) in [
        (&json[..], "{", 400, "body: it is no valid JSON"),
        (&json[..], &deep, 400, "body: it is no valid JSON"),
        (&json[..], "[]", 400, "body: it must be a JSON object"),
        (&json[..], "null", 400, "body: it must be a JSON object"),
        (&json[..], "{\"label\": 7}", 400, "label: it must be a string"),
        (&json[..], "{\"email\": []}", 400, "email: it must be a string"),
        (&json[..], "{\"email\": \"invalid\"}", 400, "email: "),
        (&json[..], "{\"email\": \" a@b.example\"}", 400, "email: "),
        (&json[..], "{\"label\": \"laptop\\n\"}", 400, "label: a label has no control characters"),
        (&json[..], "{\"label\": \"a\\u2028b\"}", 400, "label: a label has no control characters"),
        (&json[..], "{\"label\": \"a\\u202eb\"}", 400, "label: a label has no control characters"),
        (&json[..], "{\"label\": \"a\", \"label\": \"b\"}", 400, "body: duplicate field \"label\""),
        (&json[..], &long, 400, "label: "),
        (&json[..], &padded, 400, "label: a label has at most 100 characters"),
        (&json[..], &huge, 413, "The body is too large"),
        (&[("content-type", "text/plain")][..], "{}", 415, "The body must be JSON"),
        (
            &[("content-type", "application/x-www-form-urlencoded")][..],
            "label=x",
            415,
            "The body must be JSON: send the header Content-Type: application/json with it (curl -d sends",
        ),
    ] {
        let answer = service.send(request("POST", "/api/keys", headers, body)).await;
        assert_eq!(answer.status.as_u16(), status, "{answer:?}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(answer.json()["detail"].as_str().unwrap().starts_with(detail), "{answer:?}");
    }
}

#[tokio::test]
async fn create_key_network_limit_returns_429() {
    let service = ServiceFixture::start().await;
    for _ in 0..5 {
        service.key().await;
    }
    let refused = service.send(request("POST", "/api/keys", &[], "")).await;
    assert_eq!(refused.status, 429);
    assert_eq!(refused.header("retry-after"), Some("86400"));
    let forged = request("POST", "/api/keys", &[("x-forwarded-for", "198.51.100.7")], "");
    assert_eq!(service.send(forged).await.status, 429);
    let proxied = request("POST", "/api/keys", &[("x-forwarded-for", "198.51.100.7")], "");
    assert_eq!(service.send_from("10.0.0.1", proxied).await.status, 201);
    service.clock.advance(Duration::from_secs(86_400));
    service.key().await;
}

#[tokio::test]
async fn key_status_missing_or_unknown_key_returns_401() {
    let service = ServiceFixture::start().await;
    let missing = service.get("/api/keys/me").await;
    assert_eq!(missing.status, 401);
    assert_eq!(missing.header("www-authenticate"), Some("Bearer realm=\"verbatim\""));
    assert_eq!(missing.header("content-type"), Some("application/problem+json"));
    for credential in ["x", "", "vba_0123456789", "vbk_00000000000000000000000000000000000000"] {
        let unknown = service.get_with("/api/keys/me", credential).await;
        assert_eq!(unknown.status, 401);
        let challenge = unknown.header("www-authenticate").unwrap();
        assert!(challenge.ends_with("error=\"invalid_token\""), "{challenge}");
        assert!(credential.is_empty() || !unknown.text.contains(&format!(" {credential} ")));
    }
    let key = service.key().await;
    assert_eq!(service.get(&format!("/api/keys/me?key={key}")).await.status, 401);
}

#[tokio::test]
async fn keys_and_search_cors_allows_configured_origins_only() {
    let service = ServiceFixture::start().await;
    for (origin, allowed) in [("https://app.example", true), ("https://evil.example", false)] {
        let created = service.send(request("POST", "/api/keys", &[("origin", origin)], "")).await;
        assert_eq!(created.header("access-control-allow-origin"), allowed.then_some(origin));
        assert_eq!(created.header("vary"), Some("origin"));
        let preflight = service.send(request("OPTIONS", "/api/keys/me", &[("origin", origin)], "")).await;
        assert_eq!(preflight.status, 204);
        assert_eq!(preflight.header("allow"), Some("GET, HEAD, OPTIONS"));
        assert_eq!(preflight.header("access-control-allow-origin"), allowed.then_some(origin));
        assert_eq!(preflight.header("access-control-allow-headers").is_some(), allowed);
        let search = service.send(request("GET", "/api/search?q=sea", &[("origin", origin)], "")).await;
        assert_eq!(search.header("access-control-allow-origin"), allowed.then_some(origin), "{search:?}");
    }
    assert_eq!(service.get("/api/keys/me").await.header("access-control-allow-origin"), None);
}

#[tokio::test]
async fn create_key_from_page_of_other_site_is_refused() {
    let service = ServiceFixture::start().await;
    let foreign = [
        &[("origin", "https://evil.example"), ("sec-fetch-site", "cross-site")][..],
        &[("origin", "https://sub.v.example"), ("sec-fetch-site", "same-site")],
        &[("sec-fetch-site", "cross-site")],
        // Browsers name no site to a host without HTTPS.
        &[("origin", "https://evil.example")],
        &[("origin", "null")],
    ];
    // More than the limit of a network: what is refused counts for nothing.
    for headers in foreign.into_iter().cycle().take(10) {
        let refused = service.send(request("POST", "/api/keys", headers, "{}")).await;
        assert_eq!(refused.status, 403, "{headers:?}: {refused:?}");
        assert_eq!(refused.header("content-type"), Some("application/problem+json"));
        assert_eq!(
            (refused.header("cache-control"), refused.header("vary")),
            (Some("no-store"), Some("origin"))
        );
    }
    for headers in [
        &[][..],
        &[("sec-fetch-site", "none")],
        &[("origin", "https://v.example"), ("sec-fetch-site", "same-origin")],
        &[("origin", "https://v.example")],
        &[("origin", "https://app.example"), ("sec-fetch-site", "cross-site")],
    ] {
        let created = service.send(request("POST", "/api/keys", headers, "{}")).await;
        assert_eq!(created.status, 201, "{headers:?}: {created:?}");
    }
}
