//! Jobs of the v1 API on the built server (specification 4.18).

mod damage;
mod files;
mod interface;
mod large;
mod lists;
mod processing;
mod profiles;
mod receiver;
mod replicas;
mod webhooks;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use http::Method;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::sync::Semaphore;
use verbatim_tests::replay::{ReplayProxy, ReplayResponse, Script};

pub(crate) use lists::{PLAYLIST, first_page, next_page, page, results_page, search};

use super::{
    harness::{ServerFixture, ServerReply, wait_until},
    platform::{player, serve_platform, video_rules},
};

/// Names of videos: 11 characters each.
pub(crate) fn videos(prefix: &str, count: usize) -> Vec<String> {
    (0..count).map(|number| format!("{prefix}{number:0width$}", width = 11 - prefix.len())).collect()
}

/// A platform with these videos, of which some have no captions.
fn start_platform(
    videos: &[String],
    silent: &[&str],
    adapt: impl Fn(ReplayResponse) -> ReplayResponse,
) -> Result<ReplayProxy> {
    ReplayProxy::start(platform(videos, silent, adapt))
}

/// The responses of a platform with these videos, of which some have no captions.
pub(crate) fn platform(
    videos: &[String],
    silent: &[&str],
    adapt: impl Fn(ReplayResponse) -> ReplayResponse,
) -> Script {
    let rules = videos.iter().flat_map(|video| {
        let mut page = player(video);
        if silent.contains(&video.as_str()) {
            page["captions"] = Value::Null;
        }
        video_rules(video, &page, &adapt)
    });
    Script::new().rules(rules)
}

fn gated(gate: &Arc<Semaphore>) -> impl Fn(ReplayResponse) -> ReplayResponse {
    let gate = Arc::clone(gate);
    move |response| response.gated(&gate)
}

pub(crate) fn delayed(milliseconds: u64) -> impl Fn(ReplayResponse) -> ReplayResponse {
    move |response| response.after(Duration::from_millis(milliseconds))
}

/// A server with this platform, and these settings.
fn serve(data: &TempDir, proxy: &ReplayProxy, more: &[(&str, &str)]) -> Result<ServerFixture> {
    let fast = ("VERBATIM_PLANS__FREE__REQUESTS_PER_MINUTE", "100000");
    serve_platform(data, proxy, &[&[fast], more].concat())
}

/// Sends a request about jobs with a key.
async fn call(
    server: &ServerFixture,
    key: &str,
    method: Method,
    path: &str,
    body: &Value,
) -> Result<ServerReply> {
    call_with(server, key, method, path, &[], body).await
}

/// Same as [`call`], with headers.
async fn call_with(
    server: &ServerFixture,
    key: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &Value,
) -> Result<ServerReply> {
    let mut headers = headers.to_vec();
    let body = if body.is_null() { String::new() } else { body.to_string() };
    if !body.is_empty() {
        headers.push(("content-type", "application/json"));
    }
    server.send_as(key, method, &format!("/api/v1/jobs{path}"), &headers, body).await
}

/// Starts a job for these videos; returns its id.
async fn start_job(server: &ServerFixture, key: &str, videos: &[String]) -> Result<String> {
    let reply = call(server, key, Method::POST, "", &json!({ "urls": videos })).await?;
    ensure!(reply.status == 202, "{}", reply.text());
    reply.json()["job_id"].as_str().map(str::to_owned).context("no job_id")
}

async fn job(server: &ServerFixture, key: &str, id: &str) -> Result<Value> {
    let reply = call(server, key, Method::GET, &format!("/{id}"), &Value::Null).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    Ok(reply.json())
}

/// Waits until a job has this state; returns it.
async fn wait_for_status(server: &ServerFixture, key: &str, id: &str, status: &str) -> Result<Value> {
    let mut last = Value::Null;
    let waited = wait_until("the job did not get the state", async || {
        last = job(server, key, id).await?;
        Ok(last["status"] == status)
    });
    waited.await.with_context(|| format!("expected {status}: {last}"))?;
    Ok(last)
}

/// All results of a job as lines.
async fn results(server: &ServerFixture, key: &str, id: &str) -> Result<Vec<Value>> {
    let headers = [("accept", "application/x-ndjson")];
    let path = format!("/{id}/results");
    let reply = call_with(server, key, Method::GET, &path, &headers, &Value::Null).await?;
    ensure!(reply.status == 200, "{}", reply.text());
    ensure!(reply.header("content-type") == "application/x-ndjson", "{:?}", reply.headers);
    reply.text().lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// The number of results by state.
fn by_status(results: &[Value]) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for result in results {
        *counts.entry(result["status"].as_str().unwrap_or_default()).or_default() += 1;
    }
    counts
}
