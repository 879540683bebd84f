//! The MCP tools, called by the official Model Context Protocol client over both of its transports.

pub(crate) mod client;
mod http;
mod jobs;
mod log;
mod memory;
mod stdio;

use anyhow::Result;
use tempfile::TempDir;

use crate::server::harness::{EXAMPLE, run_ok, verbatim};

/// A short video, and a long one.
const SHORT: &str = "L1ghth0use1";
const LONG: &str = "longlonglon";
/// Number of lines of the long video.
const LINES: usize = 2_000;

/// A data folder with both videos archived.
fn archive() -> Result<TempDir> {
    let data = TempDir::new()?;
    let import = |path: &str, video: &str, input: &[u8]| {
        let link = format!("https://youtu.be/{video}");
        let arguments = ["import", path, "--video", &link, "--lang", "en", "--title", "The lighthouse"];
        run_ok(verbatim(data.path(), &arguments), input)
    };
    import(EXAMPLE, SHORT, b"")?;
    import("-", LONG, srt((0..LINES).map(|n| format!("This is line {}.", n * n))).as_bytes())?;
    Ok(data)
}

/// A subtitle file with one line each second.
fn srt(lines: impl Iterator<Item = String>) -> String {
    let cue = |(n, line): (usize, String)| {
        let at = |ms: usize| format!("{:02}:{:02}:{:02},{ms:03}", n / 3_600, n / 60 % 60, n % 60);
        format!("{}\n{} --> {}\n{line}\n\n", n + 1, at(0), at(900))
    };
    lines.enumerate().map(cue).collect()
}

/// The text of a transcript's pages, without times and white space.
fn words(pages: &[serde_json::Value]) -> String {
    let lines = pages.iter().filter_map(|page| page["text"].as_str()).flat_map(str::lines);
    let spoken = lines.filter_map(|line| line.strip_prefix('[')?.split_once("] "));
    spoken.flat_map(|(_, text)| text.chars()).filter(|c| !c.is_whitespace()).collect()
}

/// The text of the long video.
fn long_words() -> String {
    (0..LINES).map(|n| format!("Thisisline{}.", n * n)).collect()
}
