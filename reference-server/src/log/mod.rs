//! The log: one thread writes to standard error, so that no request ever waits for it.
//!
//! Lines go through a bounded queue; when it is full they are dropped and counted, and the count is
//! written as soon as there is room again. No line has a query, a key or a caller's address in it.

mod access;
mod writer;

use std::io::IsTerminal;

pub(crate) use access::AccessLine;
pub(crate) use writer::{Log, LogGuard};

use tracing::{Metadata, subscriber::set_global_default};
use tracing_subscriber::{filter::filter_fn, layer::SubscriberExt as _};

use crate::config::{self, LogFormat};

/// Starts the log, for this process and all of its crates.
pub(crate) fn start(
    settings: &config::Log,
    #[cfg(feature = "otel")] tracer: Option<crate::traces::Tracer>,
) -> LogGuard {
    let requests = settings.level.0 >= tracing::Level::INFO;
    let (log, guard) = Log::start(std::io::stderr(), settings.format, requests);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    #[cfg(feature = "otel")]
    if let Some(tracer) = tracer {
        let ansi = colour && settings.format == LogFormat::Text;
        crate::traces::log_and_trace(settings, ansi, tracer, move || log.line_writer());
        set_panic_hook();
        return guard;
    }
    let lines = tracing_subscriber::fmt()
        .with_max_level(settings.level.0)
        .with_ansi(colour && settings.format == LogFormat::Text)
        .with_writer(move || log.line_writer());
    let sayable = filter_fn(is_sayable);
    // A second start in one process keeps the first subscriber: lines go on to be written there.
    let _ = match settings.format {
        LogFormat::Text => set_global_default(lines.with_target(false).finish().with(sayable)),
        LogFormat::Json => {
            // The request's id is in the outermost span.
            let lines = lines.json().flatten_event(true).with_current_span(false);
            set_global_default(lines.finish().with(sayable))
        }
    };
    set_panic_hook();
    guard
}

/// Whether an event may be written. The library of the Model Context Protocol would log whole messages, in which are
/// questions and transcripts.
pub(crate) fn is_sayable(event: &Metadata<'_>) -> bool {
    !event.target().starts_with("rmcp")
}

fn set_panic_hook() {
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a defect: {}", message(panic.payload()));
    }));
}

/// What a panic said, where it said it in words.
fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it did not say what")
}
