//! HTTP: connections, and what every request and answer has in common.

mod body;
mod client;
mod cors;
mod front;
mod head;
mod json;
mod listen;
mod problem;
mod request_id;
mod stall;
mod stop;

pub(crate) use body::read_body;
pub(crate) use client::ClientAddress;
pub(crate) use cors::{CorsRule, cors};
pub(crate) use front::{AnswerBody, Front};
pub(crate) use head::{HEAD_BYTES_MAX, READ_BYTES_MAX};
pub(crate) use json::json;
pub(crate) use listen::{Bounds, serve};
pub(crate) use problem::{Refusal, Said};
pub(crate) use request_id::{RequestId, X_REQUEST_ID};
pub(crate) use stop::signalled;

#[cfg(test)]
mod tests;
