//! A server whose source is another server, which asks recordings of a platform.

use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::{Answer, ReplayProxy, Rule, Script};

use super::{
    fake::{Fake, Reply, header},
    stage::{NONE, OTHER, Stage, VIDEO},
};
use crate::server::{
    harness::{Server, keys, run, verbatim},
    platform::{fetches, platform},
};

const ONLY: (&str, &str) = ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service");

/// A server that asks the one at this address, and a key of its own.
struct Asking {
    data: TempDir,
    server: Server,
    key: String,
}

impl Asking {
    fn start(url: &str, key: &str, more: &[(&str, &str)]) -> Result<Self> {
        let data = TempDir::new()?;
        let mut settings = vec![("VERBATIM_SERVICE__BASE_URL", url), ("VERBATIM_SERVICE__API_KEY", key)];
        settings.extend(more);
        let server = Server::start(&data, &settings)?;
        let key = keys(&data, 1)?.remove(0);
        Ok(Self { data, server, key })
    }

    async fn look_up(&self, video: &str) -> Result<Value> {
        Ok(self.server.get_as(&self.key, &format!("/api/transcript?v={video}")).await?.json())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn words_come_through_with_what_is_known_of_them() -> Result<()> {
    let origin = Stage::with(&[])?;
    let origin_key = origin.key()?;
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    let fetched = asking.look_up(VIDEO).await?;
    assert_eq!(
        (&fetched["available"], &fetched["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{fetched}"
    );
    // A person is sent to the server that was asked.
    let watch_url = format!("http://{}/watch/video_site/{VIDEO}", asking.server.address());
    assert_eq!(fetched["watchUrl"], json!(watch_url));
    let reply = asking.server.get_as(&asking.key, &format!("/api/transcript?v={VIDEO}")).await?;
    assert_eq!((reply.header("content-language"), reply.header("x-is-generated")), ("en", "false"));
    let there = origin.server.get(&format!("/api/transcript?v={VIDEO}")).await?.json();
    assert_eq!(fetched["transcript"], there["transcript"]);
    // It was charged once there, and archived here.
    let status = origin.server.get_as(&origin_key, "/api/keys/me").await?.json();
    assert_eq!((&status["used"], fetches(&origin.proxy, VIDEO)), (&json!(1), 1));
    drop(origin);
    let archived = asking.look_up(VIDEO).await?;
    assert_eq!((&archived["fromCache"], &archived["transcript"]), (&json!(true), &fetched["transcript"]));
    let away = asking.look_up(OTHER).await?;
    assert_eq!(
        (&away["failureReason"], &away["available"]),
        (&json!("fetch_error"), &json!(false)),
        "{away}"
    );
    let shown = run(verbatim(asking.data.path(), &["archive", "show", VIDEO]), b"")?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("youtube-captions") && shown.contains("en"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reason_of_a_failure_comes_through() -> Result<()> {
    let none = Rule::post("www.youtube.com", "/youtubei/v1/player")
        .or_host("youtubei.googleapis.com")
        .json("/videoId", NONE)
        .answer(Answer::json(&json!({
            "playabilityStatus": {"status": "OK"},
            "videoDetails": {"videoId": NONE, "title": "Silence", "lengthSeconds": "61", "isLiveContent": false},
        })));
    let origin = Stage::before(
        ReplayProxy::start(Script::new().rule(none))?,
        &[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")],
    )?;
    let origin_key = origin.key()?;
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    let told = asking.look_up(NONE).await?;
    assert_eq!(told["failureReason"], json!("no_captions"), "{told}");
    let asked = fetches(&origin.proxy, NONE);
    assert!(asked > 0);
    // It is remembered.
    assert_eq!(asking.look_up(NONE).await?["failureReason"], json!("no_captions"));
    assert_eq!(fetches(&origin.proxy, NONE), asked);

    let stranger = Asking::start(&origin.url(), "vbk_000000000000000000000000000000000000", &[ONLY])?;
    let told = stranger.look_up(VIDEO).await?;
    assert_eq!(told["failureReason"], json!("config_error"), "{told}");
    let message = told["failureMessage"].as_str().unwrap_or_default();
    assert!(message.contains("service.api_key") && !message.contains("vbk_0"), "{message}");
    // What the other server could not give, a person may get from its page.
    assert!(message.ends_with(&format!("{}/watch/video_site/{VIDEO}", origin.url())), "{message}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_of_a_video_without_words_comes_through() -> Result<()> {
    let private = Rule::post("www.youtube.com", "/youtubei/v1/player")
        .or_host("youtubei.googleapis.com")
        .answer(Answer::json(&json!({
            "playabilityStatus": {"status": "LOGIN_REQUIRED", "reason": "This video is private"},
        })));
    let origin = Stage::before(ReplayProxy::start(Script::new().rule(private))?, &[])?;
    let origin_key = origin.key()?;
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    let path = format!("/api/transcript?v={NONE}");
    let (day, soon) = (24 * 3_600, 60);
    // What was asked for just now, and what is remembered, at the one that asks and at the one that was asked.
    for (server, key) in
        [(&asking.server, &asking.key), (&asking.server, &asking.key), (&origin.server, &origin_key)]
    {
        let told = server.get_as(key, &path).await?;
        assert_eq!(told.json()["failureReason"], json!("no_captions"));
        assert_eq!(told.header("x-failure-detail"), "private", "{}", told.text());
    }
    let remembered = asking.server.get_as(&asking.key, &path).await?;
    let wait: i64 = remembered.header("retry-after").parse()?;
    assert!((day - soon..=day).contains(&wait), "{wait}");
    // Whoever has no key is told nothing of it.
    assert_eq!(asking.server.get(&path).await?.header("x-failure-detail"), "");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_server_withdrew_is_not_told_as_our_own_doing() -> Result<()> {
    let origin = Stage::with(&[])?;
    let origin_key = origin.key()?;
    let path = format!("/api/transcript?v={VIDEO}");
    origin.server.get_as(&origin_key, &path).await?;
    let withdrawn = run(verbatim(origin.data.path(), &["archive", "withdraw", VIDEO]), b"")?;
    assert!(withdrawn.status.success(), "{withdrawn:?}");
    assert_eq!(origin.server.get_as(&origin_key, &path).await?.header("x-failure-detail"), "withdrawn");
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    for _ in 0..2 {
        let told = asking.look_up(VIDEO).await?;
        let message = told["failureMessage"].as_str().unwrap_or_default();
        assert!(message.starts_with("The Verbatim server that this one asks has withdrawn"), "{told}");
        assert_eq!(told["key"]["used"], json!(0), "{told}");
    }
    // It is not remembered here.
    let back = run(verbatim(origin.data.path(), &["archive", "withdraw", "--undo", VIDEO]), b"")?;
    assert!(back.status.success(), "{back:?}");
    assert_eq!(asking.look_up(VIDEO).await?["available"], json!(true));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spent_key_is_no_fault_of_the_video() -> Result<()> {
    let origin = Stage::with(&[("VERBATIM_LIMITS__FREE_PER_MONTH", "1")])?;
    let asking = Asking::start(&origin.url(), &origin.key()?, &[ONLY])?;
    assert_eq!(asking.look_up(VIDEO).await?["available"], json!(true));
    let told = asking.look_up(OTHER).await?;
    assert_eq!(told["failureReason"], json!("rate_limited"), "{told}");
    assert!(
        told["failureMessage"].as_str().is_some_and(|text| text.contains("/watch/video_site/")),
        "{told}"
    );
    // Nothing is spent here for what was not delivered.
    assert_eq!(told["key"]["used"], json!(1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_comes_after_the_sources_of_our_own() -> Result<()> {
    let origin = Stage::with(&[])?;
    // The platform throttles the one address, and not the other.
    let refuse = Rule::post("www.youtube.com", "/youtubei/v1/player").or_host("youtubei.googleapis.com");
    let blocked = ReplayProxy::start(
        Script::new().rule(refuse.answer(Answer::status(429).header("retry-after", "3600"))),
    )?;
    let (proxy, ca_file) = (blocked.url(), blocked.ca_file().display().to_string());
    let upstream = [("VERBATIM_UPSTREAM__PROXY", proxy.as_str()), ("VERBATIM_UPSTREAM__CA_FILE", &ca_file)];
    let asking = Asking::start(&origin.url(), &origin.key()?, &upstream)?;
    let fetched = asking.look_up(VIDEO).await?;
    assert_eq!(
        (&fetched["available"], &fetched["source"]),
        (&json!(true), &json!("youtube-captions")),
        "{fetched}"
    );
    assert!(!blocked.requests().is_empty());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_without_a_key_and_keys_of_the_other_surface_are_refused() -> Result<()> {
    let data = TempDir::new()?;
    let checked = |settings: &[(&str, &str)]| {
        let mut command = verbatim(data.path(), &["check-config"]);
        command.envs(settings.iter().copied());
        run(command, b"")
    };
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
async fn a_server_that_is_none_is_told_from_a_video_that_has_nothing() -> Result<()> {
    let page = |available: &str| {
        Reply::of(
            200,
            "",
            &format!("{{\"platform\":\"video_site\",\"videoId\":\"{OTHER}\",{available},\"transcript\":[]}}"),
        )
    };
    for (reply, expect) in [
        (Reply::of(404, "", "<html>"), "config_error"),
        (Reply::of(302, "location: http://127.0.0.1:1/\r\n", ""), "config_error"),
        (Reply::of(503, "", ""), "fetch_error"),
        (Reply::of(429, "retry-after: 60\r\n", ""), "rate_limited"),
        (Reply::of(200, "", "{"), "fetch_error"),
        // An answer about another video, and one that has no words.
        (page("\"available\":true"), "rate_limited"),
        (
            Reply::of(200, "", &format!("{{\"videoId\":\"{VIDEO}\",\"available\":true,\"transcript\":[]}}")),
            "fetch_error",
        ),
    ] {
        let shown = format!("{reply:?}");
        let fake = Fake::start(move |_| reply.clone()).await?;
        let asking = Asking::start(&fake.url, "vbk_hush", &[ONLY])?;
        let told = asking.look_up(VIDEO).await?;
        assert_eq!(told["failureReason"], json!(expect), "{shown}: {told}");
        let heads = fake.seen();
        assert!(heads.iter().all(|head| header(head, "x-verbatim-hop") == Some("1")), "{heads:?}");
        assert!(heads.iter().all(|head| header(head, "authorization") == Some("bearer vbk_hush")));
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn many_who_ask_at_once_are_one_question() -> Result<()> {
    let origin = Stage::before(platform(&[VIDEO], Duration::from_millis(200))?, &[])?;
    let origin_key = origin.key()?;
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    let answers = futures_util::future::join_all((0..8).map(|_| asking.look_up(VIDEO))).await;
    for answer in answers {
        assert_eq!(answer?["available"], json!(true));
    }
    let status = origin.server.get_as(&origin_key, "/api/keys/me").await?.json();
    assert_eq!((&status["used"], fetches(&origin.proxy, VIDEO)), (&json!(1), 1));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fetch_that_goes_on_is_waited_for() -> Result<()> {
    // The other server tells whoever asks that it is still at work, long before the platform has answered.
    let origin =
        Stage::before(platform(&[VIDEO], Duration::from_secs(2))?, &[("VERBATIM_LIMITS__WAIT", "200ms")])?;
    let origin_key = origin.key()?;
    let asking = Asking::start(&origin.url(), &origin_key, &[ONLY])?;
    let path = format!("/api/transcript?v={VIDEO}");
    let (fetched, meanwhile) = tokio::join!(asking.look_up(VIDEO), origin.server.get_as(&origin_key, &path));
    assert_eq!(meanwhile?.header("x-failure-detail"), "still_working");
    let fetched = fetched?;
    assert_eq!(fetched["available"], json!(true), "{fetched}");
    assert_eq!(fetches(&origin.proxy, VIDEO), 1);
    Ok(())
}
