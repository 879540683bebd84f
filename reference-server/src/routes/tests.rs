//! In-process tests of every route, status and header.

mod account;
mod caching;
mod checkout;
mod downloads;
mod errors;
mod keys;
mod limits;
mod mcp;
mod pages;
mod questions;
mod transcript;
mod v1;
mod views;
mod visitor;
mod watch;
