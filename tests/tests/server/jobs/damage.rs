//! Jobs whose transcripts can no longer be read.

use anyhow::{Context as _, Result};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{
    call, delayed, files::files, job, results, serve, start_job, start_platform, videos, wait_for_status,
};
use crate::server::{
    harness::{sqlite, wait_until},
    platform::fetch_count,
    v1::mail_client::{MailClient, create_account},
};

#[tokio::test(flavor = "multi_thread")]
async fn damaged_transcript_fails_its_item_and_breaks_off_no_results() -> Result<()> {
    let videos = videos("damage-", 3);
    let proxy = start_platform(&videos, &[], delayed(0))?;
    let data = TempDir::new()?;
    let server = serve(&data, &proxy, &[])?;
    let key = create_account(&server, &mut MailClient::new(&data), "ann@example.org").await?;
    let id = start_job(&server, &key, &videos).await?;
    wait_for_status(&server, &key, &id, "completed").await?;
    // The next server has no transcript in memory.
    drop(server);
    let damage = format!(
        "UPDATE bodies SET segments = zeroblob(length(segments))
            WHERE transcript IN (SELECT id FROM transcripts WHERE video = 'video_site/{}')",
        videos[1]
    );
    sqlite(&data.path().join("archive.db"), &damage)?;
    let server = serve(&data, &proxy, &[])?;

    let lines = results(&server, &key, &id).await?;
    let found: Vec<_> =
        lines.iter().map(|line| (&line["status"], &line["reason"], line["transcript"].is_object())).collect();
    let (done, damaged) = (json!("done"), json!("damaged"));
    assert_eq!(found, [(&done, &Value::Null, true), (&done, &damaged, false), (&done, &Value::Null, true)]);
    let page = call(&server, &key, Method::GET, &format!("/{id}/results"), &Value::Null).await?.json();
    assert_eq!(page["items"], json!(lines));
    let found = files(&server, &key, &id, "format=srt").await?;
    assert_eq!(found.len(), 3, "two transcripts and the failures: {found:?}");
    let row = format!("1,\"{0}\",\"{0}\",done,\"damaged\",", videos[1]);
    assert!(found[2].1.lines().nth(1).context("no row")?.starts_with(&row), "{found:?}");

    let again = start_job(&server, &key, &videos[1..2]).await?;
    let main = data.path().join("verbatim.db");
    let failing = format!(
        "SELECT count(*) FROM job_items WHERE job = '{again}' AND status = 'queued' AND failing_since > 0"
    );
    wait_until("the item did not fail", async || Ok(sqlite(&main, &failing)?.trim() == "1")).await?;
    // It has failed for two days, and is due again.
    let later = format!(
        "UPDATE job_items SET failing_since = failing_since - 172800000, due_at = due_at - 600000
            WHERE job = '{again}';
        UPDATE jobs SET due_at = due_at - 600000 WHERE id = '{again}'"
    );
    sqlite(&main, &later)?;
    wait_for_status(&server, &key, &again, "completed").await?;
    let lines = results(&server, &key, &again).await?;
    assert_eq!((&lines[0]["status"], &lines[0]["reason"]), (&json!("failed"), &damaged));
    assert_eq!(job(&server, &key, &again).await?["credits"]["spent"], 0);
    assert_eq!(fetch_count(&proxy, &videos[1]), 1, "it is not fetched again");
    Ok(())
}
