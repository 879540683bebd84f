//! Recordings of the repository: each is replayed and must have the expected outcome.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use verbatim_tests::replay::{
    ReplayProxy, ReplayResponse, Script,
    recordings::{Expectation, Recording, Recordings},
};

use super::supplier_calls::{SupplierBuilder, behind, check_failure, check_transcript, fetch};

/// The folder of a platform's recordings in the repository.
fn folder(platform: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(platform)
}

/// A proxy that replays one recording.
pub(crate) fn start_replay(platform: &str, name: &str) -> Result<ReplayProxy> {
    ReplayProxy::start(recorded_script(platform, name)?)
}

/// The requests and responses of one recording.
pub(crate) fn recorded_script(platform: &str, name: &str) -> Result<Script> {
    let recordings = Recordings::open(&folder(platform))?;
    recordings.script_for(recordings.find(name)?)
}

/// A response whose body is a file of the recordings.
pub(crate) fn read_recording(platform: &str, file: &str) -> Result<ReplayResponse> {
    let path = folder(platform).join(file);
    let body = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(ReplayResponse::bytes("text/html; charset=utf-8", body))
}

/// Fails unless every recording has the expected outcome and every file belongs to a recording.
pub(crate) async fn check_all(platform: &str, make: SupplierBuilder) -> Result<()> {
    let recordings = Recordings::open(&folder(platform))?;
    for recording in recordings.all() {
        ensure!(!recording.expectations.is_empty(), "{} expects nothing", recording.name);
        for expectation in &recording.expectations {
            check(&recordings, recording, expectation, make).await.with_context(|| {
                format!("recording {} (lang {:?}): {}", recording.name, expectation.lang, recording.about)
            })?;
        }
    }
    let index = std::fs::read_to_string(folder(platform).join("index.toml"))?;
    for part in std::fs::read_dir(folder(platform))? {
        let part = part?;
        if !part.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(part.path())? {
            let name =
                format!("{}/{}", part.file_name().to_string_lossy(), file?.file_name().to_string_lossy());
            ensure!(index.contains(&format!("\"{name}\"")), "no recording uses {name}");
        }
    }
    Ok(())
}

async fn check(
    recordings: &Recordings,
    recording: &Recording,
    expect: &Expectation,
    make: SupplierBuilder,
) -> Result<()> {
    let proxy = ReplayProxy::start(recordings.script_for(recording)?)?;
    let video = recording.video.as_deref().context("a video")?;
    let supplier = behind(make, &proxy)?;
    let outcome = fetch(&supplier, video, expect.lang.as_deref()).await?;
    match (&expect.transcript, &expect.failure) {
        (Some(transcript), _) => check_transcript(&outcome, &supplier.info().name, transcript)?,
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
