//! What the tests of TikTok, Instagram and X have in common.

pub(crate) mod asking;
pub(crate) mod beside;
mod replayed;

pub(crate) use replayed::{check_all, playing, recorded};
