//! The built server and its commands over real HTTP, with recordings instead of the platforms.

mod caching;
mod commands;
mod concurrent_callers;
mod crash;
pub(crate) mod harness;
mod hostile;
mod keys;
mod kill_restart;
mod lookup_api;
mod openapi;
mod operations;
mod operators;
pub(crate) mod platform;
mod postgres;
mod preload;
mod samples;
mod social;
mod storage;
mod storage_copy;
mod terminal;
pub(crate) mod v1;
