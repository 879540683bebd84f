//! Real speech, transcribed by a real recognizer.

use std::{collections::HashSet, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use transcript_core::transcript::{TrackKind, Transcript};
use upstream_reqwest::{AudioFormat, SpeechOptions};

use super::{
    fixture::{RecordedStages, options, transcribe, transcribe_file, transcriber, video},
    recogniser::SpeechRecognizer,
    sounds::{sound, speech},
};

const FOX: &str = "the quick brown fox jumps over the lazy dog";
const WEATHER: &str = "good morning everyone today we are going to talk about the weather";
const COUNTING: &str = "hello world this is a test of the speech recognition system one two three four five";

/// Percentage of a sentence's words that occur in a text.
fn word_share(sentence: &str, text: &str) -> usize {
    let spoken: HashSet<_> = text.split_whitespace().collect();
    let words: Vec<_> = sentence.split_whitespace().collect();
    words.iter().filter(|word| spoken.contains(*word)).count() * 100 / words.len()
}

/// Fails unless a sentence is transcribed within these times, in seconds.
fn check(transcript: &Transcript, sentence: &str, from: f64, to: f64) -> Result<()> {
    let (from, to) = ((from * 1_000.0) as u64, (to * 1_000.0) as u64);
    let within: Vec<_> = transcript
        .segments
        .iter()
        .filter(|segment| segment.start_ms + 500 >= from && segment.end_ms() <= to + 500)
        .collect();
    let text: Vec<_> = within.iter().map(|segment| segment.text.as_str()).collect();
    ensure!(
        word_share(sentence, &text.join(" ")) >= 70,
        "{sentence:?} is not among {:?}",
        transcript.segments
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_recognized_text_has_correct_times() -> Result<()> {
    let mut recognizer = SpeechRecognizer::start()?;
    let file = speech(&[(0.0, FOX), (2.0, WEATHER), (2.0, COUNTING)])?;
    // 3 s, 6.2 s and 8 s with the pauses before them: three chunks, cut in the pauses.
    let options = SpeechOptions {
        part: Duration::from_secs(9),
        format: AudioFormat::Ogg,
        concurrency: 2,
        ..options(&recognizer.base_url)
    };
    let proxy = video(file)?;
    let stages = Arc::new(RecordedStages::default());
    let supplied =
        transcribe(&*transcriber(&proxy, options)?, Some("en-GB"), Arc::clone(&stages) as _).await??;

    let transcript = supplied.transcripts.first().context("no transcript")?;
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
    let parts = stages.all().last().context("no stages")?.2;
    assert!((2..=4).contains(&parts), "{:?}", stages.all());
    for _ in 0..parts {
        seconds += recognizer.next_line()?["seconds"].as_f64().context("no length")?;
    }
    let end = transcript.segments.last().context("no segments")?.end_ms() as f64 / 1_000.0;
    assert!(seconds >= end && seconds < end + 1.0, "not all of it was sent once: {seconds} of {end}");
    let stage_names: Vec<_> = stages.all().into_iter().map(|(name, ..)| name).collect();
    for stage in ["audio", "decoding", "transcribing"] {
        assert!(stage_names.iter().any(|name| name == stage), "{stage}: {stage_names:?}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn speech_audio_without_voice_has_no_captions() -> Result<()> {
    let recognizer = SpeechRecognizer::start()?;
    for source in ["anullsrc=r=16000:cl=mono,atrim=duration=4", "sine=frequency=440:duration=4"] {
        let error =
            transcribe_file(sound(source)?, options(&recognizer.base_url)).await?.err().context(source)?;
        assert_eq!(error.reason().as_str(), "no_captions", "{source}: {error:?}");
        assert_eq!(error.message(), "This video contains no recognizable speech.");
    }
    Ok(())
}
