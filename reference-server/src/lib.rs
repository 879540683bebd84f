//! The `verbatim` command: both APIs over HTTP, and the operator's tools.
//!
//! [`run`] is the whole command. [`EmbeddedServer`] is what it serves, for a program that has an HTTP server:
//! a tower service and an axum router over any [`verbatim::Verbatim`].

mod admin;
mod altcha;
mod api;
mod background;
mod command;
mod config;
mod docs;
mod embedded_server;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod log;
mod mail;
#[cfg(feature = "mcp")]
mod mcp;
mod messages;
mod metrics;
mod openapi;
mod operations;
mod page;
mod response_cache;
mod routes;
mod serve;
mod state;
#[cfg(any(test, feature = "fuzzing"))]
#[allow(clippy::unwrap_used, reason = "a fixture of tests")]
#[cfg_attr(not(test), allow(dead_code, reason = "some of it is for tests only"))]
mod testing;
#[cfg(feature = "otel")]
mod traces;

pub use command::run;
pub use embedded_server::{EmbedOptions, EmbeddedServer};
