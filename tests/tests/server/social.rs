//! TikTok, X and Instagram through the built server: from a link to its captions.

use anyhow::Result;
use http::StatusCode;
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule, Script};

use super::{
    harness::{ServerFixture, create_keys, run, verbatim, verbatim_with},
    platform::{recorded_rules, serve_platform},
};

/// A proxy that plays all recordings of a platform, with these rules before them.
fn play_recordings(platform: &str, first: Vec<Rule>) -> Result<ReplayProxy> {
    ReplayProxy::start(Script::new().rules(first).rules(recorded_rules(platform)?))
}

/// A server that uses this proxy, and a key of it.
fn start(proxy: &ReplayProxy) -> Result<(TempDir, ServerFixture, String)> {
    let data = TempDir::new()?;
    let server = serve_platform(&data, proxy, &[])?;
    let key = create_keys(&data, 1)?.remove(0);
    Ok((data, server, key))
}

/// The JSON response of a lookup with a key.
async fn look_up(server: &ServerFixture, key: &str, link: &str) -> Result<Value> {
    let query: String =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("url", link).finish();
    let reply = server.get_as(key, &format!("/api/transcript?{query}")).await?;
    assert_eq!(reply.status, StatusCode::OK, "{}", reply.text());
    Ok(reply.json())
}

fn first_text(body: &Value) -> &str {
    body["transcript"][0]["text"].as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread")]
async fn tiktok_link_and_short_link_are_fetched() -> Result<()> {
    let target = "https://www.tiktok.com/@rope.walk/video/7600000000000000001?_r=1&_t=ZT-8";
    let short = Rule::new("HEAD", "vm.tiktok.com", "/ZTR45GpSF/")
        .respond(ReplayResponse::status(301).header("location", target));
    let proxy = play_recordings("tiktok", vec![short])?;
    let (data, server, key) = start(&proxy)?;
    let fetched = look_up(&server, &key, "https://vm.tiktok.com/ZTR45GpSF/").await?;
    assert_eq!(fetched["available"], json!(true), "{fetched}");
    assert_eq!((&fetched["source"], &fetched["fromCache"]), (&json!("tiktok-captions"), &json!(false)));
    assert_eq!(
        (&fetched["platform"], &fetched["videoId"]),
        (&json!("short_video"), &json!("7600000000000000001"))
    );
    assert!(first_text(&fetched).starts_with("On prend d'abord"), "{fetched}");
    let archived = look_up(&server, &key, "tiktok.com/@someone/video/7600000000000000001").await?;
    assert_eq!((&archived["fromCache"], &archived["transcript"]), (&json!(true), &fetched["transcript"]));
    assert_eq!(proxy.requests().len(), 3, "{:?}", proxy.requests());

    let gone = look_up(&server, &key, "https://www.tiktok.com/@a/video/7600000000000000030").await?;
    assert_eq!((&gone["available"], &gone["failureReason"]), (&json!(false), &json!("no_captions")));
    let puzzle = look_up(&server, &key, "https://www.tiktok.com/@a/video/7600000000000000044").await?;
    assert_eq!(puzzle["failureReason"], json!("rate_limited"), "{puzzle}");
    assert!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());

    // The command shows the language of the track.
    let shown = run(verbatim(data.path(), &["archive", "show", target]), b"")?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("fr") && shown.contains("tiktok-captions"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn x_link_and_short_link_are_fetched() -> Result<()> {
    let target = "https://x.com/tidegauge/status/1990000000000000001/video/1";
    let short = Rule::new("HEAD", "t.co", "/AbCdEf1234")
        .respond(ReplayResponse::status(301).header("location", target));
    let proxy = play_recordings("x", vec![short])?;
    let (data, server, key) = start(&proxy)?;
    let fetched = look_up(&server, &key, "https://t.co/AbCdEf1234").await?;
    assert_eq!(fetched["available"], json!(true), "{fetched}");
    assert_eq!((&fetched["source"], &fetched["fromCache"]), (&json!("x-captions"), &json!(false)));
    assert_eq!(
        (&fetched["platform"], &fetched["videoId"]),
        (&json!("microblog"), &json!("1990000000000000001"))
    );
    assert_eq!(fetched["transcript"][1]["text"], json!("A List<Gate> of three, all & sundry."));
    let archived = look_up(&server, &key, "twitter.com/someone/status/1990000000000000001?s=20").await?;
    assert_eq!((&archived["fromCache"], &archived["transcript"]), (&json!(true), &fetched["transcript"]));
    assert_eq!(proxy.requests().len(), 6, "{:?}", proxy.requests());

    // The guest token is reused; a picture has no transcript.
    let none = look_up(&server, &key, "https://x.com/i/status/1990000000000000010").await?;
    assert_eq!((&none["available"], &none["failureReason"]), (&json!(false), &json!("no_captions")));
    assert_eq!(proxy.requests().len(), 7);

    let shown = run(verbatim(data.path(), &["archive", "show", target]), b"")?;
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains("en") && shown.contains("x-captions"), "{shown}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn x_request_settings_are_validated() -> Result<()> {
    let data = TempDir::new()?;
    let checked =
        |settings: &[(&str, &str)]| run(verbatim_with(data.path(), settings, &["check-config"]), b"");
    let good = checked(&[("VERBATIM_X__QUERY_ID", "Qq-1_x"), ("VERBATIM_X__FEATURES", "a_b,c=false")])?;
    let report = String::from_utf8_lossy(&good.stdout).into_owned();
    assert_eq!(good.status.code(), Some(0), "{}", String::from_utf8_lossy(&good.stderr));
    for line in ["x.query_id", "Qq-1_x", "x.features", "c=false", "\"x-captions\"", "\"tiktok-captions\""] {
        assert!(report.contains(line), "{line}: {report}");
    }
    for (name, value) in [("VERBATIM_X__QUERY_ID", "a/b"), ("VERBATIM_X__FEATURES", "a=perhaps")] {
        let wrong = checked(&[(name, value)])?;
        assert_eq!(wrong.status.code(), Some(2), "{wrong:?}");
        assert!(String::from_utf8_lossy(&wrong.stderr).contains("x."), "{wrong:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn instagram_without_supplier_is_config_error() -> Result<()> {
    let target = "https://www.instagram.com/reel/DdG4RIxIPyf/?igsh=MzRl";
    let short = Rule::new("HEAD", "www.instagram.com", "/share/reel/BARSSL4rTu/")
        .respond(ReplayResponse::status(301).header("location", target));
    let proxy = play_recordings("tiktok", vec![short])?;
    let (_data, server, key) = start(&proxy)?;
    for link in [target, "https://www.instagram.com/share/reel/BARSSL4rTu"] {
        let reply = look_up(&server, &key, link).await?;
        assert_eq!(reply["failureReason"], json!("config_error"), "{reply}");
        assert_eq!((&reply["platform"], &reply["videoId"]), (&json!("reels"), &json!("DdG4RIxIPyf")));
    }
    // Only the short link was resolved.
    assert_eq!(proxy.requests().len(), 1, "{:?}", proxy.requests());
    Ok(())
}
