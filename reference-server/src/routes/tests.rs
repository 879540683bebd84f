//! Every route, status and header, in process.

mod errors;
mod keys;
mod transcript;
mod watch;
