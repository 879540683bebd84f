//! The size of stored transcripts compared with the JSON of their segments.

use std::{io::Read as _, path::Path, time::Instant};

use anyhow::{Context as _, Result, ensure};
use storage_sqlx::{
    SqliteArchive, SqliteOptions,
    cold::{Dictionary, Packer, unpack},
};
use transcript_core::{
    archive::{Archive as _, content_digest},
    body::segments,
    captions::{CaptionFormat, parse_as},
    transcript::{LanguageTag, TrackInfo, TrackKind, Transcript},
};

use super::{compact, put_all};
use crate::{
    corpus::as_default,
    markov_text::{MarkovText, TalkSurprise, video},
    report::{Goal, line, ratio},
};

/// Half an hour of speech.
const CAPTIONS: usize = 690;
const COUNT: u64 = 200;

/// Bytes of some transcripts in each form.
#[derive(Debug, Default)]
struct DiskUsage {
    json: u64,
    sent: u64,
    without_dictionary: u64,
    with_dictionary: u64,
}

fn measure_bytes(transcripts: &[Transcript]) -> Result<DiskUsage> {
    let (mut without_dictionary, mut with_dictionary) =
        (Packer::new(Dictionary::None)?, Packer::new(Dictionary::NEWEST)?);
    let mut usage = DiskUsage::default();
    for transcript in transcripts {
        let json = segments::write(&transcript.segments)?;
        usage.json += json.len() as u64;
        usage.sent += zstd::bulk::compress(&json, 3)?.len() as u64;
        for (packer, bytes) in [
            (&mut without_dictionary, &mut usage.without_dictionary),
            (&mut with_dictionary, &mut usage.with_dictionary),
        ] {
            let packed = packer.pack(transcript)?;
            ensure!(
                unpack(&packed, None, &content_digest(transcript))? == *transcript,
                "the unpacked transcript differs"
            );
            *bytes += packed.len() as u64;
        }
    }
    Ok(usage)
}

fn print_usage(name: &str, transcripts: &[Transcript], goals: [Goal; 2]) -> Result<()> {
    let usage = measure_bytes(transcripts)?;
    let to_json = |bytes: u64| bytes as f64 / usage.json as f64;
    line(&format!("{name}: JSON"), usage.json as f64 / transcripts.len() as f64 / 1024.0, "KiB");
    ratio(&format!("{name}: as sent, to JSON"), to_json(usage.sent), Goal::None);
    ratio(
        &format!("{name}: compact without a dictionary, to JSON"),
        to_json(usage.without_dictionary),
        goals[0],
    );
    ratio(&format!("{name}: compact with the dictionary, to JSON"), to_json(usage.with_dictionary), goals[1]);
    Ok(())
}

/// Prints by how much the times of words enlarge an archive, before and after compaction.
///
/// The parser has to keep them; for a source without them nothing is printed.
async fn print_words(folder: &Path, transcript: &Transcript) -> Result<()> {
    if !transcript.has_words() {
        return Ok(());
    }
    let mut bytes = Vec::new();
    for (name, transcript) in [("bare", without_words(transcript.clone())), ("words", transcript.clone())] {
        let archive = SqliteArchive::open(SqliteOptions::new(folder.join(format!("{name}.db")))).await?;
        archive.put(as_default(transcript)).await?;
        let before = archive.stats().await?.bytes;
        compact(&archive).await?;
        bytes.push([before, archive.stats().await?.bytes]);
        archive.close().await;
    }
    for (index, form) in ["as sent", "compact"].into_iter().enumerate() {
        let growth = bytes[1][index] as f64 / bytes[0][index] as f64 - 1.0;
        ratio(
            &format!("50 minutes, recorded: words, to the transcript {form}"),
            growth,
            Goal::AtMost(1.0 / 3.0),
        );
    }
    Ok(())
}

fn without_words(mut transcript: Transcript) -> Transcript {
    transcript.segments.iter_mut().for_each(|segment| segment.words.clear());
    transcript
}

/// The recorded generated captions from outside the checkout.
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

/// Bytes of a closed file's pages that are in use.
///
/// SQLite's header has the page size, the number of pages, and the number of free ones.
pub(crate) fn used_bytes(file: &Path) -> Result<u64> {
    let mut header = [0; 40];
    std::fs::File::open(file)?.read_exact(&mut header)?;
    let number = |at: usize| {
        u64::from(u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]))
    };
    let page = u64::from(u16::from_be_bytes([header[16], header[17]]));
    Ok(page * (number(28) - number(36)))
}

/// Prints the size of transcripts, one at a time and in a database file.
pub(super) async fn run(folder: &Path) -> Result<()> {
    let talk = MarkovText::new();
    let transcripts = (0..COUNT).map(|number| talk.transcript(number, CAPTIONS, TalkSurprise::Many));
    let transcripts = transcripts.collect::<Result<Vec<_>>>()?;
    let text: Vec<_> = transcripts.iter().map(text).collect();
    let compressed_len = |text: &String| Ok(zstd::bulk::compress(text.as_bytes(), 19)?.len());
    let compressed: usize = text.iter().map(compressed_len).sum::<Result<_>>()?;
    let length: usize = text.iter().map(String::len).sum();
    ratio("the text alone, zstd 19 (prose: 0.40)", compressed as f64 / length as f64, Goal::None);
    print_usage("half an hour", &transcripts, [Goal::AtMost(0.24), Goal::AtMost(0.20)])?;
    let short = (0..COUNT).map(|number| talk.transcript(number, 20, TalkSurprise::Many));
    print_usage("a minute", &short.collect::<Result<Vec<_>>>()?, [Goal::None; 2])?;
    match std::env::var_os("VERBATIM_RECORDINGS") {
        Some(recordings) => {
            let recorded = recorded(Path::new(&recordings)).context("the recordings")?;
            print_words(folder, &recorded).await?;
            let bare = without_words(recorded);
            print_usage("50 minutes, recorded", &[bare], [Goal::None, Goal::AtMost(0.18)])?;
        }
        None => println!("VERBATIM_RECORDINGS is not set: recorded captions are not measured"),
    }

    let file = folder.join("size.db");
    let archive = SqliteArchive::open(SqliteOptions::new(&file)).await?;
    let json: usize = transcripts
        .iter()
        .map(|talk| anyhow::Ok(segments::write(&talk.segments)?.len()))
        .sum::<Result<_>>()?;
    put_all(&archive, transcripts.into_iter().map(|talk| Ok(as_default(talk)))).await?;
    archive.close().await;
    let before = used_bytes(&file)?;
    let archive = SqliteArchive::open(SqliteOptions::new(&file)).await?;
    let started = Instant::now();
    let compacted = compact(&archive).await?;
    let seconds = started.elapsed().as_secs_f64();
    ensure!(compacted.compacted == COUNT && archive.stats().await?.compact == COUNT, "{compacted:?}");
    line("half an hour: compacted", COUNT as f64 / seconds, "a second");
    archive.close().await;
    let to_json = |bytes: u64| bytes as f64 / json as f64;
    ratio("half an hour: all pages of the file before, to JSON", to_json(before), Goal::None);
    ratio("half an hour: all pages of the file after, to JSON", to_json(used_bytes(&file)?), Goal::None);
    Ok(())
}

fn text(transcript: &Transcript) -> String {
    transcript.segments.iter().map(|segment| segment.text.as_str()).collect::<Vec<_>>().join(" ")
}
