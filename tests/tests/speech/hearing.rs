//! Real speech, heard by a real recogniser.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use transcript_core::transcript::{TrackKind, Transcript};
use upstream_reqwest::{SoundFormat, SpeechOptions};

use super::{
    recogniser::Recogniser,
    sounds::{sound, speech},
    stage::{Notes, heard, listen, listener, options, video},
};

const FOX: &str = "the quick brown fox jumps over the lazy dog";
const WEATHER: &str = "good morning everyone today we are going to talk about the weather";
const COUNTING: &str = "hello world this is a test of the speech recognition system one two three four five";

/// How many of a sentence's words are among these, of a hundred.
fn found(sentence: &str, text: &str) -> usize {
    let heard: HashSet<_> = text.split_whitespace().collect();
    let words: Vec<_> = sentence.split_whitespace().collect();
    words.iter().filter(|word| heard.contains(*word)).count() * 100 / words.len()
}

/// Fails unless a sentence is heard within these times, in seconds.
fn check(transcript: &Transcript, sentence: &str, from: f64, to: f64) -> Result<()> {
    let (from, to) = ((from * 1_000.0) as u64, (to * 1_000.0) as u64);
    let within: Vec<_> = transcript
        .segments
        .iter()
        .filter(|segment| segment.start_ms + 500 >= from && segment.end_ms() <= to + 500)
        .collect();
    let text: Vec<_> = within.iter().map(|segment| segment.text.as_str()).collect();
    ensure!(found(sentence, &text.join(" ")) >= 70, "{sentence:?} is not among {:?}", transcript.segments);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_is_heard_with_its_times() -> Result<()> {
    let mut recogniser = Recogniser::start()?;
    let file = speech(&[(0.0, FOX), (2.0, WEATHER), (2.0, COUNTING)])?;
    // 3 s, 6.2 s and 8 s with the pauses before them: three parts, cut in the pauses.
    let options = SpeechOptions {
        part: Duration::from_secs(9),
        format: SoundFormat::Ogg,
        concurrency: 2,
        ..options(&recogniser.base_url)
    };
    let proxy = video(file)?;
    let notes = Arc::new(Notes::default());
    let supplied = listen(&*listener(&proxy, options)?, Some("en-GB"), Arc::clone(&notes) as _).await??;

    let transcript = supplied.tracks.first().context("no transcript")?;
    transcript.check()?;
    assert_eq!(transcript.source, "speech-to-text");
    assert_eq!((transcript.track.language.as_str(), transcript.track.kind), ("en", TrackKind::Generated));
    assert!(transcript.track.original && transcript.track.is_generated());
    assert_eq!(transcript.author.as_deref(), Some("The Rope Walk"));
    check(transcript, FOX, 0.0, 3.2)?;
    check(transcript, WEATHER, 4.8, 9.6)?;
    check(transcript, COUNTING, 11.0, 18.0)?;
    let all: String = transcript.segments.iter().map(|segment| segment.text.clone() + " ").collect();
    let count = |word: &str| all.split_whitespace().filter(|other| *other == word).count();
    assert_eq!((count("fox"), count("weather"), count("recognition")), (1, 1, 1), "{all}");

    let mut seconds = 0.0;
    let parts = notes.all().last().context("no stages")?.2;
    assert!((2..=4).contains(&parts), "{:?}", notes.all());
    for _ in 0..parts {
        seconds += recogniser.line()?["seconds"].as_f64().context("no length")?;
    }
    let end = transcript.segments.last().context("no segments")?.end_ms() as f64 / 1_000.0;
    assert!(seconds >= end && seconds < end + 1.0, "all of it was sent once: {seconds} of {end}");
    let told: Vec<_> = notes.all().into_iter().map(|(name, ..)| name).collect();
    for stage in ["audio", "decoding", "transcribing"] {
        assert!(told.iter().any(|name| name == stage), "{stage}: {told:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn where_nobody_speaks_there_are_no_words() -> Result<()> {
    let recogniser = Recogniser::start()?;
    for source in ["anullsrc=r=16000:cl=mono,atrim=duration=4", "sine=frequency=440:duration=4"] {
        let error = heard(sound(source)?, options(&recogniser.base_url)).await?.err().context(source)?;
        assert_eq!(error.reason().as_str(), "no_captions", "{source}: {error:?}");
        assert_eq!(error.message(), "Nobody speaks in this video, as far as can be heard.");
    }
    Ok(())
}
