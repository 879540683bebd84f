//! Our own recordings of a platform: each is played, and must come out as its row says.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use verbatim_tests::replay::{
    Answer, ReplayProxy,
    recordings::{Expectation, Recording, Recordings},
};

use super::asking::{Maker, ask, behind, check_failure, check_transcript};

/// Our own recordings of a platform.
fn folder(platform: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(platform)
}

/// A proxy that plays one of our own recordings.
pub(crate) fn playing(platform: &str, name: &str) -> Result<ReplayProxy> {
    let recordings = Recordings::open(&folder(platform))?;
    ReplayProxy::start(recordings.script_of(recordings.named(name)?)?)
}

/// An answer with a file of our own recordings as its body.
pub(crate) fn recorded(platform: &str, file: &str) -> Result<Answer> {
    let path = folder(platform).join(file);
    let body = std::fs::read(&path).with_context(|| format!("{} cannot be read", path.display()))?;
    Ok(Answer::bytes("text/html; charset=utf-8", body))
}

/// Fails unless every recording comes out as expected and every file is used by one.
pub(crate) async fn check_all(platform: &str, make: Maker) -> Result<()> {
    let recordings = Recordings::open(&folder(platform))?;
    for recording in recordings.all() {
        ensure!(!recording.asks.is_empty(), "{} expects nothing", recording.name);
        for expectation in &recording.asks {
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
    make: Maker,
) -> Result<()> {
    let proxy = ReplayProxy::start(recordings.script_of(recording)?)?;
    let video = recording.video.as_deref().context("a video")?;
    let supplier = behind(make, &proxy)?;
    let outcome = ask(&supplier, video, expect.lang.as_deref()).await?;
    match (&expect.transcript, &expect.failure) {
        (Some(transcript), _) => check_transcript(&outcome, &supplier.card().name, transcript)?,
        (None, Some(reason)) => check_failure(&outcome, reason)?,
        (None, None) => {}
    }
    let made: Vec<_> = proxy.requests().iter().map(|request| request.path.clone()).collect();
    ensure!(proxy.unexpected().is_empty(), "unexpected requests: {:?}", proxy.unexpected());
    if let Some(requests) = expect.requests {
        ensure!(made.len() == requests, "{} requests instead of {requests}: {made:?}", made.len());
    }
    ensure!(proxy.tunnels().iter().all(|tunnel| tunnel.granted), "tunnels: {:?}", proxy.tunnels());
    Ok(())
}
