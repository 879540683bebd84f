//! Jobs of TikTok and X: links, and profiles, which the real yt-dlp lists; and the same profiles in the command.

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use verbatim_tests::replay::{ReplayProxy, Script};

use super::{call, results, serve, wait_for_status};
use crate::{
    server::{
        harness::{run, run_ok, verbatim},
        platform::{platform_settings, recorded_rules},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    ytdlp::{
        lists::{PROFILE, recorded_profile},
        program,
    },
};

const VIDEO: &str = "7600000000000000004";

#[tokio::test(flavor = "multi_thread")]
async fn profile_job_delivers_transcripts_of_tiktok() -> Result<()> {
    let proxy = ReplayProxy::start(recorded_profile()?)?;
    let (data, program) = (TempDir::new()?, program().await?.display().to_string());
    let server = serve(&data, &proxy, &[("VERBATIM_YTDLP__PROGRAM", &program)])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let created = call(&server, &key, Method::POST, "", &json!({ "channel": PROFILE })).await?;
    ensure!(created.status == 202, "{}", created.text());
    let created = created.json();
    assert_eq!(created["list_url"], PROFILE);
    let id = created["job_id"].as_str().context("no job_id")?;
    let done = wait_for_status(&server, &key, id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["credits"]["spent"]), (&json!(1), &json!(1)), "{done}");
    let lines = results(&server, &key, id).await?;
    let [item] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&item["platform"], &item["video_id"]), (&json!("short_video"), &json!(VIDEO)));
    assert_eq!(item["url"], format!("https://www.tiktok.com/@_/video/{VIDEO}"));
    assert_eq!(item["transcript"]["video_id"], VIDEO);
    let first = item["transcript"]["segments"][0]["text"].as_str().unwrap_or_default();
    assert!(first.starts_with("Tar keeps"), "{item}");
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_takes_links_of_every_platform() -> Result<()> {
    let proxy =
        ReplayProxy::start(Script::new().rules(recorded_rules("tiktok")?).rules(recorded_rules("x")?))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let urls = [
        "https://www.tiktok.com/@rope.walk/video/7600000000000000001",
        "https://x.com/tidegauge/status/1990000000000000001",
        "https://vm.tiktok.com/ZTR45GpSF/",
        "https://twitter.com/someone/status/1990000000000000001?s=20",
    ];
    let body = json!({ "urls": urls, "lang": "fr" });
    let created = call(&server, &key, Method::POST, "", &body).await?;
    ensure!(created.status == 202, "{}", created.text());
    let created = created.json();
    let id = created["job_id"].as_str().context("no job_id")?;
    let done = wait_for_status(&server, &key, id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["counts"]["failed"]), (&json!(1), &json!(2)), "{done}");
    let lines = results(&server, &key, id).await?;
    let [tiktok, x, short] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!(
        (&tiktok["platform"], &tiktok["transcript"]["language"]),
        (&json!("short_video"), &json!("fr"))
    );
    assert_eq!(
        (&x["platform"], &x["reason"]),
        (&json!("microblog"), &json!("no_captions")),
        "only in English"
    );
    assert_eq!(x["languages"][0]["tag"], "en", "{x}");
    assert_eq!((&short["platform"], &short["reason"]), (&json!(null), &json!("invalid_url")), "{short}");
    assert_eq!(remaining_credits(&server, &key).await?, 199);
    ensure!(proxy.unexpected().is_empty(), "{:?}", proxy.unexpected());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn profile_without_ytdlp_is_an_error_that_names_the_setting() -> Result<()> {
    let proxy = ReplayProxy::start(Script::new())?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    for (channel, words) in [
        (PROFILE, "ytdlp.program"),
        ("https://www.instagram.com/rope.walk/", "marked as broken"),
        ("https://x.com/rope_walk", "one by one"),
    ] {
        let reply = call(&server, &key, Method::POST, "", &json!({ "channel": channel })).await?;
        ensure!(reply.status == 400 && reply.text().contains(words), "{channel}: {}", reply.text());
        let mut command = verbatim(&data.path().join("own"), &["get", channel]);
        command.envs(platform_settings(&proxy));
        let output = run(command, b"")?;
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(!output.status.success() && stderr.contains(words), "{channel}: {stderr}");
        ensure!(!stderr.contains("may pass"), "{channel}: {stderr}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn get_of_profile_writes_files() -> Result<()> {
    let proxy = ReplayProxy::start(recorded_profile()?)?;
    let folder = TempDir::new()?;
    let to = folder.path().join("files");
    let arguments = ["get", PROFILE, "--to", &to.display().to_string()];
    let mut command = verbatim(&folder.path().join("data"), &arguments);
    command.envs(platform_settings(&proxy)).env("VERBATIM_YTDLP__PROGRAM", program().await?);
    run_ok(command, b"")?;
    let files: Vec<_> = std::fs::read_dir(&to)?.flatten().map(|file| file.file_name()).collect();
    let [file] = files.as_slice() else { panic!("{files:?}") };
    ensure!(file.to_string_lossy().contains(VIDEO), "{file:?}");
    Ok(())
}
