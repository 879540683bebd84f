//! Calls of any platform's production supplier through replay proxies.

use std::{
    fmt,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
pub(crate) use transcript_core::test_doubles::PatientMonitor;
use transcript_core::{
    Clock,
    archive::TrackSelector,
    supplier::{Supplier, SupplyError, SupplyOutput, SupplyRequest},
    video::VideoId,
};
use upstream_reqwest::{HttpOptions, HttpTransport};
use verbatim_tests::replay::{ReplayProxy, Script, TestAuthority, recordings::ExpectedTranscript};

/// Timeout of one supplier call. No test comes near it.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Result of a supplier call.
pub(crate) type CallOutcome = Result<SupplyOutput, SupplyError>;

/// Builds the production supplier of a platform.
pub(crate) type SupplierBuilder = fn(Arc<HttpTransport>) -> Arc<dyn Supplier>;

/// Options of a transport through these proxies: no retries, and timeouts for a busy machine.
pub(crate) fn options(proxies: &[&ReplayProxy], ca_file: &Path) -> HttpOptions {
    HttpOptions {
        proxies: proxies.iter().map(|proxy| proxy.url()).collect(),
        ca_file: Some(ca_file.to_owned()),
        timeout: Duration::from_secs(30),
        retries: 0,
        ..HttpOptions::default()
    }
}

/// Starts two proxies with one certificate authority.
pub(crate) fn start_pair(first: Script, second: Script) -> Result<[ReplayProxy; 2]> {
    let authority = Arc::new(TestAuthority::new()?);
    Ok([
        ReplayProxy::start_signed_by(first, Arc::clone(&authority))?,
        ReplayProxy::start_signed_by(second, authority)?,
    ])
}

/// The production transport behind one proxy, without retries.
pub(crate) fn http(proxy: &ReplayProxy) -> Result<Arc<HttpTransport>> {
    Ok(Arc::new(HttpTransport::new(options(&[proxy], proxy.ca_file()))?))
}

/// The production supplier behind one proxy, without retries.
pub(crate) fn behind(make: SupplierBuilder, proxy: &ReplayProxy) -> Result<Arc<dyn Supplier>> {
    Ok(make(http(proxy)?))
}

/// Requests a video's transcript: the default one, or one in a language.
pub(crate) async fn fetch(
    supplier: &Arc<dyn Supplier>,
    video: &str,
    lang: Option<&str>,
) -> Result<CallOutcome> {
    fetch_within(supplier, video, lang, TIMEOUT).await
}

/// Requests a video's transcript, with a deadline.
pub(crate) async fn fetch_within(
    supplier: &Arc<dyn Supplier>,
    video: &str,
    lang: Option<&str>,
    timeout: Duration,
) -> Result<CallOutcome> {
    let platform = *supplier.info().platforms.first().context("a platform")?;
    let selector = match lang {
        Some(name) => TrackSelector::from_name(name),
        None => TrackSelector::Default,
    };
    let video = VideoId::new(platform, video)?;
    let request =
        SupplyRequest { video, selector, deadline: verbatim::SystemClock::default().now().plus(timeout) };
    Ok(supplier.supply(request, Arc::new(PatientMonitor::default())).await)
}

/// Requests a video's default transcript through a transport with these options.
pub(crate) async fn fetch_with(
    make: SupplierBuilder,
    options: HttpOptions,
    video: &str,
) -> Result<CallOutcome> {
    fetch(&make(Arc::new(HttpTransport::new(options)?)), video, None).await
}

/// Requests a video's default transcript through a proxy with this script, which must expect every request.
pub(crate) async fn replay(
    make: SupplierBuilder,
    script: Script,
    video: &str,
) -> Result<(CallOutcome, ReplayProxy)> {
    let proxy = ReplayProxy::start(script)?;
    let outcome = fetch(&behind(make, &proxy)?, video, None).await?;
    ensure!(proxy.unexpected().is_empty(), "unexpected: {:?}", proxy.unexpected());
    Ok((outcome, proxy))
}

/// Fails unless a call through a proxy with this script ends soon after the timeout of a request.
pub(crate) async fn check_timeout(make: SupplierBuilder, script: Script, video: &str) -> Result<()> {
    let proxy = ReplayProxy::start(script)?;
    let options = HttpOptions { timeout: Duration::from_millis(400), ..options(&[&proxy], proxy.ca_file()) };
    let started = Instant::now();
    let outcome = fetch_with(make, options, video).await?;
    ensure!(["timeout", "unreachable"].contains(&reason(&outcome)), "{outcome:?}");
    ensure!(started.elapsed() < Duration::from_secs(10), "{:?}", started.elapsed());
    Ok(())
}

/// The wire name of the failure reason; `transcript` for a success.
pub(crate) fn reason<T>(outcome: &Result<T, SupplyError>) -> &'static str {
    outcome.as_ref().map_or_else(|error| error.reason().as_str(), |_| "transcript")
}

/// Fails unless the call failed for this reason, with a message for people.
pub(crate) fn check_failure<T: fmt::Debug>(outcome: &Result<T, SupplyError>, expect: &str) -> Result<()> {
    ensure!(reason(outcome) == expect, "{} instead of {expect}: {outcome:?}", reason(outcome));
    if let Err(error) = outcome {
        let message = error.message();
        ensure!(message.ends_with('.') && !message.contains("://"), "not a message for people: {message}");
    }
    Ok(())
}

/// Fails unless the first transcript is the expected one and all are valid.
pub(crate) fn check_transcript(
    outcome: &CallOutcome,
    source: &str,
    expect: &ExpectedTranscript,
) -> Result<()> {
    let supplied = outcome.as_ref().map_err(|error| anyhow::anyhow!("the call failed: {error:?}"))?;
    let transcript = supplied.transcripts.first().context("no transcript")?;
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
    for transcript in &supplied.transcripts {
        transcript.check()?;
    }
    Ok(())
}
