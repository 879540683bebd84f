//! The rules of Verbatim: from a link to a video's words, with the time of each.
//!
//! This crate has no sockets, files, clock, environment or randomness of its own. What it needs comes in
//! through small object-safe traits: the stores ([`archive::Archive`], [`ledger::Ledger`],
//! [`directory::Directory`], …), the sources ([`supplier::Supplier`]), [`Clock`] and [`Random`].
//! In-memory stores are in [`memory`]; with the feature `testing`, the `testing` module has the
//! conformance suite that every other implementation must pass.

pub mod accounts;
pub mod archive;
pub mod captions;
pub mod chat;
pub mod directory;
pub mod engine;
pub mod error;
pub mod ids;
pub mod ledger;
pub mod limits;
pub mod lookup;
pub mod memory;
pub mod page;
pub mod supplier;
#[cfg(feature = "testing")]
pub mod testing;
pub mod time;
pub mod transcript;
pub mod video;
pub mod wire;

pub use error::{Error, ErrorKind, Result, Retry};
pub use page::{Page, PageRequest};
pub use time::{Clock, Random, Timestamp};
