//! What is left when nobody waits any more: no program and no file.

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
    sounds::tones,
    stage::{Notes, listen, listener, options, video},
};

/// More than any machine takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program in place of ffmpeg that never ends and has a child that never ends, and a pipe that both hold open.
fn stubborn(folder: &TempDir) -> Result<(PathBuf, PathBuf)> {
    let (program, pipe) = (folder.path().join("ffmpeg"), folder.path().join("pipe"));
    ensure!(Command::new("mkfifo").arg(&pipe).status()?.success(), "no pipe");
    let text = format!("exec 3>'{}'\nsleep 600 &\necho begun >&3\nwait\nsleep 600", pipe.display());
    write_script(&program, &text)?;
    Ok((program, pipe))
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_end_with_those_who_wait_for_them() -> Result<()> {
    let folder = TempDir::new()?;
    let (ffmpeg, pipe) = stubborn(&folder)?;
    let proxy = video(tones(4)?)?;
    let listener = listener(&proxy, SpeechOptions { ffmpeg, ..options("http://127.0.0.1:9/v1") })?;
    let work = tokio::spawn(async move { listen(&listener, None, Arc::new(Notes::default())).await.is_ok() });
    // It is open as soon as the program has begun, and at its end when the last one who holds it has ended.
    let opened = tokio::task::spawn_blocking(move || {
        let mut pipe = BufReader::new(fs::File::open(pipe)?);
        let mut line = String::new();
        pipe.read_line(&mut line)?;
        anyhow::Ok((pipe, line))
    });
    let (mut pipe, line) = timeout(PATIENCE, opened).await???;
    assert_eq!(line, "begun\n");
    work.abort();
    assert!(work.await.is_err_and(|end| end.is_cancelled()));
    let rest = tokio::task::spawn_blocking(move || pipe.read_to_end(&mut Vec::new()));
    assert_eq!(timeout(PATIENCE, rest).await???, 0);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_program_that_is_missing_is_told() -> Result<()> {
    let proxy = video(tones(4)?)?;
    let options = SpeechOptions { ffmpeg: "/no/such/ffmpeg".into(), ..options("http://127.0.0.1:9/v1") };
    let outcome = listen(&*listener(&proxy, options)?, None, Arc::new(Notes::default())).await?;
    let error = outcome.expect_err("no program reads it");
    assert_eq!(error.reason().as_str(), "misconfigured");
    assert!(error.message().contains("install ffmpeg"), "{error}");
    Ok(())
}
