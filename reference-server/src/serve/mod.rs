//! Connections, the service that answers their requests, and the metrics listener.

mod control;
mod current;
mod file_limit;
mod listen;
mod listener;
pub(crate) mod metrics;
mod network_limit;
mod service;
mod shutdown;
mod stall_timeout;

pub(crate) use control::{ControlSignal, ControlSignals};
pub(crate) use current::CurrentService;
pub(crate) use file_limit::{connections_within, raise_file_limit};
pub(crate) use listen::{ConnectionLimits, serve};
pub(crate) use listener::Listener;
pub(crate) use service::HttpService;
pub(crate) use shutdown::shutdown_signal;
pub(crate) use stall_timeout::StallTimeouts;

#[cfg(test)]
mod tests;
