//! A Verbatim server called by other programs over real HTTP.
//!
//! The callers are the typed client, and a server that has another one as a supplier. Some called servers are faulty.

mod accounts;
mod chain;
mod conformance;
mod example;
pub(crate) mod fake;
mod faults;
mod fixture;
mod lookups;
mod loop_prevention;
