//! The built server and command, over real HTTP, with recordings in place of the platforms.

mod caching;
mod commands;
mod crash;
mod crowd;
pub(crate) mod harness;
mod hostile;
mod keys;
mod killed;
mod moving;
mod openapi;
mod operations;
mod operators;
pub(crate) mod platform;
mod postgres;
mod preload;
mod samples;
mod social;
mod storage;
mod surface;
mod terminal;
pub(crate) mod v1;
