//! The production supplier of YouTube's captions, through the replay proxy.

mod faults;
mod hosts;
mod lists;
mod recorded;
mod video_stream;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context as _, Result};
use transcript_core::{
    supplier::Supplier,
    video::{Platform, VideoId},
};
use upstream_reqwest::{HttpOptions, HttpTransport, YouTubeCaptions, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, recordings::Recordings};

use crate::social::{check_all, supplier_calls};

const PLATFORM: &str = "youtube";
const HOST: &str = "www.youtube.com";
const PLAYER: &str = "/youtubei/v1/player";
const CAPTIONS: &str = "/api/timedtext";

/// The folder of YouTube's recordings in the repository.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/youtube")
}

fn make(http: Arc<HttpTransport>) -> Arc<dyn Supplier> {
    Arc::new(YouTubeCaptions::new(http, YouTubeOptions::default(), Arc::new(SystemClock::default())))
}

/// The production supplier with this transport.
fn supplier(options: HttpOptions) -> Result<Arc<dyn Supplier>> {
    Ok(make(Arc::new(HttpTransport::new(options)?)))
}

/// The production supplier behind one proxy, without retries.
fn behind(proxy: &ReplayProxy) -> Result<Arc<dyn Supplier>> {
    supplier_calls::behind(make, proxy)
}

#[test]
fn youtube_recordings_have_videos() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    assert!(recordings.all().len() >= 30);
    for recording in recordings.all() {
        VideoId::new(Platform::YouTube, recording.video.as_deref().context("a video")?)?;
    }
    Ok(())
}

#[test]
fn youtube_recording_files_of_lists_are_all_used() -> Result<()> {
    let lists = folder().with_file_name("youtube-lists");
    Recordings::open(&lists)?;
    let index = std::fs::read_to_string(lists.join("index.toml"))?;
    for part in ["playlist", "channel"] {
        for entry in std::fs::read_dir(lists.join(part))? {
            let name = format!("{part}/{}", entry?.file_name().to_string_lossy());
            assert!(index.contains(&format!("\"{name}\"")), "no recording uses {name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn youtube_recordings_have_expected_outcomes() -> Result<()> {
    check_all(PLATFORM, make).await
}
