//! Writers of subtitle files: segments as SRT and as WebVTT (specification 14).

mod srt;
mod subtitle_cue;
mod webvtt;

pub use srt::write_srt;
pub use webvtt::write_webvtt;
