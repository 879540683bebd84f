use std::sync::atomic::Ordering;

use futures_util::future::select_all;
use transcript_core::lookup::LookupOptions;

use crate::testing::{ARCHIVED, NEW, SILENT, ServiceFixture, request};

#[tokio::test]
async fn lookup_archived_transcript_is_free() {
    let service = ServiceFixture::start().await;
    let answer = service.get(&format!("/api/transcript?v={ARCHIVED}&src=mcp_other")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("content-type"), Some("application/json; charset=utf-8"));
    assert_eq!(answer.header("cache-control"), Some("no-cache"));
    assert_eq!(answer.header("vary"), Some("accept-encoding, authorization"));
    assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
    assert_eq!(answer.header("access-control-allow-origin"), Some("*"));
    assert!(answer.header("x-request-id").is_some());
    assert_eq!(
        answer.json(),
        serde_json::json!({
            "platform": "video_site",
            "videoId": ARCHIVED,
            "available": true,
            "fromCache": true,
            "watchUrl": format!("https://v.example/watch/video_site/{ARCHIVED}?src=mcp_other"),
            "source": "youtube-captions",
            "language": "en",
            "languages": [{"tag": "en", "name": "English", "kind": "manual", "original": false}],
            "metadata": {"title": "A talk", "author": "Ann", "durationSeconds": 60.0},
            "transcript": [
                {"text": "It is so", "start": 1.5, "duration": 1.25},
                {"text": "quiet here.", "start": 2.75, "duration": 2.0},
            ],
        })
    );
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn lookup_new_video_without_key_needs_verification() {
    let service = ServiceFixture::start().await;
    let answer = service.get(&format!("/api/transcript?v={NEW}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let json = answer.json();
    assert_eq!(json["available"], false);
    assert_eq!(json["failureReason"], "needs_verification");
    assert_eq!(json["transcript"], serde_json::json!([]));
    assert_eq!(json.get("key"), None);
    let text = service.get(&format!("/api/transcript?v={NEW}&format=text&src=mcp_other")).await;
    assert_eq!(text.status, 404);
    assert_eq!(text.header("content-type"), Some("text/plain; charset=utf-8"));
    let lines: Vec<_> = text.text.lines().collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(lines[1], format!("https://v.example/watch/video_site/{NEW}?src=mcp_other"));
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn lookup_of_silent_short_links_delays_no_reader() {
    let service = ServiceFixture::start().await;
    let links: Vec<_> =
        (0..20).map(|n| format!("/api/transcript?url=https://vm.tiktok.com/ZMslow{n}/")).collect();
    let links = select_all(links.iter().map(|link| Box::pin(service.get(link))));
    let archived = format!("/api/transcript?v={ARCHIVED}&format=srt");
    tokio::select! {
        biased;
        (link, ..) = links => panic!("a link was answered first: {link:?}"),
        answer = service.get(&archived) => assert_eq!(answer.status, 200, "{answer:?}"),
    }
}

#[tokio::test]
async fn lookup_new_video_with_key_is_charged_once() {
    let service = ServiceFixture::start().await;
    let key = service.key().await;
    let first = service.get_with(&format!("/api/transcript?v={NEW}"), &key).await;
    assert_eq!(first.header("cache-control"), Some("no-store"));
    let usage = |used: u64| {
        let remaining = 25 - used;
        serde_json::json!({"plan": "free", "period": "month", "used": used, "allowance": 25, "remaining": remaining})
    };
    let json = first.json();
    assert_eq!((&json["available"], &json["fromCache"]), (&true.into(), &false.into()));
    assert_eq!(json["key"], usage(1));
    let second = service.get_with(&format!("/api/transcript?v={NEW}"), &key).await.json();
    assert_eq!(second["fromCache"], true);
    assert_eq!(second["key"], usage(1));
    let silent = service.get_with(&format!("/api/transcript?v={SILENT}"), &key).await.json();
    assert_eq!(silent["failureReason"], "no_captions");
    assert_eq!(silent["key"], usage(1));
    let text = service.get_with(&format!("/api/transcript?v={SILENT}&format=md"), &key).await;
    assert_eq!(text.status, 404);
    assert_eq!(
        text.text,
        format!("This video has no captions.\nhttps://v.example/watch/video_site/{SILENT}\n")
    );
}

#[tokio::test]
async fn lookup_spent_allowance_returns_200_json_or_402_text() {
    let service =
        ServiceFixture::with_options(LookupOptions { free_per_month: 0, ..LookupOptions::default() }).await;
    let key = service.key().await;
    let json = service.get_with(&format!("/api/transcript?v={NEW}"), &key).await;
    assert_eq!(json.status, 200);
    assert_eq!(json.json()["failureReason"], "key_allowance");
    for format in ["text", "md"] {
        let text = service.get_with(&format!("/api/transcript?v={NEW}&format={format}"), &key).await;
        assert_eq!(text.status, 402, "{text:?}");
        assert!(text.text.ends_with(&format!("\nhttps://v.example/watch/video_site/{NEW}\n")), "{text:?}");
        // HEAD never transcribes, so it needs no allowance.
        let bearer = format!("Bearer {key}");
        let target = format!("/api/transcript?v={NEW}&format={format}");
        let head = service.send(request("HEAD", &target, &[("authorization", &bearer)], "")).await;
        assert_eq!(head.status, 404, "{head:?}");
    }
    let archived = service.get_with(&format!("/api/transcript?v={ARCHIVED}&format=text"), &key).await;
    assert_eq!(archived.status, 200);
}

#[tokio::test]
async fn lookup_text_and_markdown_contain_transcript() {
    let service = ServiceFixture::start().await;
    let text = service.get(&format!("/api/transcript?v={ARCHIVED}&format=text")).await;
    assert_eq!((text.status.as_u16(), text.header("content-type")), (200, Some("text/plain; charset=utf-8")));
    assert!(text.text.contains("It is so quiet here."), "{text:?}");
    let markdown = service.get(&format!("/api/transcript?v={ARCHIVED}&format=md")).await;
    assert_eq!(markdown.header("content-type"), Some("text/markdown; charset=utf-8"));
    assert!(markdown.text.contains("0:01") && markdown.text.contains("quiet here."), "{markdown:?}");
    let json = service.get(&format!("/api/transcript?v={ARCHIVED}&format=json")).await;
    assert_eq!(json.json()["available"], true);
}

#[tokio::test]
async fn lookup_head_reads_archive_only() {
    let service = ServiceFixture::start().await;
    let key = format!("Bearer {}", service.key().await);
    let head = |target: String| {
        let request = request("HEAD", &target, &[("authorization", &key)], "");
        service.send(request)
    };
    let archived = head(format!("/api/transcript?v={ARCHIVED}")).await;
    assert_eq!((archived.status.as_u16(), archived.text.as_str()), (200, ""));
    assert_eq!(head(format!("/api/transcript?v={NEW}&format=text")).await.status, 404);
    assert_eq!(head(format!("/api/transcript?v={NEW}")).await.status, 200);
    assert_eq!(head("/api/transcript".to_owned()).await.status, 400);
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn lookup_key_in_query_is_ignored() {
    let service = ServiceFixture::start().await;
    let key = service.key().await;
    for name in ["key", "api_key", "token", "access_token", "authorization"] {
        let json = service.get(&format!("/api/transcript?v={NEW}&{name}={key}")).await.json();
        assert_eq!(json["failureReason"], "needs_verification", "{name}");
        assert_eq!(json.get("key"), None);
    }
    for credential in ["", "nonsense", "vbk_", "vba_0123456789", &key[..39], &format!("{key}0")] {
        let answer = service.get_with(&format!("/api/transcript?v={NEW}"), credential).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["failureReason"], "needs_verification", "{credential}");
        assert_eq!(answer.header("cache-control"), Some("no-store"));
    }
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}
