//! How large transcripts are, beside the JSON of their segments.

use std::{io::Read as _, path::Path, time::Instant};

use anyhow::{Context as _, Result, ensure};
use storage_sqlx::{
    SqliteArchive, SqliteOptions,
    cold::{Dictionary, Packer, unpack},
};
use transcript_core::{
    archive::{Archive as _, content_digest},
    captions::{CaptionFormat, parse_as},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
    wire::segments,
};

use super::{compact, keep_all};
use crate::{
    report::{Goal, line, ratio},
    talk::{Surprise, Talk, keep, video},
};

/// Half an hour of speech.
const CAPTIONS: usize = 690;
const COUNT: u64 = 200;

/// What some transcripts take.
#[derive(Debug, Default)]
struct Taken {
    json: u64,
    sent: u64,
    alone: u64,
    with: u64,
}

fn take(transcripts: &[Transcript]) -> Result<Taken> {
    let (mut alone, mut with) = (Packer::new(Dictionary::None)?, Packer::new(Dictionary::NEWEST)?);
    let mut taken = Taken::default();
    for transcript in transcripts {
        let json = segments::write(&transcript.segments)?;
        taken.json += json.len() as u64;
        taken.sent += zstd::bulk::compress(&json, 3)?.len() as u64;
        for (packer, bytes) in [(&mut alone, &mut taken.alone), (&mut with, &mut taken.with)] {
            let packed = packer.pack(transcript)?;
            ensure!(unpack(&packed, &content_digest(transcript))? == *transcript, "it does not come back");
            *bytes += packed.len() as u64;
        }
    }
    Ok(taken)
}

fn tell(what: &str, transcripts: &[Transcript], goals: [Goal; 2]) -> Result<()> {
    let taken = take(transcripts)?;
    let to_json = |bytes: u64| bytes as f64 / taken.json as f64;
    line(&format!("{what}: JSON"), taken.json as f64 / transcripts.len() as f64 / 1024.0, "KiB");
    ratio(&format!("{what}: as it is sent, to JSON"), to_json(taken.sent), Goal::None);
    ratio(&format!("{what}: compact without a dictionary, to JSON"), to_json(taken.alone), goals[0]);
    ratio(&format!("{what}: compact with the dictionary, to JSON"), to_json(taken.with), goals[1]);
    Ok(())
}

/// The recorded captions of a machine that lie beside the checkout.
fn recorded(folder: &Path) -> Result<Transcript> {
    let bytes = std::fs::read(folder.join("youtube/timedtext/asr_50min_acAsrConf.json3"))?;
    Ok(Transcript {
        video: video(0)?,
        title: None,
        author: None,
        duration_ms: None,
        track: TrackInfo::new(LanguageTag::english(), TrackKind::Generated),
        source: "youtube-captions".to_owned(),
        segments: parse_as(CaptionFormat::Json3, &bytes).map_err(|error| anyhow::anyhow!("{error:?}"))?,
    })
}

/// How many bytes of a closed file's pages are in use, by SQLite's header: the size of a page, how many there are, and
/// how many of them are free.
fn used(file: &Path) -> Result<u64> {
    let mut header = [0; 40];
    std::fs::File::open(file)?.read_exact(&mut header)?;
    let number = |at: usize| {
        u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    let page = u64::from(u16::from_be_bytes([header[16], header[17]]));
    Ok(page * (number(28) - number(36)))
}

/// Prints what transcripts take, by themselves and in a file.
pub(super) async fn run(folder: &Path) -> Result<()> {
    let talk = Talk::new();
    let transcripts = (0..COUNT).map(|number| talk.transcript(number, CAPTIONS, Surprise::Many));
    let transcripts = transcripts.collect::<Result<Vec<_>>>()?;
    let text: Vec<_> = transcripts.iter().map(text).collect();
    let of_text = |text: &String| Ok(zstd::bulk::compress(text.as_bytes(), 19)?.len());
    let compressed: usize = text.iter().map(of_text).sum::<Result<_>>()?;
    let length: usize = text.iter().map(String::len).sum();
    ratio("the text alone, zstd 19 (prose: 0.40)", compressed as f64 / length as f64, Goal::None);
    tell("half an hour", &transcripts, [Goal::AtMost(0.24), Goal::AtMost(0.20)])?;
    let short = (0..COUNT).map(|number| talk.transcript(number, 20, Surprise::Many));
    tell("a minute", &short.collect::<Result<Vec<_>>>()?, [Goal::None; 2])?;
    match std::env::var_os("VERBATIM_RECORDINGS") {
        Some(folder) => {
            let recorded = recorded(Path::new(&folder)).context("the recordings")?;
            tell("50 minutes, recorded", &[recorded], [Goal::None, Goal::AtMost(0.18)])?;
        }
        None => println!("VERBATIM_RECORDINGS is not set: nothing recorded is measured"),
    }

    let file = folder.join("size.db");
    let archive = SqliteArchive::open(SqliteOptions::new(&file)).await?;
    let json: usize = transcripts
        .iter()
        .map(|talk| anyhow::Ok(segments::write(&talk.segments)?.len()))
        .sum::<Result<_>>()?;
    keep_all(&archive, transcripts.into_iter().map(|talk| Ok(keep(talk)))).await?;
    archive.close().await;
    let before = used(&file)?;
    let archive = SqliteArchive::open(SqliteOptions::new(&file)).await?;
    let begun = Instant::now();
    let compacted = compact(&archive).await?;
    let seconds = begun.elapsed().as_secs_f64();
    ensure!(compacted.compacted == COUNT && archive.stats().await?.compact == COUNT, "{compacted:?}");
    line("half an hour: compacted", COUNT as f64 / seconds, "a second");
    archive.close().await;
    let to_json = |bytes: u64| bytes as f64 / json as f64;
    ratio("half an hour: all pages of the file before, to JSON", to_json(before), Goal::None);
    ratio("half an hour: all pages of the file after, to JSON", to_json(used(&file)?), Goal::None);
    Ok(())
}

fn text(transcript: &Transcript) -> String {
    transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ")
}
