//! Asking the production supplier through proxies.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, Supplied, Supplier, SupplyError, Watcher},
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use upstream_reqwest::{Http, HttpOptions, YouTubeCaptions, YouTubeOptions};
use verbatim::SystemClock;
use verbatim_tests::replay::{ReplayProxy, recordings::ExpectedTranscript};

/// How long a supplier has for one answer. No test comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of asking.
pub(crate) type Outcome = Result<Supplied, SupplyError>;

/// Somebody who waits to the end and wants no news.
#[derive(Debug)]
struct Patient;

impl Watcher for Patient {
    fn stage(&self, _name: &str, _done: u64, _of: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The options of a transport that goes through these proxies and trusts this certificate.
///
/// There are no retries, and the times are long enough for a busy machine: who tests those says so.
pub(crate) fn options(proxies: &[&ReplayProxy], ca_file: &Path) -> HttpOptions {
    HttpOptions {
        proxies: proxies.iter().map(|proxy| proxy.url()).collect(),
        ca_file: Some(ca_file.to_owned()),
        timeout: Duration::from_secs(30),
        retries: 0,
        ..HttpOptions::default()
    }
}

/// The supplier of production with this transport.
pub(crate) fn supplier(options: HttpOptions) -> Result<YouTubeCaptions> {
    let http = Arc::new(Http::new(options)?);
    Ok(YouTubeCaptions::new(http, YouTubeOptions::default(), Arc::new(SystemClock::default())))
}

/// The supplier of production behind one proxy, without retries.
pub(crate) fn behind(proxy: &ReplayProxy) -> Result<YouTubeCaptions> {
    supplier(options(&[proxy], proxy.ca_file()))
}

/// Asks for a video's transcript: the default one, or one in a language.
pub(crate) async fn ask(supplier: &YouTubeCaptions, video: &str, lang: Option<&str>) -> Result<Outcome> {
    ask_within(supplier, video, lang, PATIENCE).await
}

/// Asks for a video's transcript, with a deadline.
pub(crate) async fn ask_within(
    supplier: &YouTubeCaptions,
    video: &str,
    lang: Option<&str>,
    patience: Duration,
) -> Result<Outcome> {
    let wish = match lang {
        Some(tag) => Wish::Language(LanguageTag::parse(tag).ok().context("a language tag")?),
        None => Wish::Default,
    };
    let video = VideoId::new(Platform::VideoSite, video)?;
    let ask = Ask { video, wish, deadline: SystemClock::default().now().plus(patience) };
    Ok(supplier.supply(ask, Arc::new(Patient)).await)
}

/// The lasting name of the reason of a failure; `transcript` where one came.
pub(crate) fn reason(outcome: &Outcome) -> &'static str {
    outcome.as_ref().map_or_else(|error| error.reason().as_str(), |_| "transcript")
}

/// Fails unless a failure came for this reason, with a sentence for people.
pub(crate) fn check_failure(outcome: &Outcome, expect: &str) -> Result<()> {
    ensure!(reason(outcome) == expect, "{} came instead of {expect}: {outcome:?}", reason(outcome));
    if let Err(error) = outcome {
        let message = error.message();
        ensure!(message.ends_with('.') && !message.contains("://"), "no sentence for people: {message}");
    }
    Ok(())
}

/// Fails unless the expected transcript came.
pub(crate) fn check_transcript(outcome: &Outcome, expect: &ExpectedTranscript) -> Result<()> {
    let supplied = outcome.as_ref().map_err(|error| anyhow::anyhow!("{error:?} came instead"))?;
    let transcript = supplied.tracks.first().context("no transcript at all")?;
    let track = &transcript.track;
    ensure!(track.language.as_str() == expect.language, "the language is {}", track.language.as_str());
    ensure!(track.kind.as_str() == expect.kind, "the kind is {}", track.kind.as_str());
    ensure!(transcript.source == "youtube-captions", "the source is {}", transcript.source);
    let segments = &transcript.segments;
    ensure!(segments.len() == expect.segments, "{} segments: {segments:?}", segments.len());
    let first = segments.first().context("no segments")?;
    ensure!(first.text.starts_with(&expect.first), "the first segment is {first:?}");
    ensure!(segments.is_sorted_by_key(|segment| segment.start_ms), "out of order: {segments:?}");
    if let Some(start_ms) = expect.start_ms {
        ensure!(first.start_ms == start_ms, "the first segment starts at {}", first.start_ms);
    }
    if let Some(end_ms) = expect.end_ms {
        let end = segments.last().map(|segment| segment.end_ms());
        ensure!(end == Some(end_ms), "the last segment ends at {end:?}");
    }
    if let Some(title) = &expect.title {
        ensure!(transcript.title.as_ref() == Some(title), "the title is {:?}", transcript.title);
    }
    if let Some(tracks) = &expect.tracks {
        let known: Vec<_> = supplied.known_tracks.iter().map(|track| track.language.as_str()).collect();
        ensure!(known == *tracks, "the tracks are {known:?}");
    }
    Ok(())
}
