//! Jobs on several servers with one PostgreSQL database.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::json;

use super::{
    by_status, call, delayed, job, receiver::WebhookReceiver, results, start_job, start_platform, videos,
    wait_for_status,
};
use crate::{
    server::{
        harness::{audit_ledger, wait_until},
        platform::fetch_count,
        postgres::PostgresFixture,
        v1::mail_client::{MailClient, create_account, remaining_credits},
    },
    service::fake::FakeReply,
};

#[tokio::test(flavor = "multi_thread")]
async fn jobs_on_three_servers_survive_kills_and_share_fetches() -> Result<()> {
    let videos = videos("shared-", 80);
    let proxy = start_platform(&videos, &[&videos[3], &videos[40]], delayed(60))?;
    let fixture = PostgresFixture::new(Some(&proxy))?.with(&[
        ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000"),
        ("VERBATIM_LIMITS__JOB_ITEMS_AT_ONCE", "4"),
        ("VERBATIM_WEBHOOKS__ALLOW_PRIVATE", "true"),
    ]);
    let mut outbox = MailClient::new(&fixture.data);
    let mut servers = Vec::new();
    for _ in 0..3 {
        servers.push(fixture.start_server()?);
    }
    let ann = create_account(&servers[0], &mut outbox, "ann@example.org").await?;
    let bob = create_account(&servers[0], &mut outbox, "bob@example.org").await?;
    let first = start_job(&servers[0], &ann, &videos).await?;
    let mut receiver = WebhookReceiver::start(|_| FakeReply::new(200, "", "")).await?;
    let body = json!({ "urls": videos, "callback_url": receiver.url });
    let reply = call(&servers[1], &bob, Method::POST, "", &body).await?;
    let second = reply.json()["job_id"].as_str().context("no job")?.to_owned();
    for (least, killed) in [(8, 1), (25, 2)] {
        wait_until("no item ended", async || {
            Ok(job(&servers[0], &ann, &first).await?["counts"]["done"].as_u64() >= Some(least))
        })
        .await?;
        servers[killed].kill()?;
        servers[killed] = fixture.start_server()?;
    }
    for (key, id) in [(&ann, &first), (&bob, &second)] {
        let done = wait_for_status(&servers[1], key, id, "completed").await?;
        assert_eq!((&done["counts"]["done"], &done["counts"]["failed"]), (&json!(78), &json!(2)), "{done}");
        assert_eq!(done["credits"]["spent"], 78);
        let lines = results(&servers[2], key, id).await?;
        assert_eq!((lines.len(), by_status(&lines).get("done")), (80, Some(&78)));
        wait_until("holds of a killed server were not returned", async || {
            Ok(remaining_credits(&servers[0], key).await? == 122)
        })
        .await?;
    }
    let event = receiver.next().await?.event()?;
    assert_eq!((&event["type"], &event["job"]["job_id"]), (&json!("job.completed"), &json!(second)));
    assert!(receiver.rest().is_empty(), "more than one server sent the event");
    let fetches: usize = videos.iter().map(|video| fetch_count(&proxy, video)).sum();
    assert!(fetches <= 80 + 2 * 4 + 8, "{fetches} fetches: only those of killed servers are repeated");
    audit_ledger(fixture.data.path(), &fixture.settings())
}
