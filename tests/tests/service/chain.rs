//! A server whose supplier is another Verbatim server, which fetches recordings of a platform.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    fake::{FakeReply, FakeService},
    fixture::{NONE, OTHER, ServiceFixture, VIDEO},
};
use crate::server::{
    harness::{ServerFixture, create_keys, run, run_ok, sqlite, verbatim, verbatim_with},
    platform::{fetch_count, start_platform},
};

const ONLY: (&str, &str) = ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service");

/// A server that has the server at this address as a supplier, and a key of its lookup API.
struct ChainedServer {
    data: TempDir,
    server: ServerFixture,
    key: String,
}

impl ChainedServer {
    fn start(url: &str, key: &str, more: &[(&str, &str)]) -> Result<Self> {
        let data = TempDir::new()?;
        let mut settings = vec![("VERBATIM_SERVICE__BASE_URL", url), ("VERBATIM_SERVICE__API_KEY", key)];
        settings.extend(more);
        let server = ServerFixture::start(&data, &settings)?;
        let key = create_keys(&data, 1)?.remove(0);
        Ok(Self { data, server, key })
    }

    async fn look_up(&self, video: &str) -> Result<Value> {
        Ok(self.server.get_as(&self.key, &format!("/api/transcript?v={video}")).await?.json())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_transcript_keeps_metadata() -> Result<()> {
    let origin = ServiceFixture::start(&[])?;
    let origin_key = origin.key()?;
    let downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY])?;
    let fetched = downstream.look_up(VIDEO).await?;
    assert_eq!(
        (&fetched["available"], &fetched["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{fetched}"
    );
    // The URL leads to the server that received the lookup.
    let watch_url = format!("http://{}/watch/video_site/{VIDEO}", downstream.server.address());
    assert_eq!(fetched["watchUrl"], json!(watch_url));
    let reply = downstream.server.get_as(&downstream.key, &format!("/api/transcript?v={VIDEO}")).await?;
    assert_eq!((reply.header("content-language"), reply.header("x-is-generated")), ("en", "false"));
    let there = origin.server.get(&format!("/api/transcript?v={VIDEO}")).await?.json();
    assert_eq!(fetched["transcript"], there["transcript"]);
    assert_eq!(fetched["metadata"]["title"], json!("A walk along the dyke"));
    for field in ["language", "languages", "metadata"] {
        assert_eq!(fetched[field], there[field], "{field}");
    }
    // The origin charged once, and this server archived the transcript.
    let status = origin.server.get_as(&origin_key, "/api/keys/me").await?.json();
    assert_eq!((&status["used"], fetch_count(&origin.proxy, VIDEO)), (&json!(1), 1));
    drop(origin);
    let archived = downstream.look_up(VIDEO).await?;
    assert_eq!((&archived["fromCache"], &archived["transcript"]), (&json!(true), &fetched["transcript"]));
    let away = downstream.look_up(OTHER).await?;
    assert_eq!(
        (&away["failureReason"], &away["available"]),
        (&json!("fetch_error"), &json!(false)),
        "{away}"
    );
    let shown = run(verbatim(downstream.data.path(), &["archive", "show", VIDEO]), b"")?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("youtube-captions") && shown.contains("en"), "{shown}");
    Ok(())
}

/// The platform's response for a video without captions.
fn no_captions() -> Rule {
    Rule::post("www.youtube.com", "/youtubei/v1/player")
        .or_host("youtubei.googleapis.com")
        .json("/videoId", NONE)
        .respond(ReplayResponse::json(&json!({
            "playabilityStatus": {"status": "OK"},
            "videoDetails": {"videoId": NONE, "title": "Silence", "lengthSeconds": "61", "isLiveContent": false},
        })))
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_failure_reason_is_forwarded() -> Result<()> {
    let origin = ServiceFixture::start_with_platform(
        ReplayProxy::start(Script::new().rule(no_captions()))?,
        &[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")],
    )?;
    let origin_key = origin.key()?;
    let downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY])?;
    let response = downstream.look_up(NONE).await?;
    assert_eq!(response["failureReason"], json!("no_captions"), "{response}");
    let fetches = fetch_count(&origin.proxy, NONE);
    assert!(fetches > 0);
    // The absence is stored.
    assert_eq!(downstream.look_up(NONE).await?["failureReason"], json!("no_captions"));
    assert_eq!(fetch_count(&origin.proxy, NONE), fetches);

    let stranger = ChainedServer::start(&origin.url(), "vbk_000000000000000000000000000000000000", &[ONLY])?;
    let response = stranger.look_up(VIDEO).await?;
    assert_eq!(response["failureReason"], json!("config_error"), "{response}");
    let message = response["failureMessage"].as_str().unwrap_or_default();
    assert!(message.contains("API key"), "{message}");
    assert!(!message.contains("service.api_key") && !message.contains("vbk_0"), "{message}");
    // The message ends with the other server's watch page, where a person may get the transcript.
    assert!(message.ends_with(&format!("{}/watch/video_site/{VIDEO}", origin.url())), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_absence_detail_is_forwarded() -> Result<()> {
    let private = Rule::post("www.youtube.com", "/youtubei/v1/player")
        .or_host("youtubei.googleapis.com")
        .respond(ReplayResponse::json(&json!({
            "playabilityStatus": {"status": "LOGIN_REQUIRED", "reason": "This video is private"},
        })));
    let origin = ServiceFixture::start_with_platform(ReplayProxy::start(Script::new().rule(private))?, &[])?;
    let origin_key = origin.key()?;
    let downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY])?;
    let path = format!("/api/transcript?v={NONE}");
    let (day, soon) = (24 * 3_600, 60);
    // Fetched and stored absences, at the downstream server and at the origin.
    for (server, key) in [
        (&downstream.server, &downstream.key),
        (&downstream.server, &downstream.key),
        (&origin.server, &origin_key),
    ] {
        let response = server.get_as(key, &path).await?;
        assert_eq!(response.json()["failureReason"], json!("no_captions"));
        assert_eq!(response.header("x-failure-detail"), "private", "{}", response.text());
    }
    let remembered = downstream.server.get_as(&downstream.key, &path).await?;
    let wait: i64 = remembered.header("retry-after").parse()?;
    assert!((day - soon..=day).contains(&wait), "{wait}");
    // A caller without a key does not receive the detail.
    assert_eq!(downstream.server.get(&path).await?.header("x-failure-detail"), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_remote_withdrawal_is_reported_but_not_stored() -> Result<()> {
    let origin = ServiceFixture::start(&[])?;
    let origin_key = origin.key()?;
    let path = format!("/api/transcript?v={VIDEO}");
    origin.server.get_as(&origin_key, &path).await?;
    run_ok(verbatim(origin.data.path(), &["archive", "withdraw", VIDEO]), b"")?;
    assert_eq!(origin.server.get_as(&origin_key, &path).await?.header("x-failure-detail"), "withdrawn");
    let attempts = ("VERBATIM_LIMITS__ATTEMPTS_PER_KEY_PER_HOUR", "2");
    let mut downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY, attempts])?;
    for _ in 0..2 {
        let response = downstream.look_up(VIDEO).await?;
        let message = response["failureMessage"].as_str().unwrap_or_default();
        assert!(message.starts_with("The other Verbatim server has withdrawn"), "{response}");
        assert_eq!(response["key"]["used"], json!(0), "{response}");
    }
    // Each request to the other server was a failed attempt.
    let limited = downstream.look_up(VIDEO).await?;
    assert_eq!(limited["failureReason"], json!("fair_use"), "{limited}");
    // The withdrawal is not stored at the downstream server.
    let absences = sqlite(&downstream.data.path().join("archive.db"), "SELECT count(*) FROM absences")?;
    assert_eq!(absences.trim(), "0");
    run_ok(verbatim(origin.data.path(), &["archive", "withdraw", "--undo", VIDEO]), b"")?;
    downstream.key = create_keys(&downstream.data, 1)?.remove(0);
    assert_eq!(downstream.look_up(VIDEO).await?["available"], json!(true));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_remote_withdrawal_keeps_absence_of_platform() -> Result<()> {
    let withdrawn = json!({
        "platform": "video_site", "videoId": NONE, "available": false, "failureReason": "no_captions", "transcript": [],
    })
    .to_string();
    let withdrawn = FakeReply::new(200, "x-failure-detail: withdrawn\r\n", withdrawn);
    let fake = FakeService::start(move |_, _| withdrawn.clone()).await?;
    let platform = ReplayProxy::start(Script::new().rule(no_captions()))?;
    let (proxy, ca_file) = (platform.url(), platform.ca_file().display().to_string());
    let upstream = [("VERBATIM_UPSTREAM__PROXY", proxy.as_str()), ("VERBATIM_UPSTREAM__CA_FILE", &ca_file)];
    let downstream = ChainedServer::start(&fake.url, "vbk_hush", &upstream)?;
    let mut calls = Vec::new();
    for _ in 0..2 {
        let response = downstream.look_up(NONE).await?;
        assert_eq!(response["failureReason"], json!("no_captions"), "{response}");
        calls.push((fetch_count(&platform, NONE), fake.requests().len()));
    }
    assert!(calls[0].0 > 0 && calls[0].1 > 0, "{calls:?}");
    assert_eq!(calls[0], calls[1], "the absence of the platform was void");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_spent_key_is_rate_limited_and_not_charged() -> Result<()> {
    let origin = ServiceFixture::start(&[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")])?;
    let downstream = ChainedServer::start(&origin.url(), &origin.key()?, &[ONLY])?;
    assert_eq!(downstream.look_up(VIDEO).await?["available"], json!(true));
    let response = downstream.look_up(OTHER).await?;
    assert_eq!(response["failureReason"], json!("rate_limited"), "{response}");
    assert!(
        response["failureMessage"].as_str().is_some_and(|text| text.contains("/watch/video_site/")),
        "{response}"
    );
    // The downstream server spends nothing for an undelivered transcript.
    assert_eq!(response["key"]["used"], json!(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_service_is_tried_after_platform_suppliers() -> Result<()> {
    let origin = ServiceFixture::start(&[])?;
    // The platform throttles only the downstream server's address.
    let refuse = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let blocked = ReplayProxy::start(
        Script::new().rule(refuse.respond(ReplayResponse::status(429).header("retry-after", "3600"))),
    )?;
    let (proxy, ca_file) = (blocked.url(), blocked.ca_file().display().to_string());
    let upstream = [("VERBATIM_UPSTREAM__PROXY", proxy.as_str()), ("VERBATIM_UPSTREAM__CA_FILE", &ca_file)];
    let downstream = ChainedServer::start(&origin.url(), &origin.key()?, &upstream)?;
    let fetched = downstream.look_up(VIDEO).await?;
    assert_eq!(
        (&fetched["available"], &fetched["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{fetched}"
    );
    assert!(!blocked.requests().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_settings_with_missing_or_wrong_key_are_rejected() -> Result<()> {
    let data = TempDir::new()?;
    let checked =
        |settings: &[(&str, &str)]| run(verbatim_with(data.path(), settings, &["check-config"]), b"");
    let url = ("VERBATIM_SERVICE__BASE_URL", "http://verbatim.example");
    let good = checked(&[url, ("VERBATIM_SERVICE__API_KEY", "vbk_hush")])?;
    let report = String::from_utf8_lossy(&good.stdout).into_owned();
    assert!(
        good.status.success() && report.contains("\"verbatim-service\"") && !report.contains("hush"),
        "{report}"
    );
    let warned = String::from_utf8_lossy(&good.stderr).into_owned() + &report;
    assert!(warned.contains("service.base_url is http"), "{warned}");
    for (settings, named) in [
        (&[url][..], "service.api_key"),
        (&[url, ("VERBATIM_SERVICE__API_KEY", "vba_hush")], "service.api_key"),
        (&[ONLY], "suppliers.video_site"),
        (
            &[url, ("VERBATIM_SERVICE__API_KEY", "vbk_a"), ("VERBATIM_SERVICE__TIMEOUT", "0s")],
            "service.timeout",
        ),
    ] {
        let wrong = checked(settings)?;
        let error = String::from_utf8_lossy(&wrong.stderr).into_owned();
        assert!(
            wrong.status.code() == Some(2) && error.contains(named) && !error.contains("hush"),
            "{error}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_invalid_server_response_is_not_an_absence() -> Result<()> {
    let page = |available: &str| {
        FakeReply::new(
            200,
            "",
            format!("{{\"platform\":\"video_site\",\"videoId\":\"{OTHER}\",{available},\"transcript\":[]}}"),
        )
    };
    for (reply, expect) in [
        (FakeReply::new(404, "", "<html>"), "config_error"),
        (FakeReply::new(302, "location: http://127.0.0.1:1/\r\n", ""), "config_error"),
        (FakeReply::new(503, "", ""), "fetch_error"),
        (FakeReply::new(429, "retry-after: 60\r\n", ""), "rate_limited"),
        (FakeReply::new(200, "", "{"), "fetch_error"),
        // A response about another video, and one without segments.
        (page("\"available\":true"), "rate_limited"),
        (
            FakeReply::new(
                200,
                "",
                format!("{{\"videoId\":\"{VIDEO}\",\"available\":true,\"transcript\":[]}}"),
            ),
            "fetch_error",
        ),
    ] {
        let shown = format!("{reply:?}");
        let fake = FakeService::start(move |_, _| reply.clone()).await?;
        let downstream = ChainedServer::start(&fake.url, "vbk_hush", &[ONLY])?;
        let response = downstream.look_up(VIDEO).await?;
        assert_eq!(response["failureReason"], json!(expect), "{shown}: {response}");
        for request in fake.requests() {
            let sent = (request.header("x-verbatim-hop"), request.header("authorization"));
            assert_eq!(sent, (Some("1"), Some("bearer vbk_hush")), "{}", request.head);
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_concurrent_lookups_share_one_request() -> Result<()> {
    let origin =
        ServiceFixture::start_with_platform(start_platform(&[VIDEO], Duration::from_millis(200))?, &[])?;
    let origin_key = origin.key()?;
    let downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY])?;
    let responses = futures_util::future::join_all((0..8).map(|_| downstream.look_up(VIDEO))).await;
    for answer in responses {
        assert_eq!(answer?["available"], json!(true));
    }
    let status = origin.server.get_as(&origin_key, "/api/keys/me").await?.json();
    assert_eq!((&status["used"], fetch_count(&origin.proxy, VIDEO)), (&json!(1), 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn chain_running_fetch_is_awaited() -> Result<()> {
    // The origin responds with `still_working` long before the platform has responded.
    let origin = ServiceFixture::start_with_platform(
        start_platform(&[VIDEO], Duration::from_secs(2))?,
        &[("VERBATIM_LIMITS__WAIT", "200ms")],
    )?;
    let origin_key = origin.key()?;
    let downstream = ChainedServer::start(&origin.url(), &origin_key, &[ONLY])?;
    let path = format!("/api/transcript?v={VIDEO}");
    let (fetched, concurrent) =
        tokio::join!(downstream.look_up(VIDEO), origin.server.get_as(&origin_key, &path));
    assert_eq!(concurrent?.header("x-failure-detail"), "still_working");
    let fetched = fetched?;
    assert_eq!(fetched["available"], json!(true), "{fetched}");
    assert_eq!(fetch_count(&origin.proxy, VIDEO), 1);
    Ok(())
}
