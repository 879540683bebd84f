//! Jobs of playlists, channels and searches.

use std::{os::unix::fs::PermissionsExt as _, path::PathBuf, sync::Arc};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Rule};

use super::{
    by_status, call, call_with, delayed, job, platform, receiver::WebhookReceiver, results, serve,
    start_platform, videos, wait_for_status,
};
use crate::{
    server::{
        harness::{ServerFixture, run_ok, verbatim, wait_until},
        platform::{HOST, fetch_count},
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::FakeReply,
};

pub(crate) const PLAYLIST: &str = "PL0123456789abcdef";
const CHANNEL: &str = "UC0123456789abcdefghij-_";

fn browse() -> Rule {
    Rule::post(HOST, "/youtubei/v1/browse")
}

/// The first page of the playlist.
pub(crate) fn first_page() -> Rule {
    browse().json("/browseId", format!("VL{PLAYLIST}"))
}

pub(crate) fn next_page(token: &str) -> Rule {
    browse().json("/continuation", token)
}

/// A page with these videos, and the token of the next one.
pub(crate) fn page(videos: &[String], next: Option<&str>) -> ReplayResponse {
    let entry = |id: &String| json!({ "playlistVideoRenderer": { "videoId": id, "lengthSeconds": "60" } });
    let token = |token| {
        let command = json!({ "continuationCommand": { "token": token } });
        json!({ "continuationItemRenderer": { "continuationEndpoint": command } })
    };
    let items: Vec<Value> = videos.iter().map(entry).chain(next.map(token)).collect();
    ReplayResponse::json(&json!({ "onResponseReceivedActions": [
        { "appendContinuationItemsAction": { "continuationItems": items } }] }))
}

/// The first page of a search.
pub(crate) fn search(words: &str) -> Rule {
    Rule::post(HOST, "/youtubei/v1/search").json("/query", words)
}

/// The only page of a search that finds these videos.
pub(crate) fn results_page(videos: &[String]) -> ReplayResponse {
    let entry = |id: &String| json!({ "videoRenderer": { "videoId": id } });
    let items: Vec<Value> = videos.iter().map(entry).collect();
    ReplayResponse::json(&json!({ "contents": { "twoColumnSearchResultsRenderer": { "primaryContents": {
        "sectionListRenderer": { "contents": [{ "itemSectionRenderer": { "contents": items } }] } } } } }))
}

async fn start(server: &ServerFixture, key: &str, body: &Value) -> Result<Value> {
    let reply = call(server, key, Method::POST, "", body).await?;
    ensure!(reply.status == 202, "{}", reply.text());
    Ok(reply.json())
}

fn id(job: &Value) -> Result<String> {
    job["job_id"].as_str().map(str::to_owned).context("no job_id")
}

#[tokio::test(flavor = "multi_thread")]
async fn playlist_job_reads_list_then_delivers_each_video_once() -> Result<()> {
    let videos = videos("listed-", 5);
    let gate = Arc::new(Semaphore::new(0));
    let script = platform(&videos, &[&videos[1]], delayed(5))
        .rule(first_page().respond(page(&[&videos[..3], &videos[..1]].concat(), Some("T2"))))
        .rule(next_page("T2").respond(page(&videos[1..], None).gated(&gate)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let body = json!({ "playlist": format!("https://www.youtube.com/watch?v=aaaaaaaaaaa&list={PLAYLIST}") });
    let headers = [("idempotency-key", "list-1")];
    let created = call_with(&server, &key, Method::POST, "", &headers, &body).await?;
    assert_eq!(created.status, 202, "{}", created.text());
    let created = created.json();
    assert_eq!((&created["status"], &created["counts"]["total"]), (&json!("listing"), &json!(0)));
    assert_eq!(created["list_url"], format!("https://www.youtube.com/playlist?list={PLAYLIST}"));
    let again = call_with(&server, &key, Method::POST, "", &headers, &body).await?;
    assert_eq!((again.header("idempotent-replayed"), again.json()), ("true", created.clone()));
    let id = id(&created)?;
    wait_until("the first page was not read", async || {
        Ok(job(&server, &key, &id).await?["counts"]["total"] == 3)
    })
    .await?;
    let listing = job(&server, &key, &id).await?;
    assert_eq!((&listing["status"], &listing["counts"]["queued"]), (&json!("listing"), &json!(3)));
    assert_eq!(listing["credits"], json!({ "spent": 0, "estimate": 3, "remaining": 200 }));
    let listed = run_ok(verbatim(data.path(), &["jobs", "list"]), b"")?;
    assert!(listed.contains(&id) && listed.contains("listing"), "{listed}");
    gate.add_permits(1);
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    let counts = json!({ "total": 5, "queued": 0, "running": 0, "done": 4, "failed": 1, "skipped": 0 });
    assert_eq!((&done["counts"], &done["credits"]["spent"]), (&counts, &json!(4)));
    let lines = results(&server, &key, &id).await?;
    let found: Vec<_> = lines.iter().map(|line| line["video_id"].as_str().unwrap_or_default()).collect();
    assert_eq!(found, videos, "in the order of the list");
    assert_eq!(lines[0]["url"], format!("https://www.youtube.com/watch?v={}", videos[0]));
    assert_eq!(fetch_count(&proxy, &videos[0]), 1);
    assert_eq!(remaining_credits(&server, &key).await?, 196);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_job_delivers_results_up_to_limit() -> Result<()> {
    let videos = videos("found-", 4);
    let script = platform(&videos, &[], delayed(0)).rule(search("tide mills").respond(results_page(&videos)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let created = start(&server, &key, &json!({ "search": " tide mills", "limit": 3 })).await?;
    assert_eq!(created["list_url"], "https://www.youtube.com/results?search_query=tide+mills");
    let done = wait_for_status(&server, &key, &id(&created)?, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["credits"]["spent"]), (&json!(3), &json!(3)));
    let lines = results(&server, &key, &id(&created)?).await?;
    let found: Vec<_> = lines.iter().map(|line| line["video_id"].as_str().unwrap_or_default()).collect();
    assert_eq!(found, videos[..3]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_continues_after_kill_at_its_position() -> Result<()> {
    let videos = videos("killist", 4);
    let gate = Arc::new(Semaphore::new(0));
    let script = platform(&videos, &[], delayed(0))
        .rule(first_page().respond(page(&videos[..2], Some("T2"))))
        .rule(next_page("T2").respond(page(&videos[2..], None).gated(&gate)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let mut server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = id(&start(&server, &key, &json!({ "playlist": PLAYLIST })).await?)?;
    wait_until("the second page was not requested", async || {
        Ok(proxy.count(|request| request.json("/continuation").is_some()) == 1)
    })
    .await?;
    server.kill()?;
    gate.add_permits(100);
    server = serve(&data, &proxy, &[])?;
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["credits"]["spent"]), (&json!(4), &json!(4)), "{done}");
    assert_eq!(proxy.count(|request| request.json("/browseId").is_some()), 1, "the first page is read once");
    let lines = results(&server, &key, &id).await?;
    let found: Vec<_> = lines.iter().map(|line| line["video_id"].as_str().unwrap_or_default()).collect();
    assert_eq!(found, videos);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn listing_is_cancelled_paused_and_limited() -> Result<()> {
    let videos = videos("limited", 6);
    let gate = Arc::new(Semaphore::new(0));
    let script = platform(&videos, &[], delayed(0))
        .rule(first_page().respond(page(&videos[..4], Some("T2"))))
        .rule(next_page("T2").respond(page(&videos[4..], None).gated(&gate)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let limited = start(&server, &key, &json!({ "playlist": PLAYLIST, "limit": 3 })).await?;
    let done = wait_for_status(&server, &key, &id(&limited)?, "completed").await?;
    assert_eq!((&done["counts"]["total"], &done["counts"]["done"]), (&json!(3), &json!(3)));
    assert_eq!(
        proxy.count(|request| request.json("/continuation").is_some()),
        0,
        "no page is read beyond it"
    );

    let whole = id(&start(&server, &key, &json!({ "playlist": PLAYLIST })).await?)?;
    wait_until("the second page was not requested", async || {
        Ok(proxy.count(|request| request.json("/continuation").is_some()) == 1)
    })
    .await?;
    run_ok(verbatim(data.path(), &["jobs", "pause", &whole]), b"")?;
    assert_eq!(job(&server, &key, &whole).await?["pause_reason"], "operator");
    let resumed = run_ok(verbatim(data.path(), &["jobs", "resume", &whole]), b"")?;
    assert_eq!(resumed, format!("{whole}: listing\n"));
    let cancelled = call(&server, &key, Method::DELETE, &format!("/{whole}"), &Value::Null).await?.json();
    assert_eq!((&cancelled["status"], &cancelled["counts"]["skipped"]), (&json!("cancelled"), &json!(4)));
    gate.add_permits(100);
    let first = start(&server, &key, &json!({ "urls": [videos[5]] })).await?;
    wait_for_status(&server, &key, &id(&first)?, "completed").await?;
    let ended = job(&server, &key, &whole).await?;
    assert_eq!((&ended["status"], &ended["counts"]["total"]), (&json!("cancelled"), &json!(4)), "{ended}");
    assert_eq!(remaining_credits(&server, &key).await?, 196);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_of_blocked_account_is_not_read_until_it_is_unblocked() -> Result<()> {
    let videos = videos("blocked", 3);
    let gate = Arc::new(Semaphore::new(0));
    let script = platform(&videos, &[], delayed(0))
        .rule(first_page().respond(page(&videos[..2], Some("T2")).gated(&gate)))
        .rule(next_page("T2").respond(page(&videos[2..], None)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = id(&start(&server, &key, &json!({ "playlist": PLAYLIST })).await?)?;
    wait_until("the list was not requested", async || {
        Ok(proxy.count(|request| request.json("/browseId").is_some()) == 1)
    })
    .await?;
    run_ok(verbatim(data.path(), &["accounts", "block", "ann@example.org"]), b"")?;
    gate.add_permits(100);
    wait_until("the job did not pause", async || {
        let listed = run_ok(verbatim(data.path(), &["jobs", "list"]), b"")?;
        Ok(listed.contains("paused (account_blocked)"))
    })
    .await?;
    assert_eq!(proxy.count(|request| request.json("/continuation").is_some()), 0);
    run_ok(verbatim(data.path(), &["accounts", "unblock", "ann@example.org"]), b"")?;
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["credits"]["spent"]), (&json!(3), &json!(3)), "{done}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn list_that_cannot_be_read_fails_job_with_webhook() -> Result<()> {
    let alert = json!({ "alerts": [{ "alertRenderer": { "type": "ERROR",
        "text": { "simpleText": "This playlist is private." } } }] });
    let proxy = ReplayProxy::start(
        platform(&[], &[], delayed(0)).rule(first_page().respond(ReplayResponse::json(&alert))),
    )?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_WEBHOOKS__ALLOW_PRIVATE", "true")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let mut receiver = WebhookReceiver::start(|_| FakeReply::new(200, "", "")).await?;
    let body = json!({ "playlist": PLAYLIST, "callback_url": receiver.url });
    let id = id(&start(&server, &key, &body).await?)?;
    let failed = wait_for_status(&server, &key, &id, "failed").await?;
    assert_eq!(failed["reason"], "private");
    assert!(failed["message"].as_str().is_some_and(|text| text.contains("private")), "{failed}");
    assert!(failed["ended_at"].is_string() && failed["pause_reason"].is_null(), "{failed}");
    let event = receiver.next().await?.event()?;
    assert_eq!((&event["type"], &event["job"]), (&json!("job.failed"), &failed));
    assert_eq!(results(&server, &key, &id).await?, Vec::<Value>::new());
    assert_eq!(remaining_credits(&server, &key).await?, 200);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn server_behind_another_reads_no_lists() -> Result<()> {
    let proxy = start_platform(&[], &[], delayed(0))?;
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_SUPPLIERS__VIDEO_SITE", "verbatim-service"),
        ("VERBATIM_SERVICE__BASE_URL", "http://127.0.0.1:9"),
        ("VERBATIM_SERVICE__API_KEY", "vbk_unused"),
    ];
    let server = serve(&data, &proxy, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let reply = call(&server, &key, Method::POST, "", &json!({ "channel": "@name" })).await?;
    assert_eq!(reply.status, 400, "{}", reply.text());
    let error = reply.json()["error"].as_str().unwrap_or_default().to_owned();
    assert!(error.starts_with("This server does not read playlists, channels and searches"), "{error}");
    Ok(())
}

/// A recorded page, outside the checkout.
fn recording(folder: &std::path::Path, name: &str) -> Result<ReplayResponse> {
    Ok(ReplayResponse::bytes("application/json", std::fs::read(folder.join(format!("{name}.json")))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_of_recorded_lists_have_expected_items() -> Result<()> {
    let Some(folder) = std::env::var_os("VERBATIM_RECORDINGS").map(PathBuf::from) else { return Ok(()) };
    let folder = folder.join("youtube-lists");
    let playlist = json!({ "playlist": PLAYLIST });
    let channel = json!({ "channel": CHANNEL });
    // The body, the pages, and the number, first and last of the videos, or the reason.
    type Row<'a> = (Value, &'a [&'a str], Result<(usize, &'a str, &'a str), &'a str>);
    let rows: [Row<'_>; 8] = [
        (playlist.clone(), &["playlist/renderer_17_one_page"], Ok((17, "UKwSQSFN4Nw", "TzRptXir15E"))),
        (
            playlist.clone(),
            &["playlist/renderer_150_first", "playlist/renderer_150_last"],
            Ok((150, "u2ah9tWTkmk", "zUtTpuqV55U")),
        ),
        (
            json!({ "channel": CHANNEL, "limit": 45 }),
            &["channel/videos_lockup_first", "channel/videos_lockup_next"],
            Ok((45, "BD-LB23rRBE", "")),
        ),
        (
            json!({ "channel": CHANNEL, "since": "2100-01-01" }),
            &["channel/videos_lockup_first"],
            Ok((0, "", "")),
        ),
        (playlist.clone(), &["playlist/private"], Err("private")),
        (playlist.clone(), &["playlist/unviewable"], Err("unviewable")),
        (channel.clone(), &["channel/terminated_terms"], Err("removed")),
        (channel, &["channel/releases_last"], Err("empty")),
    ];
    for (body, pages, expected) in rows {
        let respond =
            |rule: Rule, name: &&str| Ok::<_, anyhow::Error>(rule.respond(recording(&folder, name)?));
        let rule = pages.iter().try_fold(browse(), respond)?;
        // No video is known to the platform: the items are never delivered.
        let proxy = ReplayProxy::start(platform(&[], &[], delayed(0)).rule(rule))?;
        let data = TempDir::new()?;
        let server = serve(&data, &proxy, &[])?;
        let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
        let id = id(&start(&server, &key, &body).await?)?;
        let mut read = Value::Null;
        wait_until("the list was not read", async || {
            read = job(&server, &key, &id).await?;
            Ok(read["status"] != "listing")
        })
        .await?;
        match expected {
            Ok((count, first, last)) => {
                let lines = results(&server, &key, &id).await?;
                ensure!(lines.len() == count, "{pages:?}: {read}, {:?}", by_status(&lines));
                let video = |line: Option<&Value>| {
                    line.map(|line| line["video_id"].as_str().unwrap_or_default().to_owned())
                };
                ensure!(video(lines.first()).unwrap_or_default() == first, "{pages:?}: {:?}", lines.first());
                ensure!(
                    video(lines.last()).unwrap_or_default().ends_with(last),
                    "{pages:?}: {:?}",
                    lines.last()
                );
            }
            Err(reason) => {
                ensure!(read["status"] == "failed" && read["reason"] == reason, "{pages:?}: {read}")
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_profile_delays_no_playlist() -> Result<()> {
    let videos = videos("beside-", 2);
    let script = platform(&videos, &[], delayed(0))
        .rule(first_page().respond(page(&videos[..1], Some("T2"))))
        .rule(next_page("T2").respond(page(&videos[1..], None)));
    let proxy = ReplayProxy::start(script)?;
    let data = TempDir::new()?;
    let program = data.path().join("slow-yt-dlp");
    std::fs::write(&program, "#!/bin/sh\ntouch \"$0.begun\"\nsleep 20\ntouch \"$0.ended\"\n")?;
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
    let server = serve(&data, &proxy, &[("VERBATIM_YTDLP__PROGRAM", &program.display().to_string())])?;
    let mut outbox = MailClient::new(&data);
    let ann = create_account(&server, &mut outbox, "ann@example.org").await?;
    let bob = create_account(&server, &mut outbox, "bob@example.org").await?;
    start(&server, &ann, &json!({ "channel": "https://www.tiktok.com/@rope.walk" })).await?;
    let has = |end: &str| data.path().join(format!("slow-yt-dlp.{end}")).exists();
    wait_until("the profile was not requested", async || Ok(has("begun"))).await?;
    let playlist = id(&start(&server, &bob, &json!({ "playlist": PLAYLIST })).await?)?;
    let done = wait_for_status(&server, &bob, &playlist, "completed").await?;
    assert!(!has("ended"), "the playlist waited for the profile");
    assert_eq!(done["counts"]["done"], 2, "{done}");
    Ok(())
}
