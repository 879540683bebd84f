//! JSON bodies of the lookup API and the v1 API as specified, shared by server and clients.

mod details;
pub mod lookup;
mod problem;
#[cfg(feature = "search")]
pub mod search;
#[cfg(feature = "accounts")]
pub mod v1;

#[cfg(feature = "accounts")]
pub use details::V1MetadataObject;
pub use details::{ChapterObject, ChunkObject, LanguageObject, MetadataObject, languages};
pub use problem::Problem;
