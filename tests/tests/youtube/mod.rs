//! The production supplier of YouTube's captions, through the replay proxy.

use std::path::{Path, PathBuf};

use anyhow::Result;
use transcript_core::video::{Platform, VideoId};
use verbatim_tests::replay::recordings::Recordings;

/// Our own recordings.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/youtube")
}

#[test]
fn every_recording_is_about_a_video_and_expects_something() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    assert!(recordings.all().len() >= 30);
    for recording in recordings.all() {
        assert!(!recording.asks.is_empty(), "{} expects nothing", recording.name);
        if let Some(video) = &recording.video {
            VideoId::new(Platform::VideoSite, video)?;
        }
    }
    Ok(())
}

#[test]
fn every_file_of_the_recordings_is_used() -> Result<()> {
    let index = std::fs::read_to_string(folder().join("index.toml"))?;
    for part in ["player", "captions"] {
        for entry in std::fs::read_dir(folder().join(part))? {
            let name = format!("{part}/{}", entry?.file_name().to_string_lossy());
            assert!(index.contains(&format!("\"{name}\"")), "no recording uses {name}");
        }
    }
    Ok(())
}
