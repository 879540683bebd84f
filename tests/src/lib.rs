//! Acceptance tests of Verbatim that cross crates, and the replay proxy that they use.
//!
//! The tests themselves are in `tests/`; this library holds what they and the benches share.

mod cargo;
mod foreign_urls;
pub mod replay;
mod script;

pub use cargo::cargo;
pub use foreign_urls::{ConnectionTrap, foreign_urls};
pub use script::write_script;
