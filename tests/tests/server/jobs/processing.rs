//! Payment, cancellation, fairness and restarts.

use std::{collections::BTreeMap, sync::Arc};

use anyhow::Result;
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, Script};

use super::{
    by_status, call, delayed, gated, job, platform, results, serve, start_job, start_platform, videos,
    wait_for_status,
};
use crate::server::{
    harness::{audit_ledger, run_ok, verbatim, wait_until},
    platform::{fetch_count, player, video_rules},
    v1::{
        credits::paid_videos,
        mail_client::{MailClient, create_account, remaining_credits},
    },
};

fn grant(data: &TempDir, account: &str, credits: &str) -> Result<()> {
    let arguments = ["accounts", "grant", account, credits, "--id", &format!("test-{credits}")];
    run_ok(verbatim(data.path(), &arguments), b"").map(drop)
}

/// A platform with these videos, which have French captions only.
fn start_french_platform(videos: &[String]) -> Result<ReplayProxy> {
    let rules = videos.iter().flat_map(|video| {
        let mut page = player(video);
        let track = &mut page["captions"]["playerCaptionsTracklistRenderer"]["captionTracks"][0];
        (track["vssId"], track["languageCode"]) = (json!(".fr"), json!("fr"));
        video_rules(video, &page, |response| response)
    });
    ReplayProxy::start(Script::new().rules(rules))
}

#[tokio::test(flavor = "multi_thread")]
async fn job_without_credits_pauses_and_resumes_after_grant() -> Result<()> {
    let videos = videos("broke-", 8);
    let proxy = start_platform(&videos, &[], delayed(5))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[("VERBATIM_PLANS__FREE__CREDITS", "3")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    let paused = wait_for_status(&server, &key, &id, "paused").await?;
    assert_eq!(paused["pause_reason"], "payment_required");
    wait_until("the credits were not spent", async || {
        Ok(job(&server, &key, &id).await?["credits"]["spent"] == 3)
    })
    .await?;
    assert_eq!(remaining_credits(&server, &key).await?, 0);
    assert_eq!(by_status(&results(&server, &key, &id).await?).get("done"), Some(&3));
    grant(&data, "ann@example.org", "2")?;
    wait_until("the job did not go on", async || Ok(job(&server, &key, &id).await?["credits"]["spent"] == 5))
        .await?;
    grant(&data, "ann@example.org", "100")?;
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    assert_eq!((&done["credits"]["spent"], &done["counts"]["done"]), (&json!(8), &json!(8)));
    drop(server);
    assert_eq!(paid_videos(&data, &key).await?.len(), 8, "each transcript is charged once");
    assert!(videos.iter().all(|video| fetch_count(&proxy, video) == 1), "each is fetched once");
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn cancelled_job_costs_only_what_had_started() -> Result<()> {
    let videos = videos("cancel", 40);
    let gate = Arc::new(Semaphore::new(0));
    let proxy = start_platform(&videos, &[], gated(&gate))?;
    let data = TempDir::new()?;
    // An account gets half of the places.
    let server = serve(&data, &proxy, &[("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", "10")])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    wait_until("no item started", async || Ok(job(&server, &key, &id).await?["counts"]["running"] == 5))
        .await?;
    let cancelled = call(&server, &key, Method::DELETE, &format!("/{id}"), &Value::Null).await?;
    assert_eq!(cancelled.status, 200, "{}", cancelled.text());
    let cancelled = cancelled.json();
    assert_eq!((&cancelled["status"], &cancelled["counts"]["skipped"]), (&json!("cancelled"), &json!(35)));
    for _ in 0..100 {
        start_job(&server, &key, &["no link".to_owned()]).await?;
    }
    assert_eq!(job(&server, &key, &id).await?["counts"]["running"], 5, "later jobs do not push it out");
    gate.add_permits(1_000);
    wait_until("the started items did not end", async || {
        Ok(job(&server, &key, &id).await?["counts"]["running"] == 0)
    })
    .await?;
    let ended = job(&server, &key, &id).await?;
    assert_eq!((&ended["status"], &ended["counts"]["done"]), (&json!("cancelled"), &json!(5)));
    assert_eq!((&ended["credits"]["spent"], remaining_credits(&server, &key).await?), (&json!(5), 195));
    let lines = results(&server, &key, &id).await?;
    assert_eq!(by_status(&lines), BTreeMap::from([("done", 5), ("skipped", 35)]));
    let again = call(&server, &key, Method::DELETE, &format!("/{id}"), &Value::Null).await?.json();
    assert_eq!(again["ended_at"], ended["ended_at"], "a cancelled job is unchanged");
    assert!(videos[5..].iter().all(|video| fetch_count(&proxy, video) == 0));
    drop(server);
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn large_job_does_not_delay_small_job_of_other_account() -> Result<()> {
    let (many, few) = (videos("many-", 120), videos("few-", 3));
    let gate = Arc::new(Semaphore::new(0));
    let quick = few.iter().flat_map(|video| video_rules(video, &player(video), |response| response));
    let proxy = ReplayProxy::start(platform(&many, &[], gated(&gate)).rules(quick))?;
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let server = serve(&data, &proxy, &[("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", "8")])?;
    let ann = create_account(&server, &mut outbox, "ann@example.org").await?;
    let bob = create_account(&server, &mut outbox, "bob@example.org").await?;
    let large = start_job(&server, &ann, &many).await?;
    wait_until("the large job did not start", async || {
        Ok(job(&server, &ann, &large).await?["counts"]["running"] == 4)
    })
    .await?;
    let small = start_job(&server, &bob, &few).await?;
    wait_for_status(&server, &bob, &small, "completed").await?;
    let done = job(&server, &ann, &large).await?["counts"]["done"].clone();
    assert_eq!(done, 0, "the small job waited for items of the large one");
    let list = call(&server, &ann, Method::GET, "", &Value::Null).await?.json();
    assert_eq!(list["jobs"][0]["status"], "running");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn job_continues_after_kill_and_charges_each_item_once() -> Result<()> {
    let videos = videos("killed-", 60);
    let proxy = start_platform(&videos, &[&videos[7]], delayed(30))?;
    let data = TempDir::new()?;
    let mut server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    for least in [5, 20] {
        wait_until("no item ended", async || {
            Ok(job(&server, &key, &id).await?["counts"]["done"].as_u64() >= Some(least))
        })
        .await?;
        server.kill()?;
        server = serve(&data, &proxy, &[])?;
    }
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["counts"]["failed"]), (&json!(59), &json!(1)), "{done}");
    assert_eq!(done["credits"]["spent"], 59);
    wait_until("holds of the killed server were not returned", async || {
        Ok(remaining_credits(&server, &key).await? == 141)
    })
    .await?;
    let lines = results(&server, &key, &id).await?;
    assert!(lines.iter().enumerate().all(|(index, line)| line["index"] == index));
    assert_eq!(by_status(&lines).get("done"), Some(&59));
    assert!(server.stop()?.success());
    assert_eq!(paid_videos(&data, &key).await?.len(), 59, "each transcript is charged once");
    audit_ledger(data.path(), &[])
}

#[tokio::test(flavor = "multi_thread")]
async fn stopped_server_returns_its_items_at_once() -> Result<()> {
    let videos = videos("stopped", 12);
    let gate = Arc::new(Semaphore::new(0));
    let proxy = start_platform(&videos, &[], gated(&gate))?;
    let data = TempDir::new()?;
    let mut server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    wait_until("no item started", async || Ok(job(&server, &key, &id).await?["counts"]["running"] == 12))
        .await?;
    gate.add_permits(1_000);
    server.stop()?;
    let server = serve(&data, &proxy, &[])?;
    let started = std::time::Instant::now();
    let done = wait_for_status(&server, &key, &id, "completed").await?;
    assert!(started.elapsed().as_secs() < 45, "the leases of the stopped server were waited for");
    assert_eq!((&done["counts"]["done"], remaining_credits(&server, &key).await?), (&json!(12), 188));
    drop(server);
    assert_eq!(paid_videos(&data, &key).await?.len(), 12);
    audit_ledger(data.path(), &[])
}

/// A job without a language may archive a transcript in another language, which costs nothing.
#[tokio::test(flavor = "multi_thread")]
async fn fetches_of_other_languages_are_limited_within_jobs() -> Result<()> {
    let videos = videos("french-", 3);
    let proxy = start_french_platform(&videos)?;
    let data = TempDir::new()?;
    let settings = [
        ("VERBATIM_LIMITS__ATTEMPTS_PER_ACCOUNT_PER_HOUR", "1"),
        ("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", "1"),
    ];
    let server = serve(&data, &proxy, &settings)?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    wait_until("no item failed", async || Ok(job(&server, &key, &id).await?["counts"]["failed"] == 1))
        .await?;
    let limited = server.get_as(&key, &format!("/api/v1/transcript?video_id={}", videos[2])).await?;
    assert_eq!(limited.status, 429, "{}", limited.text());
    wait_until("a hold was not returned", async || Ok(remaining_credits(&server, &key).await? == 200))
        .await?;
    let ended = job(&server, &key, &id).await?;
    assert_eq!((&ended["status"], &ended["counts"]["failed"]), (&json!("running"), &json!(1)), "{ended}");
    assert!(videos[1..].iter().all(|video| fetch_count(&proxy, video) == 0));
    drop(server);
    audit_ledger(data.path(), &[])
}
