//! Bodies of transcripts: segments as JSON, zstd frames around them, and the times of their words.
//!
//! A stored transcript and a response contain the same list of segments, so that a server sends the stored bytes.

pub mod numbers;
pub mod segments;
pub mod words;
pub mod zstd_frame;
