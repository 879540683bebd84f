//! JSON bodies of the lookup API and the v1 API as specified, shared by server and clients.

pub mod lookup;
mod problem;
pub mod segments;
pub mod v1;
pub mod zstd_frame;

pub use problem::Problem;
