//! The `verbatim` command: both API surfaces over HTTP, and the tools of an operator.

mod bodies;
mod command;
pub mod config;
mod http;
mod human;
mod log;
mod mail;
mod openapi;
mod page;
mod routes;
#[cfg(test)]
mod testing;
mod wiring;

pub use command::run;
