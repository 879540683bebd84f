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

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    supplier::Supplier,
    video::{Platform, VideoId},
};
use upstream_reqwest::{HttpOptions, HttpTransport, YouTubeCaptions, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{
    ReplayProxy,
    recordings::{Expectation, Recording, Recordings},
};

use crate::social::supplier_calls::{check_failure, check_transcript, fetch, options};

/// The folder of YouTube's recordings in the repository.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/youtube")
}

/// A proxy that replays one recording.
fn start_replay(name: &str) -> Result<ReplayProxy> {
    let recordings = Recordings::open(&folder())?;
    ReplayProxy::start(recordings.script_for(recordings.find(name)?)?)
}

/// The production supplier with this transport.
fn supplier(options: HttpOptions) -> Result<Arc<dyn Supplier>> {
    let http = Arc::new(HttpTransport::new(options)?);
    Ok(Arc::new(YouTubeCaptions::new(http, YouTubeOptions::default(), Arc::new(SystemClock::default()))))
}

/// The production supplier behind one proxy, without retries.
fn behind(proxy: &ReplayProxy) -> Result<Arc<dyn Supplier>> {
    supplier(options(&[proxy], proxy.ca_file()))
}

#[test]
fn youtube_recordings_have_video_and_expectations() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    assert!(recordings.all().len() >= 30);
    for recording in recordings.all() {
        assert!(!recording.expectations.is_empty(), "{} expects nothing", recording.name);
        VideoId::new(Platform::YouTube, recording.video.as_deref().context("a video")?)?;
    }
    Ok(())
}

#[test]
fn youtube_recording_files_are_all_used() -> Result<()> {
    let lists = folder().with_file_name("youtube-lists");
    Recordings::open(&lists)?;
    for (folder, part) in
        [(folder(), "player"), (folder(), "captions"), (lists.clone(), "playlist"), (lists, "channel")]
    {
        let index = std::fs::read_to_string(folder.join("index.toml"))?;
        for entry in std::fs::read_dir(folder.join(part))? {
            let name = format!("{part}/{}", entry?.file_name().to_string_lossy());
            assert!(index.contains(&format!("\"{name}\"")), "no recording uses {name}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn youtube_recordings_have_expected_outcomes() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    for recording in recordings.all() {
        for expectation in &recording.expectations {
            check(&recordings, recording, expectation).await.with_context(|| {
                format!("recording {} (lang {:?}): {}", recording.name, expectation.lang, recording.about)
            })?;
        }
    }
    Ok(())
}

async fn check(recordings: &Recordings, recording: &Recording, expect: &Expectation) -> Result<()> {
    let proxy = ReplayProxy::start(recordings.script_for(recording)?)?;
    let video = recording.video.as_deref().context("a video")?;
    let outcome = fetch(&behind(&proxy)?, video, expect.lang.as_deref()).await?;
    match (&expect.transcript, &expect.failure) {
        (Some(transcript), _) => check_transcript(&outcome, "youtube-captions", transcript)?,
        (None, Some(reason)) => check_failure(&outcome, reason)?,
        (None, None) => {}
    }
    let paths: Vec<_> = proxy.requests().iter().map(|request| request.path.clone()).collect();
    ensure!(proxy.unexpected().is_empty(), "unexpected requests: {:?}", proxy.unexpected());
    if let Some(requests) = expect.requests {
        ensure!(paths.len() == requests, "{} requests instead of {requests}: {paths:?}", paths.len());
    }
    // The limit of requests of one call, whatever its outcome.
    ensure!(paths.len() <= 12, "{} requests: {paths:?}", paths.len());
    ensure!(proxy.tunnels().iter().all(|tunnel| tunnel.granted), "tunnels: {:?}", proxy.tunnels());
    Ok(())
}
