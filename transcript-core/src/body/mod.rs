//! Bodies of transcripts: segments as JSON, and zstd frames around them.
//!
//! A stored transcript and a response contain the same list of segments, so that a server sends the stored bytes.

pub mod segments;
pub mod zstd_frame;
