//! The `verbatim` command: both APIs over HTTP, and the operator's tools.

mod altcha;
mod api;
mod command;
pub mod config;
mod docs;
mod log;
mod mail;
mod mcp;
mod metrics;
mod openapi;
mod page;
mod response_cache;
mod routes;
mod serve;
mod state;
#[cfg(test)]
mod testing;
#[cfg(feature = "otel")]
mod traces;

pub use command::run;
