//! Media files made by ffmpeg: synthesized speech, and tones.

use std::{fs, process::Command};

use anyhow::{Result, ensure};
use tempfile::TempDir;

use crate::install::installed;

/// The MP4 file that ffmpeg makes with these arguments.
pub(super) fn ffmpeg(arguments: &[&str]) -> Result<Vec<u8>> {
    installed("speech")?;
    let folder = TempDir::new()?;
    let file = folder.path().join("video.mp4");
    let mut command = Command::new("ffmpeg");
    let output = command.args(["-nostdin", "-v", "error"]).args(arguments).arg(&file).output()?;
    ensure!(output.status.success(), "ffmpeg: {}", String::from_utf8_lossy(&output.stderr));
    Ok(fs::read(file)?)
}

/// A video with these spoken sentences, each after a pause in seconds, as an MP4 file.
pub(super) fn speech(sentences: &[(f64, &str)]) -> Result<Vec<u8>> {
    let mut graph = String::new();
    for (index, (pause, sentence)) in sentences.iter().enumerate() {
        graph +=
            &format!("flite=text='{sentence}':voice=slt,adelay={}[s{index}];", (pause * 1_000.0).round());
    }
    let all: String = (0..sentences.len()).map(|index| format!("[s{index}]")).collect();
    graph += &format!("{all}concat=n={}:v=0:a=1[a]", sentences.len());
    let picture = ["-f", "lavfi", "-i", "color=black:s=64x64:r=2", "-filter_complex", &graph];
    let coded = ["-map", "0:v", "-map", "[a]", "-shortest", "-c:v", "mpeg4", "-c:a", "aac", "-b:a", "64k"];
    ffmpeg(&[&picture[..], &coded].concat())
}

/// Tones of 1.5 s with pauses of 0.5 s, for this many seconds, as an MP4 file.
pub(super) fn tones(seconds: u32) -> Result<Vec<u8>> {
    let source = format!("aevalsrc=0.3*sin(440*2*PI*t)*lt(mod(t\\,2)\\,1.5):s=16000:d={seconds}");
    sound(&source)
}

/// The output of an ffmpeg source, as an MP4 file.
pub(super) fn sound(source: &str) -> Result<Vec<u8>> {
    ffmpeg(&["-f", "lavfi", "-i", source, "-c:a", "aac", "-b:a", "32k"])
}
