//! HTTP: connections, and what all requests and responses share.

mod body;
mod client;
mod cors;
mod head;
mod json;
mod listen;
mod problem;
mod request_id;
mod service;
mod shutdown;
mod stall_timeout;

pub(crate) use body::read_body;
pub(crate) use client::ClientAddress;
pub(crate) use cors::{CorsRule, cors};
pub(crate) use head::{HEAD_BYTES_MAX, READ_BYTES_MAX};
pub(crate) use json::json;
pub(crate) use listen::{ConnectionLimits, serve};
pub(crate) use problem::{ProblemDetail, ProblemResponse};
pub(crate) use request_id::{RequestId, X_REQUEST_ID};
pub(crate) use service::{HttpService, ResponseBody};
pub(crate) use shutdown::shutdown_signal;

#[cfg(test)]
mod tests;
