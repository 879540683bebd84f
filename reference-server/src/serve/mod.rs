//! Connections, the service that answers their requests, and the metrics listener.

mod listen;
pub(crate) mod metrics;
mod service;
mod shutdown;
mod stall_timeout;

pub(crate) use listen::{ConnectionLimits, serve};
pub(crate) use service::HttpService;
pub(crate) use shutdown::shutdown_signal;

#[cfg(test)]
mod tests;
