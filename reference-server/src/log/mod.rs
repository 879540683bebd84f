//! The log: one thread writes to standard error, so that requests do not wait for it.
//!
//! Lines go through a bounded queue. If it is full they are dropped and counted, and the count is logged as soon as
//! there is space. Lines contain no query, key or client address, and only visible characters.

mod access;
mod escape;
mod writer;

use std::{io::IsTerminal, sync::Arc};

pub(crate) use access::AccessLine;
pub(crate) use writer::{LogGuard, LogQueue};

use tracing::{Level, Metadata, level_filters::LevelFilter, subscriber::set_global_default};
use tracing_subscriber::{Layer as _, filter::filter_fn, fmt::MakeWriter, layer::SubscriberExt as _, reload};

use crate::config::{self, LogFormat};

/// Changes the level of a running log.
#[derive(Clone)]
pub(crate) struct LogLevelControl {
    log: LogQueue,
    set_filter: FilterSetter,
}

/// Replaces the level filter of the subscriber.
type FilterSetter = Arc<dyn Fn(LevelFilter) + Send + Sync>;

transcript_core::debug_fields!(LogLevelControl { log });

impl LogLevelControl {
    /// Sets the lowest level that is logged.
    pub(crate) fn set(&self, level: Level) {
        self.log.set_level(level);
        (self.set_filter)(LevelFilter::from_level(level));
    }
}

/// Starts the log of this process.
pub(crate) fn start(
    settings: &config::LogSettings,
    #[cfg(feature = "otel")] tracer: Option<crate::traces::TracerHandle>,
) -> (LogGuard, LogLevelControl) {
    let (log, guard) = LogQueue::start(std::io::stderr(), settings.format, settings.level.0);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let ansi = colour && settings.format == LogFormat::Text;
    let writer_log = log.clone();
    let writer = move || writer_log.line_writer(ansi);
    #[cfg(feature = "otel")]
    let set_filter = match tracer {
        Some(tracer) => crate::traces::log_and_trace(settings, ansi, tracer, is_loggable, writer),
        None => log_only(settings, ansi, writer),
    };
    #[cfg(not(feature = "otel"))]
    let set_filter = log_only(settings, ansi, writer);
    set_panic_hook();
    (guard, LogLevelControl { log, set_filter })
}

/// Installs the log without traces. Returns a function that changes its level.
fn log_only(
    settings: &config::LogSettings,
    ansi: bool,
    lines: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> FilterSetter {
    let (level, handle) = reload::Layer::new(LevelFilter::from_level(settings.level.0));
    let layer = tracing_subscriber::fmt::layer().with_ansi(ansi).with_writer(lines);
    let lines = match settings.format {
        LogFormat::Text => layer.with_target(false).boxed(),
        // The request id is in the outermost span.
        LogFormat::Json => layer.json().flatten_event(true).with_current_span(false).boxed(),
    };
    let all = tracing_subscriber::registry().with(level).with(filter_fn(is_loggable)).with(lines);
    // A second start in one process keeps the first subscriber.
    let _ = set_global_default(all);
    // Fails only if the subscriber was not installed.
    Arc::new(move |level| drop(handle.reload(level)))
}

/// Whether an event may be logged.
///
/// The MCP library would log whole messages with questions and transcripts.
fn is_loggable(event: &Metadata<'_>) -> bool {
    !event.target().starts_with("rmcp")
}

fn set_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(location, "panic: {}", message(panic.payload()));
    }));
}

/// Returns the text of a panic, if any.
fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
