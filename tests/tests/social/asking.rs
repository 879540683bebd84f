//! Asking a production supplier through proxies, whichever platform it is of.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, ensure};
use transcript_core::{
    Clock,
    archive::Wish,
    supplier::{Ask, Supplied, Supplier, SupplyError, Watcher},
    transcript::LanguageTag,
    video::VideoId,
};
use upstream_reqwest::{Http, HttpOptions};
use verbatim_tests::replay::{ReplayProxy, recordings::ExpectedTranscript};

/// How long a supplier has for one answer. No test comes near it.
const PATIENCE: Duration = Duration::from_secs(60);

/// What came of asking.
pub(crate) type Outcome = Result<Supplied, SupplyError>;

/// A way to make a platform's supplier of production.
pub(crate) type Maker = fn(Arc<Http>) -> Arc<dyn Supplier>;

/// Somebody who waits to the end and wants no news.
#[derive(Debug)]
pub(crate) struct Patient;

impl Watcher for Patient {
    fn stage(&self, _name: &str, _done: u64, _of: u64) {}

    fn cancelled(&self) -> bool {
        false
    }
}

/// The options of a transport through these proxies, without retries, with times for a busy machine.
pub(crate) fn options(proxies: &[&ReplayProxy], ca_file: &Path) -> HttpOptions {
    HttpOptions {
        proxies: proxies.iter().map(|proxy| proxy.url()).collect(),
        ca_file: Some(ca_file.to_owned()),
        timeout: Duration::from_secs(30),
        retries: 0,
        ..HttpOptions::default()
    }
}

/// The transport of production behind one proxy, without retries.
pub(crate) fn http(proxy: &ReplayProxy) -> Result<Arc<Http>> {
    Ok(Arc::new(Http::new(options(&[proxy], proxy.ca_file()))?))
}

/// The supplier of production behind one proxy, without retries.
pub(crate) fn behind(make: Maker, proxy: &ReplayProxy) -> Result<Arc<dyn Supplier>> {
    Ok(make(http(proxy)?))
}

/// Asks for a video's transcript: the default one, or one in a language.
pub(crate) async fn ask(supplier: &Arc<dyn Supplier>, video: &str, lang: Option<&str>) -> Result<Outcome> {
    ask_within(supplier, video, lang, PATIENCE).await
}

/// Asks for a video's transcript, with a deadline.
pub(crate) async fn ask_within(
    supplier: &Arc<dyn Supplier>,
    video: &str,
    lang: Option<&str>,
    patience: Duration,
) -> Result<Outcome> {
    let platform = *supplier.card().platforms.first().context("a platform")?;
    let wish = match lang {
        Some(tag) => Wish::Language(LanguageTag::parse(tag).ok().context("a language tag")?),
        None => Wish::Default,
    };
    let video = VideoId::new(platform, video)?;
    let ask = Ask { video, wish, deadline: verbatim::SystemClock::default().now().plus(patience) };
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

/// Fails unless the expected transcript came, and what else came is of the same video.
pub(crate) fn check_transcript(outcome: &Outcome, source: &str, expect: &ExpectedTranscript) -> Result<()> {
    let supplied = outcome.as_ref().map_err(|error| anyhow::anyhow!("{error:?} came instead"))?;
    let transcript = supplied.tracks.first().context("no transcript at all")?;
    let track = &transcript.track;
    ensure!(track.language.as_str() == expect.language, "the language is {}", track.language.as_str());
    ensure!(track.kind.as_str() == expect.kind, "the kind is {}", track.kind.as_str());
    ensure!(transcript.source == source, "the source is {}", transcript.source);
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
    for transcript in &supplied.tracks {
        transcript.check()?;
    }
    Ok(())
}
