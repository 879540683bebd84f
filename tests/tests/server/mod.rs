//! The built server and its commands over real HTTP, with recordings instead of the platforms.

mod admin;
mod bounds;
mod caching;
mod commands;
mod compression_bombs;
mod concurrent_callers;
mod crash;
mod fetch_queue;
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
mod slow_readers;
mod smuggling;
mod social;
mod storage;
mod storage_copy;
mod terminal;
pub(crate) mod v1;
