//! Tests of the transcribe button: admission, single use of challenges, and allowances.

use std::{sync::atomic::Ordering, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};
use transcript_core::{
    archive::Archive,
    lookup::LookupOptions,
    video::{Platform, ShortLink, VideoId},
};

use crate::{
    altcha::tests::solution,
    testing::{ARCHIVED, DEFECT, NEW, SILENT, ServiceFixture, TestResponse, request},
};

const JSON: (&str, &str) = ("content-type", "application/json");

/// Solved challenge of a video's page.
pub(super) async fn solved(service: &ServiceFixture, video: &str) -> String {
    let answer = service.get(&format!("/watch/video_site/{video}/challenge")).await;
    assert_eq!(
        (answer.status.as_u16(), answer.header("cache-control")),
        (200, Some("no-store")),
        "{answer:?}"
    );
    solution(&answer.text)
}

fn body(solution: &str) -> String {
    json!({ "altcha": solution }).to_string()
}

/// Sends a solution from an address, optionally with a cookie.
async fn send(
    service: &ServiceFixture,
    video: &str,
    solution: &str,
    cookie: Option<&str>,
    peer: &str,
) -> TestResponse {
    let target = format!("/watch/video_site/{video}/transcribe");
    let mut headers = vec![JSON];
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    service.send_from(peer, request("POST", &target, &headers, &body(solution))).await
}

/// Solves the challenge and presses the button.
pub(super) async fn press(
    service: &ServiceFixture,
    video: &str,
    cookie: Option<&str>,
    peer: &str,
) -> TestResponse {
    let solution = solved(service, video).await;
    send(service, video, &solution, cookie, peer).await
}

/// Cookie of a response, as a browser sends it back.
pub(super) fn cookie(answer: &TestResponse) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[track_caller]
fn check(answer: &TestResponse, reason: Option<&str>) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.json();
    assert_eq!(body.get("failureReason").and_then(Value::as_str), reason, "{body}");
    assert_eq!(body["available"], reason.is_none());
    body
}

#[tokio::test]
async fn visitor_solved_challenge_pays_one_transcript() {
    let service = ServiceFixture::start().await;
    let challenge = solved(&service, NEW).await;
    let answer = send(&service, NEW, &challenge, None, "192.0.2.1").await;
    let body = check(&answer, None);
    assert_eq!((&body["videoId"], &body["fromCache"]), (&json!(NEW), &json!(false)));
    assert_eq!(body["transcript"][0]["text"], "It is so");
    let set = answer.header("set-cookie").unwrap();
    for part in
        ["verbatim_visitor=visitor-", "; Path=/watch/;", "; HttpOnly", "; SameSite=Strict", "; Secure"]
    {
        assert!(set.contains(part), "{part}: {set}");
    }
    assert!(set.contains("Max-Age=86400;"), "{set}");
    // An archived video needs no challenge. The challenge was used up, so a deleted video needs a new one.
    check(&send(&service, NEW, "nonsense", None, "192.0.2.1").await, None);
    service.archive.delete(&VideoId::new(Platform::YouTube, NEW).unwrap()).await.unwrap();
    let again = check(&send(&service, NEW, &challenge, None, "192.0.2.9").await, Some("needs_verification"));
    assert!(again["failureMessage"].as_str().unwrap().contains("used already"), "{again}");
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn visitor_invalid_challenge_is_rejected() {
    let service = ServiceFixture::start().await;
    let other =
        ServiceFixture::with_options(LookupOptions { free_per_month: 7, ..LookupOptions::default() }).await;
    let other_video = solved(&service, SILENT).await;
    let late = solved(&service, NEW).await;
    other.clock.advance(Duration::from_secs(1));
    let forged = {
        let text = service.get(&format!("/watch/video_site/{SILENT}/challenge")).await.text;
        solution(&text.replace(SILENT, NEW))
    };
    for (name, solution, message) in [
        ("another video's", other_video.as_str(), "another video"),
        ("a challenge with another page's name", &forged, "did not succeed"),
        ("empty", "", "did not succeed"),
        ("nonsense", "e30=", "did not succeed"),
        ("too long", &"A".repeat(6_000), "did not succeed"),
    ] {
        let body = check(&send(&service, NEW, solution, None, "192.0.2.1").await, Some("needs_verification"));
        assert!(body["failureMessage"].as_str().unwrap().contains(message), "{name}: {body}");
    }
    service.clock.advance(Duration::from_secs(600));
    let body = check(&send(&service, NEW, &late, None, "192.0.2.1").await, Some("needs_verification"));
    assert!(body["failureMessage"].as_str().unwrap().contains("expired"), "{body}");
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn transcribe_other_origin_or_body_is_rejected() {
    let service = ServiceFixture::start().await;
    let solution = solved(&service, NEW).await;
    let target = format!("/watch/video_site/{NEW}/transcribe");
    for (headers, request_body, status) in [
        (vec![JSON, ("sec-fetch-site", "cross-site")], body(&solution), 403),
        (vec![JSON, ("sec-fetch-site", "same-site")], body(&solution), 403),
        (vec![("content-type", "text/plain")], body(&solution), 415),
        (vec![("content-type", "application/x-www-form-urlencoded")], format!("altcha={solution}"), 415),
        (vec![], body(&solution), 415),
        (vec![JSON], "{".to_owned(), 400),
        (vec![JSON], "{\"altcha\": 1}".to_owned(), 400),
        (vec![JSON], body(&"A".repeat(9_000)), 413),
    ] {
        let answer = service.send(request("POST", &target, &headers, &request_body)).await;
        assert_eq!(answer.status, status, "{headers:?} {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(
        service.send(request("POST", "/watch/video_site/x/transcribe", &[JSON], "{}")).await.status,
        404
    );
    assert_eq!(service.get(&target).await.status, 405);
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 0);
    let headers = [JSON, ("sec-fetch-site", "same-origin")];
    check(&service.send(request("POST", &target, &headers, &body(&solution))).await, None);
}

/// Video id of the supplier.
fn clip(number: u32) -> String {
    format!("clip-{number:06}")
}

#[tokio::test]
async fn visitor_daily_allowance_and_network_limit_apply() {
    let options =
        LookupOptions { visitor_per_day: 2, visitor_per_network_per_day: 3, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let first = press(&service, &clip(1), None, "192.0.2.1").await;
    check(&first, None);
    let visitor_cookie = cookie(&first);
    let second = press(&service, &clip(2), Some(&visitor_cookie), "192.0.2.1").await;
    check(&second, None);
    assert_eq!(cookie(&second), visitor_cookie);
    let spent = press(&service, &clip(3), Some(&visitor_cookie), "192.0.2.1").await;
    let body = check(&spent, Some("allowance"));
    assert!(body["failureMessage"].as_str().unwrap().contains("2 new transcripts for today"), "{body}");
    assert_eq!(spent.header("retry-after"), Some("86400"));
    // The cookie is valid on another network. Without it or with an invalid one the network's limit applies.
    check(&press(&service, &clip(3), Some(&visitor_cookie), "192.0.2.2").await, Some("allowance"));
    let made_up = visitor_cookie.replace("visitor-", "visitor-0");
    check(&press(&service, &clip(3), Some(&made_up), "192.0.2.1").await, None);
    check(&press(&service, &clip(4), None, "192.0.2.1").await, Some("fair_use"));
    check(&press(&service, &clip(4), None, "192.0.2.2").await, None);
    // Archived transcripts stay free.
    check(&press(&service, &clip(1), Some(&visitor_cookie), "192.0.2.1").await, None);
    // The allowances are renewed the next day.
    service.clock.advance(Duration::from_secs(24 * 3_600));
    check(&press(&service, &clip(5), Some(&visitor_cookie), "192.0.2.1").await, None);
}

#[tokio::test]
async fn watch_page_names_visitor_or_network_without_transcripts() {
    const OWN: &str = "You've used today's free transcripts";
    const NETWORK: &str = "Too many new transcripts were requested from your network.";
    let options =
        LookupOptions { visitor_per_day: 1, visitor_per_network_per_day: 2, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let target = format!("/watch/video_site/{SILENT}");
    let page = async |cookie: &str, peer: &str| {
        service.send_from(peer, request("GET", &target, &[("cookie", cookie)], "")).await.text
    };
    let fresh = page("", "192.0.2.1").await;
    assert!(fresh.contains("none of your own free transcripts") && !fresh.contains("Nothing was counted"));
    let first = press(&service, &clip(1), None, "192.0.2.1").await;
    check(&press(&service, &clip(2), None, "192.0.2.1").await, None);
    for (cookie, peer, expected, other) in [
        (cookie(&first).as_str(), "192.0.2.1", OWN, NETWORK),
        (cookie(&first).as_str(), "192.0.2.2", OWN, NETWORK),
        ("", "192.0.2.1", NETWORK, OWN),
    ] {
        let page = page(cookie, peer).await;
        assert!(page.contains(expected) && !page.contains(other), "{cookie} {peer}: {page}");
    }
    assert!(page("", "192.0.2.2").await.contains("<button"));
}

#[tokio::test]
async fn visitor_failed_attempt_counts_for_network_only() {
    let options =
        LookupOptions { visitor_per_day: 1, visitor_per_network_per_day: 2, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let silent = press(&service, SILENT, None, "192.0.2.1").await;
    let body = check(&silent, Some("no_captions"));
    assert_eq!(body["failureMessage"], "This video\nhas no captions.");
    // The absence is stored, so a repeat costs nothing.
    let visitor_cookie = cookie(&silent);
    check(&press(&service, SILENT, Some(&visitor_cookie), "192.0.2.1").await, Some("no_captions"));
    check(&press(&service, NEW, Some(&visitor_cookie), "192.0.2.1").await, None);
    check(&press(&service, DEFECT, None, "192.0.2.1").await, Some("fair_use"));
    assert_eq!(service.supplier_calls.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn visitor_daily_cap_and_minute_limit_apply() {
    let service = ServiceFixture::with_options(LookupOptions {
        service_per_day: 1,
        misses_per_network_per_minute: 3,
        ..LookupOptions::default()
    })
    .await;
    check(&press(&service, &clip(1), None, "192.0.2.1").await, None);
    check(&press(&service, &clip(2), None, "192.0.2.1").await, Some("daily_cap"));
    check(&press(&service, &clip(2), None, "192.0.2.1").await, Some("daily_cap"));
    check(&press(&service, &clip(2), None, "192.0.2.1").await, Some("fair_use"));
    check(&press(&service, &clip(2), None, "192.0.2.2").await, Some("daily_cap"));
}

#[tokio::test]
async fn watch_visitors_disabled_hides_button() {
    let options =
        LookupOptions { visitor_per_day: 0, questions_per_visitor_per_day: 0, ..LookupOptions::default() };
    let service = ServiceFixture::with_options(options).await;
    let page = service.get(&format!("/watch/video_site/{NEW}")).await;
    assert!(page.text.contains("API key") && !page.text.contains("<button"), "{}", page.text);
    assert!(!page.text.contains("<script"));
    // Links to the registration and the prices.
    for link in ["<a href=\"../../register\">Sign up for free", "<a href=\"../../pricing\">See what credits"]
    {
        assert!(page.text.contains(link), "{link}: {}", page.text);
    }
    assert_eq!(service.get(&format!("/watch/video_site/{NEW}/challenge")).await.status, 404);
    let refused = check(&send(&service, NEW, "", None, "192.0.2.1").await, Some("needs_verification"));
    assert!(refused["failureMessage"].as_str().unwrap().contains("API key only"), "{refused}");
    // No button without a supplier for the platform.
    let page = ServiceFixture::start().await.get("/watch/microblog/7").await;
    assert!(page.text.contains("no source of new transcripts for X") && !page.text.contains("<button"));
    assert!(!page.text.contains("href=\"../../register\""), "an account does not help");
}

#[tokio::test]
async fn transcribe_streams_progress_events() {
    let service = ServiceFixture::start().await;
    let events = [JSON, ("accept", "text/event-stream")];
    let solution = solved(&service, NEW).await;
    let target = format!("/watch/video_site/{NEW}/transcribe?src=mcp_other");
    let answer = service.send(request("POST", &target, &events, &body(&solution))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert!(answer.header("set-cookie").is_some());
    let events_sent: Vec<_> = answer.text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert!(
        events_sent[0].starts_with("event: progress\ndata: {\"message\":\"Your browser has passed"),
        "{events_sent:?}"
    );
    let result = events_sent.last().unwrap().strip_prefix("event: result\ndata: ").unwrap();
    let result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(
        (&result["available"], &result["transcript"][1]["text"]),
        (&json!(true), &json!("quiet here."))
    );
    assert!(result["watchUrl"].as_str().unwrap().ends_with("?src=mcp_other"), "{result}");
    // A rejected visitor gets an event stream, too.
    let target = format!("/watch/video_site/{DEFECT}/transcribe");
    let refused = service.send(request("POST", &target, &events, &body("x"))).await;
    assert!(refused.text.starts_with("event: result\ndata: ") && refused.text.contains("needs_verification"));
    // A panic of a supplier is a result, too.
    let solution = solved(&service, DEFECT).await;
    let failed = service.send(request("POST", &target, &events, &body(&solution))).await;
    assert!(failed.text.contains("\"failureReason\":\"fetch_error\""), "{}", failed.text);
    let _ = check(&send(&service, ARCHIVED, "", None, "192.0.2.1").await, None);
}

#[tokio::test]
async fn watch_short_link_page_has_own_challenge() {
    let service = ServiceFixture::start().await;
    let link = ShortLink::from_name(Platform::YouTube, "vm:x");
    assert!(link.is_none(), "YouTube now has short links with a name: test them here");
    let target = "/watch/short_video/vm:ZMabc12De";
    assert_eq!(service.get(&format!("{target}/challenge")).await.status, 200);
    let page = service.get(target).await;
    // No supplier covers this platform.
    assert!(!page.text.contains("<button"), "{}", page.text);
    let solution = solution(&service.get(&format!("{target}/challenge")).await.text);
    let answer =
        service.send(request("POST", &format!("{target}/transcribe"), &[JSON], &body(&solution))).await;
    assert_eq!(answer.json()["available"], false, "{answer:?}");
}
