//! Jobs on the pages of an account, and for the operator.

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use verbatim_tests::replay::{ReplayProxy, Script};

use super::{
    account_pages::BrowserFixture,
    mail_client::{MailClient, create_account},
};
use crate::server::{
    harness::{ServerFixture, run, verbatim, wait_until},
    platform::serve_platform,
};

async fn start_job(server: &ServerFixture, key: &str, body: &Value) -> Result<String> {
    let reply = server.post_as(key, "/api/v1/jobs", body.to_string()).await?;
    ensure!(reply.status == 202, "{}", reply.text());
    reply.json()["job_id"].as_str().map(str::to_owned).context("no job")
}

async fn job(server: &ServerFixture, key: &str, id: &str) -> Result<Value> {
    Ok(server.get_as(key, &format!("/api/v1/jobs/{id}")).await?.json())
}

fn command(data: &TempDir, arguments: &[&str], code: i32) -> Result<String> {
    let output = run(verbatim(data.path(), arguments), b"")?;
    let text = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(code), "{arguments:?}: {text}");
    Ok(String::from_utf8(output.stdout)?)
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_paused_by_operator_and_cancelled_on_page() -> Result<()> {
    // A platform that answers nothing known: no item delivers.
    let proxy = ReplayProxy::start(Script::new())?;
    let data = TempDir::new()?;
    let mut outbox = MailClient::new(&data);
    let fast = ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000");
    let server = serve_platform(&data, &proxy, &[fast])?;
    let key = create_account(&server, &mut outbox, "ann@example.org").await?;
    let other = create_account(&server, &mut outbox, "bob@example.org").await?;
    let callback = "https://hooks.example.invalid/<b>?x=1";
    let waiting =
        start_job(&server, &key, &json!({ "urls": ["aaaaaaaaaaa"], "callback_url": callback })).await?;
    let foreign = start_job(&server, &other, &json!({ "urls": ["aaaaaaaaaaa"] })).await?;

    assert_eq!(command(&data, &["jobs", "pause", "--all"], 0)?, "2 paused\n");
    for (key, id) in [(&key, &waiting), (&other, &foreign)] {
        let paused = job(&server, key, id).await?;
        assert_eq!((&paused["status"], &paused["pause_reason"]), (&json!("paused"), &json!("operator")));
    }
    let listed = command(&data, &["jobs", "list"], 0)?;
    assert!(listed.contains(&waiting) && listed.contains("paused (operator)"), "{listed}");
    let resumed = command(&data, &["jobs", "resume", &foreign], 0)?;
    assert_eq!(resumed, format!("{foreign}: running\n"));
    wait_until("the resumed job does not run", async || {
        Ok(job(&server, &other, &foreign).await?["status"] != "paused")
    })
    .await?;
    assert_eq!(
        job(&server, &key, &waiting).await?["status"],
        "paused",
        "nothing but the operator resumes it"
    );
    command(&data, &["jobs", "pause", "job_unknown"], 1)?;
    command(&data, &["jobs", "pause"], 2)?;
    let log = command(&data, &["audit-log"], 0)?;
    for entry in ["jobs.pause", "jobs.resume", "jobs.list", foreign.as_str()] {
        assert!(log.contains(entry), "{entry}: {log}");
    }

    let mut browser = BrowserFixture::new(&server);
    assert_eq!(browser.get("/account/jobs").await?.status, 303, "only after sign-in");
    browser.sign_in(&mut outbox, "ann%40example.org").await?;
    let list = browser.get("/account/jobs").await?.text();
    assert!(list.contains(&waiting) && !list.contains(&foreign), "{list}");
    assert!(list.contains("Paused by the operator of the service"), "{list}");
    assert_eq!(browser.get(&format!("/account/jobs/{foreign}")).await?.status, 404);
    let mut page = String::new();
    wait_until("no attempt is shown", async || {
        page = browser.get(&format!("/account/jobs/{waiting}")).await?.text();
        Ok(page.contains("No response (<span")
            && page.contains("the host name could not be resolved")
            && page.contains("Next attempt:"))
    })
    .await?;
    assert!(!page.contains("<b>"), "the address is escaped: {page}");
    let denied = browser.post("/account/jobs/cancel", &format!("job={foreign}")).await?;
    assert_eq!(denied.status, 404);
    let cancelled = browser.post("/account/jobs/cancel", &format!("job={waiting}")).await?;
    assert_eq!(cancelled.status, 303, "{}", cancelled.text());
    assert_eq!(job(&server, &key, &waiting).await?["status"], "cancelled");
    let page = browser.get(&format!("/account/jobs/{waiting}")).await?.text();
    assert!(page.contains("Cancelled") && !page.contains("Cancel the job"), "{page}");
    Ok(())
}
