//! What is logged, where the figures are, and where traces go.

use std::net::SocketAddr;

use super::{
    layers::Raw,
    reader::Reader,
    value::{BaseUrl, Setting},
};

/// `metrics.*`, `traces.*` and `log.*`
#[derive(Clone, Debug)]
pub struct Log {
    /// `metrics.listen`: where Prometheus reads; when absent, nowhere.
    pub metrics: Option<SocketAddr>,
    /// `traces.endpoint`: the collector that traces are sent to; when absent, there are none.
    pub traces: Option<BaseUrl>,
    /// `traces.one_in`: every how many-th request is traced.
    pub traces_one_in: u64,
    /// `log.format`: how lines are written.
    pub format: LogFormat,
    /// `log.level`: the least important lines that are written.
    pub level: LogLevel,
}

impl Log {
    /// Reads the three sections.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        let metrics = reader.optional("metrics.listen");
        let traces: Option<BaseUrl> = reader.optional("traces.endpoint");
        if traces.is_some() && !cfg!(feature = "otel") {
            let missing = "this build sends no traces: it lacks the feature otel";
            reader.refuse(
                "traces.endpoint",
                &missing,
                "leave it out, or build the command with --features otel",
            );
        }
        if traces.as_ref().is_some_and(|url| !url.as_str().starts_with("http://")) {
            let allowed = "a collector beside the server sends on what goes further";
            reader.refuse("traces.endpoint", &"traces leave by http only", allowed);
        }
        Self {
            metrics,
            traces,
            traces_one_in: reader.number("traces.one_in", 1, 1..=1_000_000),
            format: reader.value("log.format", LogFormat::Text),
            level: reader.value("log.level", LogLevel(tracing::Level::INFO)),
        }
    }
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

impl Setting for LogFormat {
    const ALLOWED: &'static str = "text or json";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        match String::read(raw)?.as_str() {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err(None),
        }
    }

    fn show(&self) -> String {
        match self {
            Self::Text => "\"text\"".to_owned(),
            Self::Json => "\"json\"".to_owned(),
        }
    }
}

/// How important a line must be to be written. Requests are logged at `info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel(pub tracing::Level);

impl Setting for LogLevel {
    const ALLOWED: &'static str = "error, warn, info, debug or trace";

    fn read(raw: &Raw) -> Result<Self, Option<String>> {
        match String::read(raw)?.as_str() {
            "error" => Ok(Self(tracing::Level::ERROR)),
            "warn" => Ok(Self(tracing::Level::WARN)),
            "info" => Ok(Self(tracing::Level::INFO)),
            "debug" => Ok(Self(tracing::Level::DEBUG)),
            "trace" => Ok(Self(tracing::Level::TRACE)),
            _ => Err(None),
        }
    }

    fn show(&self) -> String {
        format!("\"{}\"", self.0.as_str().to_ascii_lowercase())
    }
}
