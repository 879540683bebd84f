//! Shared parts of the TikTok, Instagram and X tests.

pub(crate) mod asking;
pub(crate) mod beside;
mod listening;
mod replayed;

pub(crate) use replayed::{check_all, read_recording, start_replay};
