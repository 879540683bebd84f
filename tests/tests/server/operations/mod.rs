//! What an operator sees of a running server, and what they do with it.

mod backup;
mod figures;
mod readiness;
mod rolling;
mod secrets;

use std::{
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::OnceLock,
};

use anyhow::{Context as _, Result, ensure};
use http::{Method, StatusCode};
use serde_json::Value;
use tempfile::TempDir;

use super::harness::{Reply, Server, request, until};

/// A server whose log is a file, with a listener for figures.
pub(crate) struct Watched {
    pub(crate) server: Server,
    figures: String,
    log: PathBuf,
}

impl Watched {
    /// With these settings, and those that it is watched by.
    pub(crate) async fn start(data: &TempDir, settings: &[(&str, &str)]) -> Result<Self> {
        let log = data.path().join("log");
        let mut all = vec![("VERBATIM_METRICS__LISTEN", "127.0.0.1:0"), ("VERBATIM_LOG__LEVEL", "info")];
        all.extend_from_slice(settings);
        let server = Server::start_with_log(data, &all, &log)?;
        let mut figures = None;
        until("the figures have an address", async || {
            let text = std::fs::read_to_string(&log)?;
            let rest = text.split_once("figures for Prometheus are at http://").map(|(_, rest)| rest);
            figures =
                rest.and_then(|rest| rest.split_once("/metrics")).map(|(address, _)| address.to_owned());
            Ok(figures.is_some())
        })
        .await?;
        Ok(Self { server, figures: figures.context("no address")?, log })
    }

    /// What the listener for figures answers.
    pub(crate) async fn ask(&self, path: &str) -> Result<Reply> {
        request(&self.figures, Method::GET, path).await
    }

    /// The figures, as Prometheus' own parser reads them.
    pub(crate) async fn figures(&self) -> Result<Figures> {
        let reply = self.ask("/metrics").await?;
        ensure!(reply.status == StatusCode::OK, "{}", reply.text());
        let kind = reply.header("content-type");
        ensure!(kind.starts_with("application/openmetrics-text; version=1.0.0"), "{kind}");
        Figures::read(&reply.text())
    }

    /// All that was logged so far.
    pub(crate) fn log(&self) -> Result<String> {
        Ok(std::fs::read_to_string(&self.log)?)
    }
}

/// Figures that were read.
pub(crate) struct Figures(Value);

impl Figures {
    fn read(text: &str) -> Result<Self> {
        let mut parser = Command::new(python()?);
        parser.arg(concat!(env!("CARGO_MANIFEST_DIR"), "/operations/read_metrics.py"));
        let read = super::harness::run(parser, text.as_bytes())?;
        ensure!(read.status.success(), "{}\n{text}", String::from_utf8_lossy(&read.stderr));
        Ok(Self(serde_json::from_slice(&read.stdout)?))
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

/// The Python that has Prometheus' parser. The first caller has it installed.
fn python() -> Result<&'static Path> {
    static PYTHON: OnceLock<Option<PathBuf>> = OnceLock::new();
    let python = PYTHON.get_or_init(|| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/operations/install.sh");
        let output = Command::new(script).stderr(Stdio::inherit()).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?;
        output.status.success().then(|| PathBuf::from(path.trim()))
    });
    python.as_deref().context("operations/install.sh failed")
}
