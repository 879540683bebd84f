//! The button of a watch page: who is let in, once, and within which allowances.

use std::{sync::atomic::Ordering, time::Duration};

use http::StatusCode;
use serde_json::{Value, json};
use transcript_core::{
    archive::Archive,
    lookup::LookupOptions,
    video::{Platform, ShortLink, VideoId},
};

use crate::{
    human::tests::solution,
    testing::{ARCHIVED, Answer, DEFECT, NEW, SILENT, Service, request},
};

const JSON: (&str, &str) = ("content-type", "application/json");

/// The solved challenge of a video's page.
async fn solved(service: &Service, video: &str) -> String {
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

/// Sends a solution from an address, with a cookie or none.
async fn send(service: &Service, video: &str, solution: &str, cookie: Option<&str>, peer: &str) -> Answer {
    let target = format!("/watch/video_site/{video}/transcribe");
    let mut headers = vec![JSON];
    headers.extend(cookie.map(|cookie| ("cookie", cookie)));
    service.send_from(peer, request("POST", &target, &headers, &body(solution))).await
}

/// Presses the button.
async fn press(service: &Service, video: &str, cookie: Option<&str>, peer: &str) -> Answer {
    let solution = solved(service, video).await;
    send(service, video, &solution, cookie, peer).await
}

/// The cookie that an answer sets, as it is sent back.
fn cookie(answer: &Answer) -> String {
    answer.header("set-cookie").unwrap().split(';').next().unwrap().to_owned()
}

#[track_caller]
fn check(answer: &Answer, reason: Option<&str>) -> Value {
    assert_eq!(answer.status, StatusCode::OK, "{answer:?}");
    assert_eq!(answer.header("cache-control"), Some("no-store"));
    let body = answer.json();
    assert_eq!(body.get("failureReason").and_then(Value::as_str), reason, "{body}");
    assert_eq!(body["available"], reason.is_none());
    body
}

#[tokio::test]
async fn a_solved_challenge_is_good_for_one_transcript() {
    let service = Service::start().await;
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
    // What is archived by now needs no check; what is not does, and this one is used up.
    check(&send(&service, NEW, "nonsense", None, "192.0.2.1").await, None);
    service.archive.forget(&VideoId::new(Platform::VideoSite, NEW).unwrap()).await.unwrap();
    let again = check(&send(&service, NEW, &challenge, None, "192.0.2.9").await, Some("needs_verification"));
    assert!(again["failureMessage"].as_str().unwrap().contains("used already"), "{again}");
    assert_eq!(service.asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn forged_foreign_and_late_challenges_are_worth_nothing() {
    let service = Service::start().await;
    let other = Service::with(LookupOptions { free_per_month: 7, ..LookupOptions::default() }).await;
    let of_another_video = solved(&service, SILENT).await;
    let late = solved(&service, NEW).await;
    other.clock.advance(Duration::from_secs(1));
    let forged = {
        let text = service.get(&format!("/watch/video_site/{SILENT}/challenge")).await.text;
        solution(&text.replace(SILENT, NEW))
    };
    for (what, solution, says) in [
        ("another video's", of_another_video.as_str(), "another video"),
        ("one with another page's name", &forged, "did not succeed"),
        ("none", "", "did not succeed"),
        ("nonsense", "e30=", "did not succeed"),
        ("one that is too long", &"A".repeat(6_000), "did not succeed"),
    ] {
        let told = check(&send(&service, NEW, solution, None, "192.0.2.1").await, Some("needs_verification"));
        assert!(told["failureMessage"].as_str().unwrap().contains(says), "{what}: {told}");
    }
    service.clock.advance(Duration::from_secs(600));
    let told = check(&send(&service, NEW, &late, None, "192.0.2.1").await, Some("needs_verification"));
    assert!(told["failureMessage"].as_str().unwrap().contains("too late"), "{told}");
    assert_eq!(service.asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn only_the_page_itself_presses_its_button() {
    let service = Service::start().await;
    let solution = solved(&service, NEW).await;
    let target = format!("/watch/video_site/{NEW}/transcribe");
    for (headers, sent, status) in [
        (vec![JSON, ("sec-fetch-site", "cross-site")], body(&solution), 403),
        (vec![JSON, ("sec-fetch-site", "same-site")], body(&solution), 403),
        (vec![("content-type", "text/plain")], body(&solution), 415),
        (vec![("content-type", "application/x-www-form-urlencoded")], format!("altcha={solution}"), 415),
        (vec![], body(&solution), 415),
        (vec![JSON], "{".to_owned(), 400),
        (vec![JSON], "{\"altcha\": 1}".to_owned(), 400),
        (vec![JSON], body(&"A".repeat(9_000)), 413),
    ] {
        let answer = service.send(request("POST", &target, &headers, &sent)).await;
        assert_eq!(answer.status, status, "{headers:?} {answer:?}");
        assert_eq!(answer.header("access-control-allow-origin"), None);
    }
    assert_eq!(
        service.send(request("POST", "/watch/video_site/x/transcribe", &[JSON], "{}")).await.status,
        404
    );
    assert_eq!(service.get(&target).await.status, 405);
    assert_eq!(service.asked.load(Ordering::Relaxed), 0);
    let headers = [JSON, ("sec-fetch-site", "same-origin")];
    check(&service.send(request("POST", &target, &headers, &body(&solution))).await, None);
}

/// Videos that the supplier has, one after the other.
fn clip(number: u32) -> String {
    format!("clip-{number:06}")
}

#[tokio::test]
async fn a_visitor_has_so_many_a_day_and_a_network_more() {
    let options =
        LookupOptions { visitor_per_day: 2, visitor_per_network_per_day: 3, ..LookupOptions::default() };
    let service = Service::with(options).await;
    let first = press(&service, &clip(1), None, "192.0.2.1").await;
    check(&first, None);
    let kept = cookie(&first);
    let second = press(&service, &clip(2), Some(&kept), "192.0.2.1").await;
    check(&second, None);
    assert_eq!(cookie(&second), kept);
    let spent = press(&service, &clip(3), Some(&kept), "192.0.2.1").await;
    let told = check(&spent, Some("allowance"));
    assert!(told["failureMessage"].as_str().unwrap().contains("2 new transcripts of today"), "{told}");
    assert_eq!(spent.header("retry-after"), Some("86400"));
    // The cookie follows to another network. Thrown away, or made up, it helps once: then the network has had its share.
    check(&press(&service, &clip(3), Some(&kept), "192.0.2.2").await, Some("allowance"));
    let made_up = kept.replace("visitor-", "visitor-0");
    check(&press(&service, &clip(3), Some(&made_up), "192.0.2.1").await, None);
    check(&press(&service, &clip(4), None, "192.0.2.1").await, Some("fair_use"));
    check(&press(&service, &clip(4), None, "192.0.2.2").await, None);
    // What is archived stays free for all of them.
    check(&press(&service, &clip(1), Some(&kept), "192.0.2.1").await, None);
    // And tomorrow is another day.
    service.clock.advance(Duration::from_secs(24 * 3_600));
    check(&press(&service, &clip(5), Some(&kept), "192.0.2.1").await, None);
}

#[tokio::test]
async fn what_was_asked_in_vain_costs_the_network_and_not_the_visitor() {
    let options =
        LookupOptions { visitor_per_day: 1, visitor_per_network_per_day: 2, ..LookupOptions::default() };
    let service = Service::with(options).await;
    let silent = press(&service, SILENT, None, "192.0.2.1").await;
    let told = check(&silent, Some("no_captions"));
    assert_eq!(told["failureMessage"], "This video\nhas no captions.");
    // It is remembered now, and asking again costs nobody anything.
    let kept = cookie(&silent);
    check(&press(&service, SILENT, Some(&kept), "192.0.2.1").await, Some("no_captions"));
    check(&press(&service, NEW, Some(&kept), "192.0.2.1").await, None);
    check(&press(&service, DEFECT, None, "192.0.2.1").await, Some("fair_use"));
    assert_eq!(service.asked.load(Ordering::Relaxed), 2);
}

#[tokio::test]
async fn the_daily_cap_and_the_minutes_limit_hold_for_visitors_too() {
    let service = Service::with(LookupOptions {
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
async fn where_visitors_have_nothing_there_is_no_button() {
    let service = Service::with(LookupOptions { visitor_per_day: 0, ..LookupOptions::default() }).await;
    let page = service.get(&format!("/watch/video_site/{NEW}")).await;
    assert!(page.text.contains("API key") && !page.text.contains("<button"), "{}", page.text);
    assert!(!page.text.contains("<script"));
    assert_eq!(service.get(&format!("/watch/video_site/{NEW}/challenge")).await.status, 404);
    let refused = check(&send(&service, NEW, "", None, "192.0.2.1").await, Some("needs_verification"));
    assert!(refused["failureMessage"].as_str().unwrap().contains("API key only"), "{refused}");
    // Nor where nobody could be asked.
    let page = Service::start().await.get("/watch/microblog/7").await;
    assert!(page.text.contains("no source of new transcripts for X") && !page.text.contains("<button"));
}

#[tokio::test]
async fn progress_is_told_as_events() {
    let service = Service::start().await;
    let events = [JSON, ("accept", "text/event-stream")];
    let solution = solved(&service, NEW).await;
    let target = format!("/watch/video_site/{NEW}/transcribe?src=mcp_other");
    let answer = service.send(request("POST", &target, &events, &body(&solution))).await;
    assert_eq!((answer.status.as_u16(), answer.header("content-type")), (200, Some("text/event-stream")));
    assert_eq!(answer.header("x-accel-buffering"), Some("no"));
    assert!(answer.header("set-cookie").is_some());
    let told: Vec<_> = answer.text.split("\n\n").filter(|event| !event.is_empty()).collect();
    assert!(told[0].starts_with("event: progress\ndata: {\"message\":\"Your browser has passed"), "{told:?}");
    let result = told.last().unwrap().strip_prefix("event: result\ndata: ").unwrap();
    let result: Value = serde_json::from_str(result).unwrap();
    assert_eq!(
        (&result["available"], &result["transcript"][1]["text"]),
        (&json!(true), &json!("quiet here."))
    );
    assert!(result["watchUrl"].as_str().unwrap().ends_with("?src=mcp_other"), "{result}");
    // Whoever is not let in hears so in the same form.
    let target = format!("/watch/video_site/{DEFECT}/transcribe");
    let refused = service.send(request("POST", &target, &events, &body("x"))).await;
    assert!(refused.text.starts_with("event: result\ndata: ") && refused.text.contains("needs_verification"));
    // A defect of a supplier is an answer, too.
    let solution = solved(&service, DEFECT).await;
    let failed = service.send(request("POST", &target, &events, &body(&solution))).await;
    assert!(failed.text.contains("\"failureReason\":\"fetch_error\""), "{}", failed.text);
    let _ = check(&send(&service, ARCHIVED, "", None, "192.0.2.1").await, None);
}

#[tokio::test]
async fn the_page_of_a_short_link_has_its_own_challenge() {
    let service = Service::start().await;
    let link = ShortLink::from_name(Platform::VideoSite, "vm:x");
    assert!(link.is_none(), "the long-form site has short links of its own now: try them here");
    let target = "/watch/short_video/vm:ZMabc12De";
    assert_eq!(service.get(&format!("{target}/challenge")).await.status, 200);
    let page = service.get(target).await;
    // Nobody here covers that platform.
    assert!(!page.text.contains("<button"), "{}", page.text);
    let solution = solution(&service.get(&format!("{target}/challenge")).await.text);
    let answer =
        service.send(request("POST", &format!("{target}/transcribe"), &[JSON], &body(&solution))).await;
    assert_eq!(answer.json()["available"], false, "{answer:?}");
}
