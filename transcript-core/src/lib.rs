//! Core rules of Verbatim: from a video link to a timestamped transcript. No I/O.
//!
//! The crate opens no sockets or files and reads no clock, environment or randomness. Small object-safe
//! traits provide them: the stores ([`archive::Archive`], [`ledger::Ledger`], [`directory::Directory`], …),
//! the suppliers ([`supplier::Supplier`]), [`Clock`] and [`Random`].
//! [`memory`] has in-memory stores. With the feature `testing`, the `testing` module has the conformance
//! suite that every other implementation must pass, and `test_doubles` has clocks and wrappers of ports. With the
//! feature `service`, the `service` module has the interface of the service for callers.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    not(all(
        feature = "accounts",
        feature = "chat",
        feature = "lookup",
        feature = "mail",
        feature = "payments",
        feature = "search"
    )),
    allow(dead_code, unused_imports, reason = "helpers of modules that are not compiled")
)]

#[cfg(feature = "accounts")]
pub mod accounts;
pub mod admin;
pub mod archive;
pub mod body;
pub mod captions;
#[cfg(feature = "chat")]
pub mod chat;
mod debug_fields;
pub mod directory;
mod display;
pub mod engine;
pub mod error;
mod failure_log;
pub mod headers;
pub mod hex;
pub mod ids;
#[cfg(feature = "lookup")]
mod keyed_digest;
pub mod ledger;
pub mod limits;
#[cfg(feature = "lookup")]
pub mod lookup;
pub mod memory;
mod names;
pub mod page;
pub mod retry;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "service")]
pub mod service;
pub mod supplier;
mod tasks;
#[cfg(any(test, feature = "testing"))]
pub mod test_doubles;
#[cfg(feature = "testing")]
pub mod testing;
pub mod text;
pub mod time;
pub mod transcript;
pub mod video;
pub mod wire;

pub use error::{Error, ErrorCause, ErrorKind, Result, Retry};
pub use failure_log::FailureLog;
pub use page::{Page, PageRequest};
pub use tasks::{ActivityCount, ActivityGuard};
pub use time::{Clock, Random, Timestamp};

/// Doc tests of the crate's README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}
