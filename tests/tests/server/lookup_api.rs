//! The lookup API over HTTP (specification 2.2 to 2.4, 4.1 to 4.3, 5, 7.1).

use std::time::Duration;

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    harness::{ServerFixture, create_keys},
    platform::{fetch_count, serve_platform, start_platform},
};

const VIDEO: &str = "dyke-walk-0";

/// A server, its platform, which has [`VIDEO`], and a key.
struct LookupApiFixture {
    proxy: verbatim_tests::replay::ReplayProxy,
    _data: TempDir,
    server: ServerFixture,
    key: String,
}

fn start_fixture() -> Result<LookupApiFixture> {
    let proxy = start_platform(&[VIDEO], Duration::ZERO)?;
    let data = TempDir::new()?;
    let server = serve_platform(&data, &proxy, &[])?;
    let key = create_keys(&data, 1)?.remove(0);
    Ok(LookupApiFixture { proxy, _data: data, server, key })
}

fn field_names(value: &Value) -> Vec<&str> {
    let mut names: Vec<_> = value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_miss_then_fetch_then_hit() -> Result<()> {
    let LookupApiFixture { proxy, server, key, _data } = start_fixture()?;
    let path = format!("/api/transcript?v={VIDEO}&src=mcp_other");
    let watch_url = format!("http://{}/watch/video_site/{VIDEO}?src=mcp_other", server.address());

    let miss = server.get(&path).await?;
    assert_eq!(miss.status, 200);
    let mut body = miss.json();
    assert!(body["failureMessage"].as_str().is_some_and(|text| text.len() > 20), "{body}");
    body["failureMessage"] = json!("…");
    let expect = json!({
        "platform": "video_site", "videoId": VIDEO, "available": false, "fromCache": false, "watchUrl": watch_url,
        "failureReason": "needs_verification", "failureMessage": "…", "transcript": []
    });
    assert_eq!(body, expect);
    assert_eq!(fetch_count(&proxy, VIDEO), 0);

    let fetched = server.get_as(&key, &path).await?;
    let expect = json!({
        "platform": "video_site", "videoId": VIDEO, "available": true, "fromCache": false, "watchUrl": watch_url,
        "source": "youtube-captions",
        "key": { "plan": "free", "period": "month", "used": 1, "allowance": 25, "remaining": 24 },
        "transcript": [
            { "text": format!("This is {VIDEO}."), "start": 0.5, "duration": 2.5 },
            { "text": "The sheep keep the grass short.", "start": 3.0, "duration": 2.5 },
            { "text": "So the dyke holds.", "start": 6.0, "duration": 2.5 }
        ]
    });
    // What the platform says of the video depends on its recording; here only the specified fields are compared.
    let mut fields = fetched.json();
    assert_eq!((&fields["language"], fields["languages"].is_array()), (&json!("en"), true), "{fields}");
    for extension in ["language", "languages", "metadata", "chapters"] {
        fields.as_object_mut().expect("an object").remove(extension);
    }
    assert_eq!(fields, expect);
    assert_eq!(fetched.header("content-type"), "application/json; charset=utf-8");
    assert!(!fetched.header("x-request-id").is_empty());
    assert!(fetched.header("cache-control").contains("no-store"), "{fetched:?}");

    // An archived transcript is free, also without a key, and with every form of link.
    for link in [
        "https://youtu.be/dyke-walk-0?t=3",
        "youtube.com/shorts/dyke-walk-0",
        "HTTPS://M.YOUTUBE.COM/watch?v=dyke-walk-0",
    ] {
        let hit = server.get(&format!("/api/transcript?url={link}")).await?.json();
        assert_eq!(hit["available"], json!(true), "{hit}");
        assert_eq!(hit["fromCache"], json!(true));
        assert_eq!(hit["transcript"], expect["transcript"]);
        let names = field_names(&hit);
        for name in ["available", "fromCache", "language", "languages", "platform", "source", "videoId"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"key"), "{names:?}");
    }
    let again = server.get_as(&key, &path).await?.json();
    assert_eq!(again["key"]["used"], json!(1));
    // A fetch takes two requests: player and captions.
    assert_eq!(fetch_count(&proxy, VIDEO), 1);
    assert_eq!(proxy.requests().len(), 2);
    assert_eq!(proxy.unexpected().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_renders_text_and_markdown() -> Result<()> {
    let LookupApiFixture { proxy: _proxy, server, key, _data } = start_fixture()?;
    for format in ["text", "md"] {
        let path = format!("/api/transcript?v={VIDEO}&format={format}");
        let miss = server.get(&path).await?;
        assert_eq!(miss.status, 404);
        assert_eq!(miss.header("content-type"), "text/plain; charset=utf-8");
        let text = miss.text();
        let lines: Vec<_> = text.trim_end().lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[1], format!("http://{}/watch/video_site/{VIDEO}", server.address()));
    }
    let prose = server.get_as(&key, &format!("/api/transcript?v={VIDEO}&format=text")).await?;
    assert_eq!((prose.status.as_u16(), prose.header("content-type")), (200, "text/plain; charset=utf-8"));
    assert_eq!(
        prose.text().trim_end(),
        format!("This is {VIDEO}. The sheep keep the grass short. So the dyke holds.")
    );
    let markdown = server.get(&format!("/api/transcript?v={VIDEO}&format=md")).await?;
    assert_eq!(
        (markdown.status.as_u16(), markdown.header("content-type")),
        (200, "text/markdown; charset=utf-8")
    );
    let text = markdown.text();
    assert!(text.starts_with("# A walk along the dyke\n"), "{text}");
    assert!(text.contains(&format!("](https://www.youtube.com/watch?v={VIDEO}&t=0s)")), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_exhausted_allowance_is_in_band_and_402_in_text() -> Result<()> {
    let proxy = start_platform(&[VIDEO, "dyke-walk-1"], Duration::ZERO)?;
    let data = TempDir::new()?;
    let server = serve_platform(&data, &proxy, &[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")])?;
    let key = create_keys(&data, 1)?.remove(0);
    assert_eq!(
        server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?.json()["available"],
        json!(true)
    );

    let refused = server.get_as(&key, "/api/transcript?v=dyke-walk-1").await?;
    assert_eq!(refused.status, 200);
    let body = refused.json();
    assert_eq!(body["failureReason"], json!("key_allowance"));
    assert_eq!(
        body["key"],
        json!({ "plan": "free", "period": "month", "used": 1, "allowance": 1, "remaining": 0 })
    );
    for format in ["text", "md"] {
        let refused = server.get_as(&key, &format!("/api/transcript?v=dyke-walk-1&format={format}")).await?;
        assert_eq!(refused.status, 402, "{}", refused.text());
        assert!(refused.text().trim_end().ends_with("/watch/video_site/dyke-walk-1"));
    }
    assert_eq!(fetch_count(&proxy, "dyke-walk-1"), 0);
    // An archived transcript stays free for a key without remaining allowance.
    assert_eq!(
        server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?.json()["fromCache"],
        json!(true)
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_created_and_shown_once() -> Result<()> {
    let LookupApiFixture { proxy: _proxy, server, key: _key, _data } = start_fixture()?;
    let json_body = [("content-type", "application/json")];
    let made = server
        .send(Method::POST, "/api/keys", &json_body, r#"{"label":"my reader","email":"me@example.org"}"#)
        .await?;
    assert_eq!(made.status, 201, "{}", made.text());
    assert_eq!(made.header("cache-control"), "no-store");
    let mut body = made.json();
    let key = body["key"].as_str().unwrap_or_default().to_owned();
    assert!(key.starts_with("vbk_") && key.len() == 40, "{key}");
    assert_eq!(
        field_names(&body),
        ["allowance", "createdAt", "id", "key", "label", "period", "plan", "remaining", "resetsAt", "used"]
    );
    assert_eq!((&body["plan"], &body["allowance"], &body["used"]), (&json!("free"), &json!(25), &json!(0)));

    let status = server.get_as(&key, "/api/keys/me").await?;
    assert_eq!(status.status, 200);
    body.as_object_mut().unwrap().remove("key");
    assert_eq!(status.json(), body);

    for bearer in ["", "Bearer ", "Bearer vbk_nothing", "Basic abc", &format!("Bearer {key}x")] {
        let refused = server.send(Method::GET, "/api/keys/me", &[("authorization", bearer)], "").await?;
        assert_eq!(refused.status, 401, "{bearer}");
        assert!(refused.header("www-authenticate").starts_with("Bearer"), "{bearer}");
        assert_eq!(refused.header("content-type"), "application/problem+json");
    }
    // A key in the address is never accepted.
    assert_eq!(server.get(&format!("/api/keys/me?key={key}&access_token={key}")).await?.status, 401);

    // Five keys a day per network; the sixth request gets a retry time.
    for _ in 0..4 {
        assert_eq!(server.send(Method::POST, "/api/keys", &[], "").await?.status, 201);
    }
    let limited = server.send(Method::POST, "/api/keys", &[], "").await?;
    assert_eq!(limited.status, 429);
    let wait: u64 = limited.header("retry-after").parse()?;
    assert!((1..=86_400).contains(&wait), "{wait}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_invalid_request_names_parameter() -> Result<()> {
    let LookupApiFixture { proxy, server, key, _data } = start_fixture()?;
    let long = format!("/api/transcript?url=https://youtu.be/{}", "a".repeat(5_000));
    for (path, word) in [
        ("/api/transcript", "url"),
        ("/api/transcript?url=", "url"),
        ("/api/transcript?v=short", "v"),
        ("/api/transcript?v=dyke-walk-0&url=https://youtu.be/dyke-walk-0", "url"),
        ("/api/transcript?url=https://example.org/watch?v=dyke-walk-0", "url"),
        ("/api/transcript?url=https://www.youtube.com.evil.example/watch?v=dyke-walk-0", "url"),
        ("/api/transcript?url=https://www.youtube.com/@someone", "url"),
        ("/api/transcript?v=dyke-walk-0&format=pdf", "format"),
        ("/api/transcript?v=dyke-walk-0&src=me", "src"),
        ("/api/transcript?v=%ff%fe", "v"),
        (long.as_str(), "url"),
    ] {
        let refused = server.get_as(&key, path).await?;
        assert_eq!(refused.status, 400, "{path}");
        assert_eq!(refused.header("content-type"), "application/problem+json", "{path}");
        let problem = refused.json();
        assert_eq!(problem["status"], json!(400));
        let detail = problem["detail"].as_str().unwrap_or_default();
        assert!(detail.contains(word), "{path}: {detail}");
    }
    assert_eq!(proxy.requests().len(), 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn lookup_methods_and_cors_headers() -> Result<()> {
    let LookupApiFixture { proxy, server, key, _data } = start_fixture()?;
    let bearer = format!("Bearer {key}");
    // HEAD never fetches, also with a key.
    let head = server
        .send(Method::HEAD, &format!("/api/transcript?v={VIDEO}"), &[("authorization", &bearer)], "")
        .await?;
    assert_eq!((head.status.as_u16(), head.body.len()), (200, 0));
    assert_eq!(proxy.requests().len(), 0);
    for (method, path, allow) in [
        (Method::POST, "/api/transcript?v=dyke-walk-0", "GET"),
        (Method::DELETE, "/api/transcript", "GET"),
        (Method::GET, "/api/keys", "POST"),
        (Method::PUT, "/api/keys/me", "GET"),
    ] {
        let refused = server.send(method.clone(), path, &[], "").await?;
        assert_eq!(refused.status, 405, "{method} {path}");
        assert!(refused.header("allow").contains(allow), "{method} {path}: {:?}", refused.headers);
    }
    let options = server
        .send(
            Method::OPTIONS,
            "/api/transcript",
            &[("origin", "https://example.org"), ("access-control-request-method", "GET")],
            "",
        )
        .await?;
    assert!(options.status.is_success());
    assert_eq!(options.header("access-control-allow-origin"), "*");
    assert_eq!(server.get("/nothing/here").await?.status, 404);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn watch_page_shows_archived_transcript_only() -> Result<()> {
    let LookupApiFixture { proxy, server, key, _data } = start_fixture()?;
    let path = format!("/watch/video_site/{VIDEO}?src=mcp_other");
    let before = server.get(&path).await?;
    assert_eq!(before.header("content-type"), "text/html; charset=utf-8");
    assert!(!before.text().contains("sheep"));
    server.get_as(&key, &format!("/api/transcript?v={VIDEO}")).await?;
    let page = server.get(&path).await?;
    assert_eq!(page.status, 200);
    for words in ["A walk along the dyke", "Dyke Society", "The sheep keep the grass short.", "&amp;t=0s"] {
        assert!(page.text().contains(words), "{words}: {}", page.text());
    }
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    // One script, served by this server, and no text of the video in it.
    assert_eq!(page.text().matches("<script").count(), 1);
    assert!(page.text().contains("<script type=\"module\" src=\"../../assets/page."));
    for unknown_path in ["/watch/video_site/short", "/watch/elsewhere/dyke-walk-0", "/watch/video_site/"] {
        assert_eq!(server.get(unknown_path).await?.status, 404, "{unknown_path}");
    }
    assert_eq!(fetch_count(&proxy, VIDEO), 1);
    Ok(())
}
