//! Shared parts of the TikTok, Instagram and X tests.

mod media;
pub(crate) mod recordings;
mod replayed;
pub(crate) mod supplier_calls;

pub(crate) use replayed::{check_all, read_recording, recorded_script, start_replay};
