//! Every route, status and header, in process.

mod caching;
mod checkout;
mod errors;
mod keys;
mod mcp;
mod transcript;
mod v1;
mod visitor;
mod watch;
