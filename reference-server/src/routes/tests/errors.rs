use transcript_core::{
    transcript::{Segment, Transcript},
    video::{Platform, VideoId},
};

use crate::testing::{ARCHIVED, DEFECT, NEW, ServiceFixture, request, transcript};

#[tokio::test]
async fn lookup_invalid_parameter_is_named() {
    let service = ServiceFixture::start().await;
    let long = format!("url=https://www.youtube.com/watch?v={}", "x".repeat(5_000));
    for (query, detail) in [
        ("", "url: it is missing"),
        ("url=", "url: "),
        ("url=not+a+link+at+all", "url: "),
        ("url=https://example.org/x", "url: "),
        (&long, "url: "),
        ("v=short", "v: "),
        ("v=", "v: "),
        ("v=dQw4w9WgXcQ&v=dQw4w9WgXcQ", "v: it is there more than once"),
        ("v=dQw4w9WgXcQ&url=https://youtu.be/dQw4w9WgXcQ", "url and v: "),
        (
            "v=dQw4w9WgXcQ&format=xml",
            "format: it must be one of json, text, md, srt, vtt; without it the answer is JSON",
        ),
        ("v=dQw4w9WgXcQ&src=me", "src: it must be one of custom_assistant"),
        ("url=%zz", "url: it is not valid"),
        ("url=%ff%fe", "url: it is not valid"),
    ] {
        let answer = service.get(&format!("/api/transcript?{query}")).await;
        assert_eq!(answer.status, 400, "{query}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        let problem = answer.json();
        assert_eq!((&problem["status"], &problem["title"]), (&400.into(), &"Bad Request".into()));
        assert!(problem["detail"].as_str().unwrap().starts_with(detail), "{query}: {problem}");
    }
}

#[tokio::test]
async fn unknown_path_and_method_return_404_and_405() {
    let service = ServiceFixture::start().await;
    for target in [
        "/nothing",
        "/api",
        "/api/transcript/",
        "/api/v2",
        "/watch/video_site",
        "/%ff",
        "/assets/%ff",
        "/sitemaps/%ff",
    ] {
        let answer = service.get(target).await;
        assert_eq!(answer.status, 404, "{target}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(answer.json()["status"], 404);
    }
    for (method, target, allow) in [
        ("POST", "/api/transcript", "GET, HEAD, OPTIONS"),
        ("GET", "/api/keys", "POST, OPTIONS"),
        ("HEAD", "/api/keys", "POST, OPTIONS"),
        ("DELETE", "/api/keys/me", "GET, HEAD, OPTIONS"),
        ("PUT", "/watch/video_site/dQw4w9WgXcQ", "GET, HEAD, OPTIONS"),
        ("NONSENSE", "/health", "GET, HEAD, OPTIONS"),
    ] {
        let answer = service.send(request(method, target, &[], "")).await;
        assert_eq!(answer.status, 405, "{method} {target}");
        assert_eq!(answer.header("allow"), Some(allow), "{method} {target}");
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    }
    for target in ["/api/transcript", "/api/keys", "/api/keys/me", "/watch/a/b", "/health"] {
        let answer = service.send(request("OPTIONS", target, &[], "")).await;
        assert_eq!((answer.status.as_u16(), answer.text.as_str()), (204, ""), "{target}");
        assert!(answer.header("allow").unwrap().ends_with("OPTIONS"));
    }
}

#[tokio::test]
async fn request_head_too_large_returns_431() {
    let service = ServiceFixture::start().await;
    let long = "x".repeat(40_000);
    for (target, headers, detail) in [
        ("/api/transcript", &[("cookie", long.as_str())][..], "The request's headers are too large"),
        (&format!("/watch/video_site/{long}"), &[], "The request's address is too large"),
    ] {
        let answer = service.send(request("GET", target, headers, "")).await;
        assert_eq!(answer.status, 431);
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert!(answer.json()["detail"].as_str().unwrap().starts_with(detail), "{answer:?}");
    }
    let v1 = service.send(request("POST", "/api/v1/register", &[("cookie", long.as_str())], "")).await;
    assert_eq!((v1.status.as_u16(), &v1.json()["code"]), (431, &431.into()));
    let fits = "x".repeat(30_000);
    assert_eq!(service.send(request("GET", "/health", &[("cookie", fits.as_str())], "")).await.status, 200);
}

#[tokio::test]
async fn lookup_cors_allows_every_origin_without_credentials() {
    let service = ServiceFixture::start().await;
    let headers = [("origin", "https://any.example"), ("access-control-request-method", "GET")];
    let preflight = service.send(request("OPTIONS", "/api/transcript", &headers, "")).await;
    assert_eq!(preflight.header("access-control-allow-origin"), Some("*"));
    assert_eq!(preflight.header("access-control-allow-methods"), Some("GET, HEAD, OPTIONS"));
    let allowed = preflight.header("access-control-allow-headers").unwrap();
    for name in ["authorization", "content-type", "x-verbatim-entitlement"] {
        assert!(allowed.contains(name), "{allowed}");
    }
    let refused = service.send(request("GET", "/api/transcript", &headers[..1], "")).await;
    assert_eq!(refused.status, 400);
    assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
    assert_eq!(
        refused.header("access-control-expose-headers"),
        Some("etag, retry-after, x-failure-detail, x-is-generated, x-next-cursor, x-request-id")
    );
    assert_eq!(refused.header("access-control-allow-credentials"), None);
}

#[tokio::test]
async fn lookup_without_memory_returns_503_to_every_origin() {
    let service = ServiceFixture::start().await;
    let long = VideoId::new(Platform::YouTube, "longlonglon").unwrap();
    let segments = (0..9_000).map(|n| Segment::new("a long talk", n * 401, n)).collect();
    service.keep(Transcript { segments, ..transcript(&long) }).await;
    let _cached = service.bodies.cached_budget.try_reserve(1 << 40).unwrap();
    let _all = service.app.body_budget.try_reserve(1 << 40).unwrap();
    let path = "/api/transcript?v=longlonglon";
    // From the stored body, from the router, and with the usage of a key.
    let (stored, text) = (service.get(path).await, service.get(&format!("{path}&format=text")).await);
    for refused in [stored, text, service.get_with(path, "vbk_unknown").await] {
        assert_eq!(refused.status, 503, "{refused:?}");
        assert!(refused.header("retry-after").is_some(), "{refused:?}");
        assert_eq!(refused.header("access-control-allow-origin"), Some("*"));
        assert_eq!(
            refused.header("access-control-expose-headers"),
            Some("etag, retry-after, x-failure-detail, x-is-generated, x-next-cursor, x-request-id")
        );
    }
}

#[tokio::test]
async fn request_id_valid_is_returned() {
    let service = ServiceFixture::start().await;
    let own = service.send(request("GET", "/health", &[("x-request-id", "mine-1")], "")).await;
    assert_eq!(own.header("x-request-id"), Some("mine-1"));
    let made = service.send(request("GET", "/nowhere", &[("x-request-id", "not sane")], "")).await;
    assert!(made.header("x-request-id").is_some_and(|id| id != "not sane"));
}

#[tokio::test]
async fn health_and_version_are_public() {
    let service = ServiceFixture::start().await;
    assert_eq!(service.get("/health").await.json(), serde_json::json!({"status": "ok"}));
    assert_eq!(service.get("/version").await.json()["interface"], "2.0.0");
}

#[tokio::test]
async fn supplier_panic_does_not_affect_other_requests() {
    let service = ServiceFixture::start().await;
    let key = service.key().await;
    let answer = service.get_with(&format!("/api/transcript?v={DEFECT}"), &key).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json()["failureReason"], "fetch_error");
    assert_eq!(service.get(&format!("/api/transcript?v={ARCHIVED}")).await.status, 200);
}

#[tokio::test]
async fn requests_arbitrary_bytes_never_return_500() {
    let service = ServiceFixture::start().await;
    let bits = [
        "%00",
        "%c3%28",
        "%",
        "%2",
        "+",
        "&&&",
        "=",
        "url",
        "v=%00",
        "🦀",
        "\u{202e}",
        "%f0%9f%a6%80",
        "..%2f..",
        "<script>",
        "'\"",
        "{}",
        "%0d%0aset-cookie:x",
    ];
    for one in bits {
        for other in bits {
            let encoded = |text: &str| {
                text.bytes()
                    .map(|byte| match byte {
                        b'!'..=b'~' if !b"<>\"{}`".contains(&byte) => char::from(byte).to_string(),
                        byte => format!("%{byte:02X}"),
                    })
                    .collect::<String>()
            };
            let (a, b) = (encoded(one), encoded(other));
            for target in [
                format!("/api/transcript?url={a}{b}"),
                format!("/api/transcript?v={a}&format={b}"),
                format!("/api/transcript?{a}={b}&v={NEW}"),
                format!("/watch/{a}/{b}"),
                format!("/watch/video_site/{a}?{b}"),
                format!("/api/v1/{a}/{b}"),
                format!("/api/v1/transcript?url={a}{b}&lang={b}"),
                format!("/api/v1/verify?token={a}{b}"),
                format!("/checkout/{a}"),
                format!("/checkout/{a}/sandbox?token={b}"),
            ] {
                let headers = [("authorization", one), ("content-type", other), ("origin", one)];
                let answer = service.send(request("GET", &target, &headers, one)).await;
                assert!(answer.status.as_u16() < 500, "{target}: {answer:?}");
            }
            let headers = [("content-type", "application/json"), ("authorization", one)];
            let body = format!("{one}{other}");
            for target in [
                "/api/keys",
                "/api/v1/register",
                "/api/v1/verify",
                "/api/v1/rotate-key",
                "/api/v1/subscribe",
                "/api/v1/buy-credits",
                "/api/v1/webhooks/stripe",
                "/checkout/x/sandbox",
            ] {
                let answer = service.send(request("POST", target, &headers, &body)).await;
                assert!(answer.status.as_u16() < 500, "{body}: {answer:?}");
            }
        }
    }
}
