//! The production supplier of YouTube's captions, through the replay proxy.

mod asking;
mod faults;
mod hosts;
mod recorded;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use transcript_core::video::{Platform, VideoId};
use verbatim_tests::replay::{
    ReplayProxy,
    recordings::{Expectation, Recording, Recordings},
};

use self::asking::{ask, behind, check_failure, check_transcript};

/// Our own recordings.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/youtube")
}

/// A proxy that plays one of our own recordings.
fn playing(name: &str) -> Result<ReplayProxy> {
    let recordings = Recordings::open(&folder())?;
    ReplayProxy::start(recordings.script_of(recordings.named(name)?)?)
}

#[test]
fn every_recording_is_about_a_video_and_expects_something() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    assert!(recordings.all().len() >= 30);
    for recording in recordings.all() {
        assert!(!recording.asks.is_empty(), "{} expects nothing", recording.name);
        VideoId::new(Platform::VideoSite, recording.video.as_deref().context("a video")?)?;
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

#[tokio::test]
async fn every_recording_comes_out_as_expected() -> Result<()> {
    let recordings = Recordings::open(&folder())?;
    for recording in recordings.all() {
        for expectation in &recording.asks {
            check(&recordings, recording, expectation).await.with_context(|| {
                format!("recording {} (lang {:?}): {}", recording.name, expectation.lang, recording.about)
            })?;
        }
    }
    Ok(())
}

async fn check(recordings: &Recordings, recording: &Recording, expect: &Expectation) -> Result<()> {
    let proxy = ReplayProxy::start(recordings.script_of(recording)?)?;
    let video = recording.video.as_deref().context("a video")?;
    let outcome = ask(&behind(&proxy)?, video, expect.lang.as_deref()).await?;
    match (&expect.transcript, &expect.failure) {
        (Some(transcript), _) => check_transcript(&outcome, transcript)?,
        (None, Some(reason)) => check_failure(&outcome, reason)?,
        (None, None) => {}
    }
    let made: Vec<_> = proxy.requests().iter().map(|request| request.path.clone()).collect();
    ensure!(proxy.unexpected().is_empty(), "unexpected requests: {:?}", proxy.unexpected());
    if let Some(requests) = expect.requests {
        ensure!(made.len() == requests, "{} requests instead of {requests}: {made:?}", made.len());
    }
    // However it goes: that is what one look-up may ask.
    ensure!(made.len() <= 12, "{} requests: {made:?}", made.len());
    ensure!(proxy.tunnels().iter().all(|tunnel| tunnel.granted), "tunnels: {:?}", proxy.tunnels());
    Ok(())
}
