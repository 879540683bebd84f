//! JSON bodies of the lookup API and the v1 API as specified, shared by server and clients.

pub mod lookup;
mod problem;
#[cfg(feature = "accounts")]
pub mod v1;

pub use problem::Problem;
