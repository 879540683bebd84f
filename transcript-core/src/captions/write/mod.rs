//! Writers of subtitle files, and all text formats of a transcript (specification 14).

mod srt;
mod subtitle_cue;
mod text_format;
mod webvtt;

pub use srt::write_srt;
pub use text_format::TextFormat;
pub use webvtt::{write_webvtt, write_webvtt_with_words};
