//! A job of thousands of videos on three servers, which are killed while it runs.
//!
//! `VERBATIM_JOB_ITEMS=n` sets the number of videos.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::{by_status, delayed, job, results, start_job, start_platform, videos, wait_for_status};
use crate::{
    server::{
        harness::{audit_ledger, read_number, wait_until},
        postgres::PostgresFixture,
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    simulation::seeded_rng::SeededRng,
};

/// Videos of the job, unless `VERBATIM_JOB_ITEMS` is set. Each tenth has no captions.
const ITEMS: usize = 120;
const SERVERS: usize = 3;
/// Items that a server processes at a time.
const AT_ONCE: usize = 8;
/// Requests for the player of a video without captions: one for each client identity.
const PLAYER_REQUESTS_MAX: usize = 5;

#[tokio::test(flavor = "multi_thread")]
async fn large_job_survives_repeated_kills_and_charges_each_transcript_once() -> Result<()> {
    let items = read_number("VERBATIM_JOB_ITEMS").map_or(ITEMS, |items| items as usize);
    let seed = read_number("VERBATIM_SEED").unwrap_or_else(|| u64::from(std::process::id()));
    let pause = Duration::from_secs(if items > 1_000 { 10 } else { 1 });
    eprintln!("{items} items, a kill every {pause:?}, seed {seed}");
    let videos = videos("many-", items);
    let silent: Vec<&str> = videos.iter().skip(9).step_by(10).map(String::as_str).collect();
    let good = items - silent.len();
    let proxy = start_platform(&videos, &silent, delayed(150))?;
    let fixture = PostgresFixture::new(Some(&proxy))?.with(&[
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000"),
        ("VERBATIM_PLANS__FREE__CREDITS", &items.to_string()),
        ("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", &AT_ONCE.to_string()),
        // The account has bought nothing, and a tenth of its videos has no captions.
        ("VERBATIM_LIMITS__ATTEMPTS_PER_ACCOUNT_PER_HOUR", &items.to_string()),
    ]);
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(fixture.start_server()?);
    }
    let key = create_account(&servers[0], &mut MailClient::new(&fixture.data), "ann@example.org").await?;
    let id = start_job(&servers[0], &key, &videos).await?;
    let (rng, mut kills) = (SeededRng::new(seed, 0), 0);
    // The first server answers, so any of the others is killed, while items wait: the last ones wait for leases.
    while job(&servers[0], &key, &id).await?["counts"]["queued"] != 0 {
        tokio::time::sleep(pause).await;
        let killed = 1 + rng.below(SERVERS as u64 - 1) as usize;
        servers[killed].kill()?;
        servers[killed] = fixture.start_server()?;
        kills += 1;
    }
    let done = wait_for_status(&servers[0], &key, &id, "completed").await?;
    assert_eq!((&done["counts"]["done"], &done["credits"]["spent"]), (&json!(good), &json!(good)), "{done}");
    assert_eq!(done["counts"]["failed"], json!(silent.len()));
    let lines = results(&servers[0], &key, &id).await?;
    let ids = lines.iter().filter_map(|line| line["video_id"].as_str());
    assert!(ids.eq(videos.iter().map(String::as_str)), "the results are not in their order");
    assert_eq!(by_status(&lines).get("done"), Some(&good));
    wait_until("holds of a killed server were not returned", async || {
        Ok(remaining_credits(&servers[0], &key).await? == silent.len() as u64)
    })
    .await?;
    let fetches = proxy.count(|request| request.path == "/youtubei/v1/player");
    let most = good + silent.len() * PLAYER_REQUESTS_MAX + kills * AT_ONCE;
    eprintln!("{kills} kills, {fetches} requests of players, {most} at most");
    assert!(kills > 0 && fetches <= most, "{kills} kills, {fetches} requests of players, {most} at most");
    audit_ledger(fixture.data.path(), &fixture.settings())
}
