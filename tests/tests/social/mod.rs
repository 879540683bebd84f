//! What the tests of TikTok, Instagram and X have in common.

pub(crate) mod asking;
pub(crate) mod beside;
mod listening;
mod replayed;

pub(crate) use replayed::{check_all, playing, recorded};
