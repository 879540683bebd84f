//! The readiness endpoint of a server.

use anyhow::Result;
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Durability};

use super::ObservedServer;
use crate::server::harness::{send_signal, wait_until};

#[tokio::test(flavor = "multi_thread")]
async fn readiness_is_503_during_stop_delay() -> Result<()> {
    let data = TempDir::new()?;
    let mut observed = ObservedServer::start(&data, &[("VERBATIM_SERVER__STOP_DELAY", "15s")]).await?;
    for path in ["/healthz", "/health", "/readyz"] {
        let reply = observed.server.get(path).await?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
        assert_eq!(observed.get(path).await?.status, 200, "{path} of the metrics listener");
    }
    let posted = observed.server.send(Method::POST, "/readyz", &[], "").await?;
    assert_eq!((posted.status.as_u16(), posted.header("allow")), (405, "GET, HEAD"), "{}", posted.text());
    let ready = json!({ "status": "ready", "main": "ok", "archive": "ok", "stopping": false });
    assert_eq!(observed.get("/readyz").await?.json(), ready);
    assert_eq!(observed.get("/readyz").await?.header("cache-control"), "no-store");

    send_signal(observed.server.pid(), "TERM")?;
    wait_until("the server is still ready", async || Ok(observed.get("/readyz").await?.status == 503))
        .await?;
    assert_eq!(observed.server.get("/readyz").await?.json()["stopping"], true);
    assert_eq!(observed.server.get("/healthz").await?.status, 200);
    // Requests are served until the server stops.
    assert_eq!(observed.server.get("/api/transcript?v=dyke-walk-0").await?.status, 200);
    let figures = observed.scrape().await?;
    assert_eq!(figures.sum("verbatim_ready", &[]).to_bits(), 0);
    assert!(observed.server.wait()?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_follows_database_outage() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    cluster.create_database("ready")?;
    let data = TempDir::new()?;
    let observed = ObservedServer::start(&data, &[("VERBATIM_STORAGE__URL", &cluster.url("ready"))]).await?;
    assert_eq!(observed.server.get("/readyz").await?.status, 200);
    cluster.stop()?;
    let is_unavailable = async || {
        let reply = observed.server.get("/readyz").await?;
        Ok(reply.status == 503 && reply.json()["main"] == "unavailable")
    };
    wait_until("the server is still ready", is_unavailable).await?;
    assert_eq!(observed.server.get("/readyz").await?.json()["stopping"], false);
    assert_eq!(observed.server.get("/healthz").await?.status, 200);
    let figures = observed.scrape().await?;
    assert_eq!(figures.sum("verbatim_store_answers", &[]).to_bits(), 0);
    assert!(!figures.has("verbatim_mail_queued"), "a value without a database");
    observed.wait_for_log("readiness check failed").await?;
    cluster.restart()?;
    wait_until("the server is not ready", async || Ok(observed.server.get("/readyz").await?.status == 200))
        .await
}
