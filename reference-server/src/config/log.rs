//! What is logged, and where the figures are.

use std::net::SocketAddr;

use super::{layers::Raw, reader::Reader, value::Setting};

/// `metrics.*` and `log.*`
#[derive(Clone, Debug)]
pub struct Log {
    /// `metrics.listen`: where Prometheus reads; when absent, nowhere.
    pub metrics: Option<SocketAddr>,
    /// `log.format`: how lines are written.
    pub format: LogFormat,
    /// `log.level`: the least important lines that are written.
    pub level: LogLevel,
}

impl Log {
    /// Reads both sections.
    pub fn read(reader: &mut Reader<'_>) -> Self {
        Self {
            metrics: reader.optional("metrics.listen"),
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
