//! Whether a server wants requests.

use std::process::Command;

use anyhow::Result;
use http::Method;
use serde_json::json;
use tempfile::TempDir;
use verbatim_tests_postgres::{Cluster, Durability};

use super::Watched;
use crate::server::harness::until;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_says_so_before_it_does() -> Result<()> {
    let data = TempDir::new()?;
    let mut watched = Watched::start(&data, &[("VERBATIM_SERVER__STOP_DELAY", "5s")]).await?;
    for path in ["/healthz", "/health", "/readyz"] {
        let reply = watched.server.get(path).await?;
        assert_eq!(reply.status, 200, "{path}: {}", reply.text());
    }
    let posted = watched.server.send(Method::POST, "/readyz", &[], "").await?;
    assert_eq!((posted.status.as_u16(), posted.header("allow")), (405, "GET, HEAD"), "{}", posted.text());
    let ready = json!({ "status": "ready", "main": "ok", "archive": "ok", "stopping": false });
    assert_eq!(watched.ask("/readyz").await?.json(), ready);
    assert_eq!(watched.ask("/readyz").await?.header("cache-control"), "no-store");

    Command::new("kill").args(["-TERM", &watched.server.pid().to_string()]).status()?;
    until("it says so", async || Ok(watched.ask("/readyz").await?.status == 503)).await?;
    assert_eq!(watched.server.get("/readyz").await?.json()["stopping"], true);
    assert_eq!(watched.server.get("/healthz").await?.status, 200);
    // Others are answered as ever, until it is over.
    assert_eq!(watched.server.get("/api/transcript?v=dyke-walk-0").await?.status, 200);
    let figures = watched.figures().await?;
    assert_eq!(figures.sum("verbatim_ready", &[]).to_bits(), 0);
    assert!(watched.server.wait()?.success());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_is_away_is_noticed_and_so_is_its_return() -> Result<()> {
    let cluster = Cluster::start(Durability::None)?;
    cluster.make_database("ready")?;
    let data = TempDir::new()?;
    let watched = Watched::start(&data, &[("VERBATIM_STORAGE__URL", &cluster.url("ready"))]).await?;
    assert_eq!(watched.server.get("/readyz").await?.status, 200);
    cluster.stop()?;
    let away = async || {
        let reply = watched.server.get("/readyz").await?;
        Ok(reply.status == 503 && reply.json()["main"] == "unavailable")
    };
    until("it is noticed", away).await?;
    assert_eq!(watched.server.get("/readyz").await?.json()["stopping"], false);
    assert_eq!(watched.server.get("/healthz").await?.status, 200);
    let figures = watched.figures().await?;
    assert_eq!(figures.sum("verbatim_store_answers", &[]).to_bits(), 0);
    assert!(!figures.has("verbatim_mail_waiting"), "nobody knows");
    assert!(watched.log()?.contains("a store does not answer"), "{}", watched.log()?);
    cluster.start_again()?;
    until("it is there again", async || Ok(watched.server.get("/readyz").await?.status == 200)).await
}
