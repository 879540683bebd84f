//! One attempt to fetch a video's captions: client by client, until one returns them.

use std::{collections::HashSet, time::Duration};

use http::StatusCode;
use tokio::time::Instant;
use transcript_core::{
    archive::TrackSelector,
    supplier::{SupplyError, SupplyMonitor, SupplyOutput, SupplyRequest},
    transcript::{LanguageTag, Segment, TrackInfo, TrackKind, Transcript},
};

use super::{
    NAME, classify,
    clients::ClientIdentity,
    details::YouTubeDetails,
    failure::YouTubeFailure,
    player::{self, PlayerOutcome},
    request,
    tracks::{TrackChoice, YouTubeTrackList},
};
use crate::http::{EgressSession, HttpRequest, HttpResponse};

/// How long the default transcript may delay the requested one.
const EXTRA_TIMEOUT: Duration = Duration::from_secs(3);
/// Maximum number of tracks that are read until one has text.
const EMPTY_TRACKS_MAX: usize = 3;

/// Minimum number of different words that are not all the same in another language: a minute of speech.
const TRANSLATED_WORDS_MIN: usize = 50;

/// The fetch of a video, in attempts. Each uses one egress route until it is blocked.
#[derive(Debug)]
pub(super) struct YouTubeFetch<'a> {
    pub(super) request: &'a SupplyRequest,
    pub(super) monitor: &'a dyn SupplyMonitor,
    pub(super) clients: &'a [ClientIdentity],
    pub(super) deadline: Instant,
    pub(super) session: EgressSession,
    /// The visitor id that YouTube assigned in this attempt.
    pub(super) visitor: Option<String>,
}

/// Why an attempt failed, and the route of the response that showed it.
pub(super) struct AttemptFailure {
    pub(super) failure: YouTubeFailure,
    route: Option<usize>,
}

/// A client that received a track list whose best track could not be fetched.
struct FallbackClient<'a> {
    client: &'a ClientIdentity,
    details: YouTubeDetails,
    tracks: YouTubeTrackList,
}

impl<'a> YouTubeFetch<'a> {
    /// Tries the clients in order.
    ///
    /// A conclusive failure ends the attempt, and so does a complete track list without the language. Of several other
    /// failures the one with the highest weight is reported.
    pub(super) async fn run(&mut self) -> Result<SupplyOutput, AttemptFailure> {
        let mut failures: Vec<AttemptFailure> = Vec::new();
        let mut fallbacks: Vec<FallbackClient<'a>> = Vec::new();
        let clients = self.clients;
        for (done, client) in clients.iter().enumerate() {
            self.monitor.report_progress("tracks", done as u64, clients.len() as u64);
            let mut is_last = false;
            let failure = match self.player(client).await {
                Ok((details, tracks)) => match self.best(client, &details, &tracks).await {
                    Ok(supplied) => return Ok(supplied),
                    Err(failure) => {
                        is_last = matches!(failure, YouTubeFailure::NoLanguage(_))
                            && tracks.is_complete_for(&self.request.selector, client);
                        fallbacks.push(FallbackClient { client, details, tracks });
                        failure
                    }
                },
                Err(failure) => failure,
            };
            tracing::debug!(client = %client, video = %self.request.video, ?failure, "client returned no captions");
            let attempt_failure = self.attempt_failure(failure);
            if attempt_failure.failure.is_conclusive() {
                return Err(attempt_failure);
            }
            failures.push(attempt_failure);
            if is_last {
                break;
            }
        }
        // No client returns the best track: use the next best without a proof-of-origin token.
        for fallback in fallbacks {
            if !fallback.best_is_gated(&self.request.selector) {
                continue;
            }
            let ungated = fallback.tracks.choose_instead(&self.request.selector, |track| !track.gated);
            let Some(choice) = ungated else { continue };
            let failure =
                match self.supplied(fallback.client, &fallback.details, &fallback.tracks, choice).await {
                    Ok(supplied) => return Ok(supplied),
                    Err(failure) => failure,
                };
            let attempt_failure = self.attempt_failure(failure);
            if attempt_failure.failure.is_conclusive() {
                return Err(attempt_failure);
            }
            failures.push(attempt_failure);
        }
        let none = AttemptFailure { failure: YouTubeFailure::TooOld, route: None };
        Err(failures.into_iter().reduce(higher_weight).unwrap_or(none))
    }

    pub(super) fn attempt_failure(&self, failure: YouTubeFailure) -> AttemptFailure {
        AttemptFailure { failure, route: self.session.route() }
    }

    /// Leaves the route if a failure shows that YouTube blocks it. Returns whether another route is available.
    fn leave_blocked_route(&mut self, attempt_failure: &AttemptFailure) -> bool {
        let AttemptFailure { failure, route } = attempt_failure;
        failure.is_route_blocked() && self.session.leave_route(*route, failure.platform_pause())
    }

    /// Notes that YouTube returned what was requested.
    pub(super) fn finish<T>(&self, result: T) -> Result<T, SupplyError> {
        self.session.resume_platform(request::PLATFORM);
        Ok(result)
    }

    /// Applies a failure to its egress route, and prepares an attempt over another route.
    ///
    /// # Errors
    /// The failure, with the time until YouTube may be called again, unless another route may help.
    pub(super) fn retry_elsewhere(&mut self, attempt_failure: &AttemptFailure) -> Result<(), SupplyError> {
        let has_others = self.leave_blocked_route(attempt_failure);
        if !has_others || !self.session.take_retry(Duration::ZERO, self.deadline) {
            return Err(self.session.with_pause(attempt_failure.failure.error(), request::PLATFORM));
        }
        // A visitor id is not reused over another address.
        self.visitor = None;
        Ok(())
    }

    /// The video's player data, as one client receives it.
    async fn player(
        &mut self,
        client: &ClientIdentity,
    ) -> Result<(YouTubeDetails, YouTubeTrackList), YouTubeFailure> {
        self.check_cancelled()?;
        let request = request::player(client, &self.request.video, self.visitor.as_deref());
        let answer = self.send(&request).await?;
        if let Some(failure) = answer.location.as_ref().and_then(classify::classify_redirect) {
            return Err(failure);
        }
        let response = player::interpret(&answer.body, &self.request.video);
        if response.visitor.is_some() {
            self.visitor = response.visitor;
        }
        match (response.outcome, answer.status) {
            (PlayerOutcome::Tracks { details, tracks }, status) if status.is_success() => {
                Ok((*details, tracks))
            }
            (PlayerOutcome::Failed(YouTubeFailure::NotPlayerData), StatusCode::FORBIDDEN) => {
                Err(YouTubeFailure::Forbidden)
            }
            (PlayerOutcome::Failed(YouTubeFailure::NotPlayerData) | PlayerOutcome::Tracks { .. }, status)
                if !status.is_success() =>
            {
                Err(YouTubeFailure::BadRequest(status.as_u16()))
            }
            (PlayerOutcome::Failed(failure), _) => Err(failure),
            (PlayerOutcome::Tracks { .. }, _) => Err(YouTubeFailure::NotPlayerData),
        }
    }

    /// The best track for the selector, unless it needs a proof-of-origin token.
    async fn best(
        &mut self,
        client: &ClientIdentity,
        details: &YouTubeDetails,
        tracks: &YouTubeTrackList,
    ) -> Result<SupplyOutput, YouTubeFailure> {
        match tracks.choose(&self.request.selector) {
            None => Err(tracks.no_choice(&self.request.selector)),
            Some(choice) if choice.gated => Err(YouTubeFailure::Gated),
            Some(choice) => self.supplied(client, details, tracks, choice).await,
        }
    }

    /// The transcript of a choice and, if different, the default transcript.
    async fn supplied(
        &mut self,
        client: &ClientIdentity,
        details: &YouTubeDetails,
        tracks: &YouTubeTrackList,
        choice: TrackChoice,
    ) -> Result<SupplyOutput, YouTubeFailure> {
        let default = match self.request.selector.language() {
            None => None,
            Some(_) => tracks.choose(&TrackSelector::Default),
        };
        let default = default.filter(|default| *default != choice && !default.gated);
        let of = 1 + u64::from(default.is_some());
        self.monitor.report_progress("captions", 0, of);
        let (choice, segments) = self.fetch_non_empty(client, tracks, choice).await?;
        let mut found = vec![self.transcript(details, choice.info, segments)];
        if let Some(default) = default {
            self.monitor.report_progress("captions", 1, of);
            // The requested transcript is complete: a failure of the default one must not discard or delay it.
            let end = self.deadline.min(Instant::now() + EXTRA_TIMEOUT);
            match self.fetch_captions_once(client, &default, end).await {
                Ok(segments) => {
                    let default = self.transcript(details, default.info, segments);
                    if found.iter().any(|found| is_untranslated(found, &default)) {
                        return Err(YouTubeFailure::Untranslated);
                    }
                    found.push(default);
                }
                Err(failure) => {
                    let attempt_failure = self.attempt_failure(failure);
                    self.leave_blocked_route(&attempt_failure);
                }
            }
        }
        self.monitor.report_progress("captions", of, of);
        let metadata = details.metadata.clone();
        Ok(SupplyOutput { transcripts: found, known_tracks: tracks.infos(), metadata })
    }

    /// The text of a choice; if it is empty, that of another track in its language, and then of another default.
    async fn fetch_non_empty(
        &mut self,
        client: &ClientIdentity,
        tracks: &YouTubeTrackList,
        choice: TrackChoice,
    ) -> Result<(TrackChoice, Vec<Segment>), YouTubeFailure> {
        let mut choice = choice;
        let mut empty = Vec::new();
        loop {
            match self.captions(client, &choice).await {
                Err(YouTubeFailure::EmptyCaptions) if empty.len() + 1 < EMPTY_TRACKS_MAX => {
                    empty.push(choice.address)
                }
                result => return result.map(|segments| (choice, segments)),
            }
            choice = match tracks.choose_next(&self.request.selector, &empty) {
                Some(next) if next.gated => return Err(YouTubeFailure::Gated),
                Some(next) => next,
                None => return Err(YouTubeFailure::EmptyCaptions),
            };
        }
    }

    fn transcript(&self, details: &YouTubeDetails, track: TrackInfo, segments: Vec<Segment>) -> Transcript {
        Transcript {
            video: self.request.video.clone(),
            title: details.title.clone(),
            author: details.author.clone(),
            duration_ms: details.duration_ms,
            track,
            source: NAME.to_owned(),
            segments,
        }
    }

    pub(super) async fn send(&mut self, request: &HttpRequest) -> Result<HttpResponse, YouTubeFailure> {
        self.session.send(request, self.deadline).await.map_err(YouTubeFailure::Transport)
    }

    pub(super) fn check_cancelled(&self) -> Result<(), YouTubeFailure> {
        if self.monitor.is_cancelled() { Err(YouTubeFailure::Cancelled) } else { Ok(()) }
    }
}

impl FallbackClient<'_> {
    fn best_is_gated(&self, selector: &TrackSelector) -> bool {
        self.tracks.choose(selector).is_some_and(|best| best.gated)
    }
}

/// Whether a translation has the words of the default track in another language.
///
/// Some words, such as names and sounds, may be the same in both languages.
fn is_untranslated(transcript: &Transcript, default: &Transcript) -> bool {
    let (translated, original) = (&transcript.segments, &default.segments);
    let is_same = transcript.track.kind == TrackKind::Translated
        && default.track.language != LanguageTag::unknown()
        && !transcript.track.language.matches(&default.track.language)
        && translated.iter().map(|segment| &segment.text).eq(original.iter().map(|segment| &segment.text));
    let words = original.iter().flat_map(|segment| segment.text.split_whitespace());
    let words = words.filter(|word| word.contains(char::is_alphabetic));
    is_same && words.collect::<HashSet<_>>().len() >= TRANSLATED_WORDS_MIN
}

/// The failure with the higher weight.
///
/// Of equals the earlier one, since the clients are in order of preference.
pub(super) fn higher_weight(one: AttemptFailure, other: AttemptFailure) -> AttemptFailure {
    if other.failure.weight() > one.failure.weight() { other } else { one }
}
