//! Settings of logs, metrics and traces.

use std::net::SocketAddr;

use super::{
    layers::RawSettings,
    reader::SettingsReader,
    value::{BaseUrl, ParseSetting},
};

/// `metrics.*`, `traces.*` and `log.*`
#[derive(Clone, Debug)]
pub struct LogSettings {
    /// `metrics.listen`: address of the metrics listener. If unset, there is none.
    pub metrics: Option<SocketAddr>,
    /// `traces.endpoint`: collector that receives traces. If unset, there are none.
    pub traces: Option<BaseUrl>,
    /// `traces.sample_ratio`: share of requests that are traced, from 0 to 1.
    pub traces_sample_ratio: f64,
    /// `log.format`: format of log lines.
    pub format: LogFormat,
    /// `log.level`: lowest level that is logged.
    pub level: LogLevel,
}

impl LogSettings {
    /// Reads the three sections.
    pub fn read(reader: &mut SettingsReader<'_>) -> Self {
        let metrics = reader.optional("metrics.listen");
        let traces: Option<BaseUrl> = reader.optional("traces.endpoint");
        if traces.is_some() && !cfg!(feature = "otel") {
            let missing = "this build has no traces: it lacks the feature otel";
            reader.refuse(
                "traces.endpoint",
                &missing,
                "leave it out, or build the command with --features otel",
            );
        }
        if traces.as_ref().is_some_and(|url| !url.as_str().starts_with("http://")) {
            let allowed = "use a local collector that forwards them";
            reader.refuse("traces.endpoint", &"traces are sent over http only", allowed);
        }
        Self {
            metrics,
            traces,
            traces_sample_ratio: reader.ratio("traces.sample_ratio", 1.0),
            format: reader.value("log.format", LogFormat::Text),
            level: reader.value("log.level", LogLevel(tracing::Level::INFO)),
        }
    }
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object a line.
    Json,
}

impl ParseSetting for LogFormat {
    const ALLOWED: &'static str = "text or json";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
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

/// Lowest level that is logged. Requests are logged at `info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogLevel(pub tracing::Level);

impl ParseSetting for LogLevel {
    const ALLOWED: &'static str = "error, warn, info, debug or trace";

    fn read(raw: &RawSettings) -> Result<Self, Option<String>> {
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
