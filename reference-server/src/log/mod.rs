//! The log: one thread writes to standard error, so that requests do not wait for it.
//!
//! Lines go through a bounded queue. If it is full they are dropped and counted, and the count is logged as soon as
//! there is space. Lines contain no query, key or client address, and only visible characters.

mod access;
mod escape;
mod writer;

use std::io::IsTerminal;

pub(crate) use access::AccessLine;
pub(crate) use writer::{LogGuard, LogQueue};

use tracing::{Metadata, subscriber::set_global_default};
use tracing_subscriber::{filter::filter_fn, layer::SubscriberExt as _};

use crate::config::{self, LogFormat};

/// Starts the log of this process.
pub(crate) fn start(
    settings: &config::LogSettings,
    #[cfg(feature = "otel")] tracer: Option<crate::traces::TracerHandle>,
) -> LogGuard {
    let requests = settings.level.0 >= tracing::Level::INFO;
    let (log, guard) = LogQueue::start(std::io::stderr(), settings.format, requests);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let ansi = colour && settings.format == LogFormat::Text;
    #[cfg(feature = "otel")]
    if let Some(tracer) = tracer {
        crate::traces::log_and_trace(settings, ansi, tracer, is_loggable, move || log.line_writer(ansi));
        set_panic_hook();
        return guard;
    }
    let lines = tracing_subscriber::fmt()
        .with_max_level(settings.level.0)
        .with_ansi(ansi)
        .with_writer(move || log.line_writer(ansi));
    let loggable = filter_fn(is_loggable);
    // A second start in one process keeps the first subscriber.
    let _ = match settings.format {
        LogFormat::Text => set_global_default(lines.with_target(false).finish().with(loggable)),
        LogFormat::Json => {
            // The request id is in the outermost span.
            let lines = lines.json().flatten_event(true).with_current_span(false);
            set_global_default(lines.finish().with(loggable))
        }
    };
    set_panic_hook();
    guard
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
