//! The `verbatim` command: both API surfaces over HTTP, and the tools of an operator.

mod bodies;
mod command;
pub mod config;
mod docs;
mod http;
mod human;
mod log;
mod mail;
mod mcp;
mod metrics;
mod openapi;
mod page;
mod ready;
mod routes;
#[cfg(test)]
mod testing;
#[cfg(feature = "otel")]
mod traces;
mod wiring;

pub use command::run;
