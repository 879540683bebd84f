//! A cancelled transcription leaves no program and no file.

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::Duration,
};

use anyhow::{Result, ensure};
use tempfile::TempDir;
use tokio::time::timeout;
use upstream_reqwest::SpeechOptions;
use verbatim_tests::write_script;

use super::{
    fixture::{RecordedStages, options, transcribe, transcriber, video},
    sounds::tones,
};

/// Longer than any machine needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A replacement for ffmpeg that never ends, and a pipe that it and its endless child keep open.
fn write_endless_program(folder: &TempDir) -> Result<(PathBuf, PathBuf)> {
    let (program, pipe) = (folder.path().join("ffmpeg"), folder.path().join("pipe"));
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe");
    let text = format!("exec 3>'{}'\nsleep 600 &\necho started >&3\nwait\nsleep 600", pipe.display());
    write_script(&program, &text)?;
    Ok((program, pipe))
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_cancelled_call_ends_its_programs() -> Result<()> {
    let folder = TempDir::new()?;
    let (ffmpeg, pipe) = write_endless_program(&folder)?;
    let proxy = video(tones(4)?)?;
    let transcriber = transcriber(&proxy, SpeechOptions { ffmpeg, ..options("http://127.0.0.1:9/v1") })?;
    let work = tokio::spawn(async move {
        transcribe(&transcriber, None, Arc::new(RecordedStages::default())).await.is_ok()
    });
    // The pipe opens when the program has started, and ends when the last process that holds it has exited.
    let opened = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(fs::File::open(pipe)?);
        let mut line = String::new();
        pipe.read_line(&mut line)?;
        anyhow::Ok((pipe, line))
    });
    let (mut pipe, line) = timeout(TIMEOUT, opened).await???;
    assert_eq!(line, "started\n");
    work.abort();
    assert!(work.await.is_err_and(|end| end.is_cancelled()));
    let rest = tokio::task::spawn_blocking(move || pipe.read_to_end(&mut Vec::new()));
    assert_eq!(timeout(TIMEOUT, rest).await???, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_missing_ffmpeg_is_misconfigured() -> Result<()> {
    let proxy = video(tones(4)?)?;
    let options = SpeechOptions { ffmpeg: "/no/such/ffmpeg".into(), ..options("http://127.0.0.1:9/v1") };
    let outcome =
        transcribe(&*transcriber(&proxy, options)?, None, Arc::new(RecordedStages::default())).await?;
    let error = outcome.expect_err("ffmpeg is missing");
    assert_eq!(error.reason().as_str(), "misconfigured");
    assert!(error.message().contains("install ffmpeg"), "{error}");
    Ok(())
}
