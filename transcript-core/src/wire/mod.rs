//! JSON bodies of the lookup API and the v1 API as specified, shared by server and clients.

mod details;
#[cfg(feature = "lookup")]
pub mod lookup;
#[cfg(feature = "lookup")]
mod problem;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "accounts")]
pub mod v1;

#[cfg(feature = "accounts")]
pub use details::V1MetadataObject;
pub use details::{AFTER_SEGMENTS, ChapterObject, ChunkObject, LanguageObject, MetadataObject, languages};
#[cfg(feature = "lookup")]
pub use problem::Problem;
