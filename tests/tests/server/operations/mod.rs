//! Operation of a server: metrics, readiness, logs, reloads, backups, rolling restarts.

mod backup;
mod metrics;
mod readiness;
mod reload;
mod rolling;
mod secret_flows;
mod secrets;
mod store_health;

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use super::harness::{ServerFixture, ServerReply, run_ok, send_once, wait_until};
use crate::install::installed;

/// A server with a log file and a metrics listener.
pub(crate) struct ObservedServer {
    pub(crate) server: ServerFixture,
    metrics_address: String,
    log: PathBuf,
}

impl ObservedServer {
    /// Starts it with these settings, a metrics listener and the log level `info`.
    pub(crate) async fn start(data: &TempDir, settings: &[(&str, &str)]) -> Result<Self> {
        let log = data.path().join("log");
        let mut all = vec![("VERBATIM_METRICS__LISTEN", "127.0.0.1:0"), ("VERBATIM_LOG__LEVEL", "info")];
        all.extend_from_slice(settings);
        let server = ServerFixture::start_with_log(data, &all, &log)?;
        Self::observe(server, log).await
    }

    /// Starts it with the settings of a file, which opens a metrics listener and logs at `info`.
    pub(crate) async fn start_with_config(data: &TempDir, config: &Path) -> Result<Self> {
        let log = data.path().join("log");
        let server = ServerFixture::start_with_config(data, config, &log)?;
        Self::observe(server, log).await
    }

    async fn observe(server: ServerFixture, log: PathBuf) -> Result<Self> {
        let mut metrics_address = None;
        wait_until("the log has no metrics address", async || {
            let text = std::fs::read_to_string(&log)?;
            let rest = text.split_once("metrics are served at http://").map(|(_, rest)| rest);
            metrics_address =
                rest.and_then(|rest| rest.split_once("/metrics")).map(|(address, _)| address.to_owned());
            Ok(metrics_address.is_some())
        })
        .await?;
        Ok(Self { server, metrics_address: metrics_address.context("no address")?, log })
    }

    /// Sends a GET request to the metrics listener.
    pub(crate) async fn get(&self, path: &str) -> Result<ServerReply> {
        send_once(&self.metrics_address, Method::GET, path).await
    }

    /// The sum of the samples whose line begins with this text.
    pub(crate) async fn figure(&self, name: &str) -> Result<f64> {
        let reply = self.get("/metrics").await?;
        ensure!(reply.status == StatusCode::OK, "{}", reply.text());
        let text = reply.text();
        let values =
            text.lines().filter(|line| line.starts_with(name)).filter_map(|line| line.rsplit(' ').next());
        Ok(values.filter_map(|value| value.parse::<f64>().ok()).sum())
    }

    /// The metrics, parsed by Prometheus' own parser.
    pub(crate) async fn scrape(&self) -> Result<ScrapedFigures> {
        let reply = self.get("/metrics").await?;
        ensure!(reply.status == StatusCode::OK, "{}", reply.text());
        let kind = reply.header("content-type");
        ensure!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
        ScrapedFigures::read(&reply.text())
    }

    /// The log so far.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }

    /// Waits until the log, which another thread writes, has this text. Returns the log.
    pub(crate) async fn wait_for_log(&self, text: &str) -> Result<String> {
        wait_until(&format!("the log does not have: {text}"), async || Ok(self.log()?.contains(text)))
            .await?;
        self.log()
    }
}

/// Parsed metrics.
pub(crate) struct ScrapedFigures(Value);

impl ScrapedFigures {
    fn read(text: &str) -> Result<Self> {
        let mut parser = Command::new(installed("operations")?);
        parser.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/operations/read_metrics.py"));
        let read = run_ok(parser, text.as_bytes()).with_context(|| text.to_owned())?;
        Ok(Self(serde_json::from_str(&read)?))
    }

    /// Every sample: its name, labels and value.
    pub(crate) fn samples(&self) -> impl Iterator<Item = (&str, &Value, f64)> {
        let families = self.0.as_object().into_iter().flat_map(|all| all.values());
        families
            .flat_map(|family| family["samples"].as_array().into_iter().flatten())
            .filter_map(|sample| Some((sample[0].as_str()?, &sample[1], sample[2].as_f64()?)))
    }

    /// The sum of the samples of this name with at least these labels.
    pub(crate) fn sum(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let has = |of: &Value| labels.iter().all(|(label, value)| of[label] == **value);
        self.samples().filter(|(own, of, _)| *own == name && has(of)).map(|(_, _, value)| value).sum()
    }

    /// Whether there is a sample of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.samples().any(|(own, _, _)| own == name)
    }
}
