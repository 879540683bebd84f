//! The log: one thread writes to standard error, so that no request ever waits for it.
//!
//! Lines go through a bounded queue; when it is full they are dropped and counted, and the count is
//! written as soon as there is room again. No line has a query, a key or a caller's address in it.

mod access;
mod writer;

use std::io::IsTerminal;

pub(crate) use access::AccessLine;
pub(crate) use writer::{Log, LogGuard};

use tracing::subscriber::set_global_default;
use tracing_subscriber::{filter::filter_fn, layer::SubscriberExt as _};

use crate::config::{self, LogFormat};

/// Starts the log, for this process and all of its crates.
pub(crate) fn start(settings: &config::Log) -> LogGuard {
    let requests = settings.level.0 >= tracing::Level::INFO;
    let (log, guard) = Log::start(std::io::stderr(), settings.format, requests);
    let colour = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let lines = tracing_subscriber::fmt()
        .with_max_level(settings.level.0)
        .with_ansi(colour && settings.format == LogFormat::Text)
        .with_writer(move || log.line_writer());
    // The protocol's library would log messages, in which are questions and transcripts.
    let sayable = filter_fn(|event| !event.target().starts_with("rmcp"));
    // A second start in one process keeps the first subscriber: lines go on to be written there.
    let _ = match settings.format {
        LogFormat::Text => set_global_default(lines.with_target(false).finish().with(sayable)),
        LogFormat::Json => set_global_default(lines.json().flatten_event(true).finish().with(sayable)),
    };
    std::panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(ToString::to_string).unwrap_or_default();
        tracing::error!(place, "a defect: {}", message(panic.payload()));
    }));
    guard
}

/// What a panic said, where it said it in words.
fn message(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| payload.downcast_ref::<&str>().copied()).unwrap_or("it did not say what")
}
