//! Settings of logs, metrics and traces.

use std::net::SocketAddr;

use super::{
    layers::RawSettings,
    value::{BaseUrl, ParseSetting},
};

/// `metrics.*`, `traces.*` and `log.*`
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub struct LogSettings {
    /// `metrics.listen`: address of the metrics listener. If unset, there is none.
    pub metrics: Option<SocketAddr>,
    /// `traces.endpoint`: collector that receives traces. If unset, there are none.
    pub traces: Option<BaseUrl>,
    /// `traces.sample_ratio`: share of requests that are traced, from 0 to 1.
    #[default(1.0)]
    pub traces_sample_ratio: f64,
    /// `log.format`: format of log lines.
    #[default(LogFormat::Text)]
    pub format: LogFormat,
    /// `log.level`: lowest level that is logged.
    #[default(LogLevel(tracing::Level::INFO))]
    pub level: LogLevel,
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
