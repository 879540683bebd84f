//! Start, memory, link parsing, and a caption file of 50 minutes.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use anyhow::Result;
use http_body_util::BodyExt as _;
use serde_json::json;
use tempfile::TempDir;
use transcript_core::{
    captions::{self, write_srt, write_webvtt},
    transcript::{Transcript, markdown, prose},
    video::VideoLink,
    wire::lookup::Segment,
};
use url::Url;

use crate::{
    corpus::{self, WordSource},
    http_client::{HttpClient, get, text},
    lookup::fill,
    process::{serve, wrk},
    report::{Goal, line, median, ratio},
};

const ROUNDS: usize = 7;
const VIDEOS: u64 = 200;

/// Seconds of one call: the median of rounds of at least 50 ms each.
fn time_of<T>(mut work: impl FnMut() -> T) -> f64 {
    let mut one = || {
        let started = Instant::now();
        let mut count = 0_u32;
        while started.elapsed() < Duration::from_millis(50) {
            black_box(work());
            count += 1;
        }
        started.elapsed().as_secs_f64() / f64::from(count)
    };
    median((0..ROUNDS).map(|_| one()).collect())
}

async fn server() -> Result<()> {
    let folder = TempDir::new()?;
    fill(folder.path(), VIDEOS).await?;
    let mut starts = Vec::new();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        let server = serve(folder.path(), &[])?;
        text(&HttpClient::new(), server.address(), "/api/transcript?v=bench-00000", &[]).await?;
        starts.push(started.elapsed().as_secs_f64() * 1e3);
    }
    line("start to first response", median(starts), "ms");
    let server = serve(folder.path(), &[])?;
    text(&HttpClient::new(), server.address(), "/health", &[]).await?;
    line("memory, idle", server.resident_mib()?, "MiB");
    let mut count = 0;
    while count < 10_000 {
        count += wrk(&server, "/", &["accept-encoding: zstd"], Some(VIDEOS), Duration::from_secs(1))?.0;
    }
    line(&format!("memory, after {count} lookups of {VIDEOS} videos"), server.resident_mib()?, "MiB");
    Ok(())
}

/// Memory after some lookups of many videos, in each encoding.
async fn memory_of_many() -> Result<()> {
    const MANY: u64 = 2_000;
    const LOOKUPS: u64 = 10_000;
    let folder = TempDir::new()?;
    fill(folder.path(), MANY).await?;
    for encoding in ["zstd", "gzip", "identity"] {
        let server = serve(folder.path(), &[])?;
        let (client, mut sequence) = (HttpClient::new(), corpus::Lcg::new(1));
        for _ in 0..LOOKUPS {
            let path = format!("/api/transcript?v=bench-{:05}", sequence.below(MANY));
            let response = get(&client, server.address(), &path, &[("accept-encoding", encoding)]).await?;
            response.into_body().collect().await?;
        }
        let what = format!("memory, after {LOOKUPS} lookups of {MANY} videos, {encoding}");
        line(&what, server.resident_mib()?, "MiB");
    }
    Ok(())
}

fn links() -> Result<()> {
    const LINKS: [&str; 6] = [
        "https://www.youtube.com/watch?v=dQw4w9WgXcQ&t=42s",
        "https://youtu.be/dQw4w9WgXcQ?si=0123456789abcdef",
        "https://www.tiktok.com/@someone/video/7106594312292453675",
        "https://www.instagram.com/reel/CqvSXXXXXXX/?igsh=abc",
        "https://x.com/someone/status/1234567890123456789?s=20",
        "https://m.youtube.com/shorts/dQw4w9WgXcQ",
    ];
    for link in LINKS {
        VideoLink::parse(link)?;
    }
    let count = LINKS.len() as f64;
    let ours = time_of(|| LINKS.map(VideoLink::parse)) / count;
    let bare = time_of(|| LINKS.map(Url::parse)) / count;
    line("links parsed", 1.0 / ours, "a second");
    ratio("links: time to url::Url::parse alone", ours / bare, Goal::None);
    Ok(())
}

fn caption_file() -> Result<()> {
    let mut word_source = WordSource::new(3);
    // Like automatic captions, each word has its own time.
    let event = |n: u64| {
        let words: Vec<_> = (0..8)
            .map(|word| json!({ "utf8": format!("{} ", word_source.generate(1)), "tOffsetMs": word * 300, "acAsrConf": 0 }))
            .collect();
        json!({ "tStartMs": n * 2_850, "dDurationMs": 2_800, "wWinId": 1, "segs": words })
    };
    let events: Vec<_> = (0..1_053).map(event).collect();
    let file = json!({ "wireMagic": "pb3", "events": events }).to_string();
    let segments = captions::parse(file.as_bytes())?;
    line("caption file of 50 minutes", file.len() as f64 / 1024.0, "KiB");
    let ours = time_of(|| captions::parse(file.as_bytes()));
    let bare = time_of(|| serde_json::from_str::<serde_json::Value>(&file));
    line("parsed", ours * 1e6, "µs");
    ratio("parsed: time to serde_json::Value", ours / bare, Goal::None);
    let transcript = Transcript { segments, ..corpus::transcript(0)? };
    let segments = &transcript.segments;
    let wire = || serde_json::to_vec(&segments.iter().map(Segment::from).collect::<Vec<_>>());
    let copied = time_of(|| segments.clone());
    let forms: [(&str, f64); 5] = [
        ("as JSON", time_of(wire)),
        ("as prose", time_of(|| prose(segments))),
        ("as Markdown", time_of(|| markdown(&transcript))),
        ("as SRT", time_of(|| write_srt(segments))),
        ("as WebVTT", time_of(|| write_webvtt(segments))),
    ];
    for (form, time) in forms {
        line(&format!("rendered {form}"), time * 1e6, "µs");
        ratio(&format!("rendered {form}: time to a copy"), time / copied, Goal::None);
    }
    Ok(())
}

/// Runs all budget measurements.
pub(crate) async fn run() -> Result<()> {
    server().await?;
    memory_of_many().await?;
    links()?;
    caption_file()
}
