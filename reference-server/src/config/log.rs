//! Settings of logs, metrics and traces.

use std::net::SocketAddr;

use super::value::{BaseUrl, WordSetting};

/// `metrics.*`, `traces.*` and `log.*`
#[derive(Clone, Debug, smart_default::SmartDefault)]
pub(crate) struct LogSettings {
    /// `metrics.listen`: address of the metrics listener. If unset, there is none.
    pub(crate) metrics: Option<SocketAddr>,
    /// `traces.endpoint`: collector that receives traces. If unset, there are none.
    pub(crate) traces: Option<BaseUrl>,
    /// `traces.sample_ratio`: share of requests that are traced, from 0 to 1.
    #[default(1.0)]
    pub(crate) traces_sample_ratio: f64,
    /// `log.format`: format of log lines.
    #[default(LogFormat::Text)]
    pub(crate) format: LogFormat,
    /// `log.level`: lowest level that is logged.
    #[default(LogLevel(tracing::Level::INFO))]
    pub(crate) level: LogLevel,
}

/// Format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// Plain text.
    Text,
    /// One JSON object a line.
    Json,
}

impl WordSetting for LogFormat {
    const ALLOWED: &'static str = "text or json";
    const WORDS: &'static [(&'static str, Self)] = &[("text", Self::Text), ("json", Self::Json)];
}

/// Lowest level that is logged. Requests are logged at `info`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LogLevel(pub(crate) tracing::Level);

impl WordSetting for LogLevel {
    const ALLOWED: &'static str = "error, warn, info, debug or trace";
    const WORDS: &'static [(&'static str, Self)] = &[
        ("error", Self(tracing::Level::ERROR)),
        ("warn", Self(tracing::Level::WARN)),
        ("info", Self(tracing::Level::INFO)),
        ("debug", Self(tracing::Level::DEBUG)),
        ("trace", Self(tracing::Level::TRACE)),
    ];
}
