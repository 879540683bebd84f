//! Transcripts for credits (specification 2.5 and 4.4).

use std::sync::Arc;

use super::{
    Memo, RequestGuard, StoredResponse, V1Error, call_context::CallContext, fetch_payment::FetchPayment,
};
use crate::{
    archive::{
        ArchivedTrack, FindOutcome, StoredTranscript, TrackSelector,
        view::{CursorError, SegmentPage, TranscriptView},
    },
    debug_fields,
    engine::{CostNote, FetchRequest, NoTranscript},
    transcript::{LanguageTag, TrackInfo, TrackKind, best_track, list_languages},
    video::{LinkError, Platform, VideoId, VideoLink},
};

/// Parameters of a transcript request, unvalidated.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptParams {
    /// `video_id`: the 11-character id.
    pub video_id: Option<String>,
    /// `url`: the full link.
    pub url: Option<String>,
    /// `lang`: a language tag; without one it is English.
    pub lang: Option<String>,
    /// Whether a request without `lang` gets the default transcript in any language.
    ///
    /// Only the service of this process has it: it is no parameter of the HTTP API.
    pub any_language: bool,
    /// `translated`: whether a machine translation is returned if the video has no other transcript in the language.
    pub translated: bool,
    /// What the response contains of the transcript.
    pub view: TranscriptView,
}

/// A transcript that is ready for delivery. Drop releases its hold, if it has one.
pub struct PreparedTranscript {
    guard: RequestGuard,
    /// The transcript.
    pub stored: StoredTranscript,
    /// Whether it was archived at the time of the request (`X-Cache`).
    pub from_cache: bool,
    /// The credits left after delivery (`X-Credits-Remaining`), if known.
    pub credits_remaining: Option<u64>,
}

debug_fields!(PreparedTranscript { guard, from_cache, credits_remaining });

impl PreparedTranscript {
    /// Delivers the response made of the transcript; see [`RequestGuard::deliver`].
    ///
    /// # Errors
    /// As [`RequestGuard::deliver`].
    pub async fn deliver(self, response: StoredResponse) -> Result<StoredResponse, V1Error> {
        self.guard.deliver(response).await
    }
}

/// The transcript language that a request accepts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum LanguagePreference {
    /// The default transcript, in any language.
    Any,
    /// English, because no language was named.
    English,
    /// The track of the named language.
    Language(TrackSelector),
}

impl LanguagePreference {
    pub(super) fn selector(&self) -> TrackSelector {
        match self {
            // The default is English wherever there is English.
            Self::Any | Self::English => TrackSelector::Default,
            Self::Language(selector) => selector.clone(),
        }
    }

    fn is_met_by(&self, stored: &StoredTranscript) -> bool {
        match self {
            Self::English => LanguageTag::english().matches(&stored.transcript.track.language),
            Self::Any | Self::Language(_) => true,
        }
    }
}

/// What the archive has for a preference.
pub(super) enum PreferredTrack {
    /// The transcript.
    Archived(StoredTranscript),
    /// Nothing: this track must be fetched.
    Missing(TrackSelector),
}

impl PreferredTrack {
    /// The archived transcript; `None` if it must be fetched.
    pub(super) fn archived(&self) -> Option<&StoredTranscript> {
        match self {
            Self::Archived(stored) => Some(stored),
            Self::Missing(_) => None,
        }
    }
}

/// Where a transcript comes from.
pub(super) enum TranscriptSource {
    /// It is archived.
    Archive(StoredTranscript),
    /// A fetch of this track, with its payment.
    Fetch(TrackSelector, Arc<FetchPayment>),
}

/// Does the work of admitted requests for credits: transcripts and chat answers.
///
/// Uses the engine; the guard of a request uses the ledger.
#[derive(Debug)]
pub struct Delivery {
    pub(super) context: Arc<CallContext>,
}

impl Delivery {
    /// The transcript of a YouTube video for `credits.per_transcript`, ready for delivery.
    ///
    /// The price is the same from the archive and from a supplier; a failure costs nothing. Concurrent callers
    /// share one fetch, and each of them pays.
    ///
    /// # Errors
    /// All errors except 401; nothing is charged, and hold and lease are released. If the fetch is still running,
    /// it keeps the hold, as after a cancellation.
    ///
    /// # Cancellation
    /// Dropping the future releases hold and lease. A fetch that was started for it continues: if the transcript is
    /// archived in the requested language, it is charged, and the next delivery to the account is prepaid for 24 hours.
    pub async fn transcript(
        self: &Arc<Self>,
        mut guard: RequestGuard,
        params: TranscriptParams,
    ) -> Result<PreparedTranscript, V1Error> {
        let delivery = Arc::clone(self);
        let work = async move {
            match delivery.obtain(&mut guard, &params).await {
                Ok((stored, from_cache, credits_remaining)) => {
                    Ok(PreparedTranscript { guard, stored, from_cache, credits_remaining })
                }
                Err(error) => Err(guard.reject(error).await),
            }
        };
        self.context.task(work).await
    }

    async fn obtain(
        &self,
        guard: &mut RequestGuard,
        params: &TranscriptParams,
    ) -> Result<(StoredTranscript, bool, Option<u64>), V1Error> {
        let preference = match parse_language(params.lang.as_deref(), params.translated)? {
            LanguagePreference::English if params.any_language => LanguagePreference::Any,
            preference => preference,
        };
        let video = parse_video(params)?;
        guard.set_video(&video);
        let cost = self.context.options.credits_per_transcript;
        let memo = Memo::Transcript(video.clone()).to_string();
        let found = self.find_archived(&video, &preference).await?;
        check_cursor(found.archived(), params.view)?;
        let from_cache = found.archived().is_some();
        if from_cache {
            guard.use_prepaid(&video, &preference);
        }
        let source = Self::source(guard, found, &video, &preference).await?;
        let work = self.read_source(source, &video, &preference);
        let (stored, credits_left) = guard.work_for_credits(cost, &memo, from_cache, work).await?;
        Ok((stored, from_cache, credits_left))
    }

    /// The archived transcript, or the track that must be fetched.
    pub(super) async fn find_archived(
        &self,
        video: &VideoId,
        preference: &LanguagePreference,
    ) -> Result<PreferredTrack, V1Error> {
        let selector = preference.selector();
        let found = self.context.transcripts.find_best(video, &selector).await;
        match found.map_err(V1Error::from_store_error)? {
            FindOutcome::Transcript(stored) if preference.is_met_by(&stored) => {
                Ok(PreferredTrack::Archived(stored))
            }
            FindOutcome::Transcript(stored) => self.find_archived_english(video, &stored).await,
            FindOutcome::Absence(absence) => {
                let none = NoTranscript::from_absence(absence, self.context.now());
                Err(self.context.transcripts.with_languages(video, none).await.into())
            }
            FindOutcome::Withdrawn => Err(NoTranscript::withdrawn().into()),
            FindOutcome::NotFound => Ok(PreferredTrack::Missing(selector)),
        }
    }

    /// Whether the archive has no transcript for the preference; `false` if it does not respond.
    pub(super) async fn is_missing(&self, video: &VideoId, preference: &LanguagePreference) -> bool {
        match self.find_archived(video, preference).await {
            Ok(found) => found.archived().is_none(),
            Err(error) => error.code() == 404,
        }
    }

    /// The archived English transcript of a video whose default transcript is in another language.
    async fn find_archived_english(
        &self,
        video: &VideoId,
        default: &StoredTranscript,
    ) -> Result<PreferredTrack, V1Error> {
        let transcripts = &self.context.transcripts;
        let english = TrackSelector::Language(LanguageTag::english());
        let found = transcripts.find_best(video, &english).await;
        let is_known_absent = match found.map_err(V1Error::from_store_error)? {
            FindOutcome::Transcript(stored) => return Ok(PreferredTrack::Archived(stored)),
            FindOutcome::Absence(_) | FindOutcome::Withdrawn => true,
            FindOutcome::NotFound => !transcripts.has_supplier(video.platform()),
        };
        // For as long as an absence lasts, the known tracks are taken for those of the platform.
        let age = self.context.now().since(default.stored_at);
        if !is_known_absent && age >= transcripts.options().absence.no_captions {
            return Ok(PreferredTrack::Missing(english));
        }
        let tracks = self.known_tracks(video).await?;
        match is_known_absent || best_track(tracks.iter().map(|track| &track.track), &english).is_none() {
            true => Err(no_english_error(tracks)),
            false => Ok(PreferredTrack::Missing(english)),
        }
    }

    /// The source of a transcript: the archive, or a fetch that the request pays for.
    pub(super) async fn source(
        guard: &mut RequestGuard,
        found: PreferredTrack,
        video: &VideoId,
        preference: &LanguagePreference,
    ) -> Result<TranscriptSource, V1Error> {
        Ok(match found {
            PreferredTrack::Archived(stored) => TranscriptSource::Archive(stored),
            PreferredTrack::Missing(selector) => {
                let payment = guard.start_fetch(video, preference, &selector).await?;
                TranscriptSource::Fetch(selector, payment)
            }
        })
    }

    /// The transcript from its source.
    pub(super) async fn read_source(
        &self,
        source: TranscriptSource,
        video: &VideoId,
        preference: &LanguagePreference,
    ) -> Result<StoredTranscript, V1Error> {
        match source {
            TranscriptSource::Archive(stored) => Ok(stored),
            TranscriptSource::Fetch(selector, payment) => {
                let payer = Some(payment.payer());
                let fetch = FetchRequest { video: video.clone(), selector, payer };
                self.fetch(&payment, fetch, preference).await
            }
        }
    }

    /// The transcript of a new fetch from the suppliers or of a running one.
    async fn fetch(
        &self,
        payment: &Arc<FetchPayment>,
        fetch: FetchRequest,
        preference: &LanguagePreference,
    ) -> Result<StoredTranscript, V1Error> {
        let video = fetch.video.clone();
        let outcome = self.context.transcripts.get(fetch).await;
        let cost_note =
            if payment.is_working() { CostNote::ChargedWhenReady } else { CostNote::NothingCharged };
        let outcome = outcome.into_transcript(video.platform(), self.context.now(), cost_note);
        let (stored, _) = match outcome.map_err(V1Error::from_store_error)? {
            Ok(found) => found,
            Err(none) => {
                let mut none = self.context.transcripts.with_languages(&video, none).await;
                if matches!(preference, LanguagePreference::English) {
                    none.languages = without_english(none.languages);
                }
                return Err(none.into());
            }
        };
        match preference.is_met_by(&stored) {
            true => Ok(stored),
            false => Err(no_english_error(self.known_tracks(&video).await?)),
        }
    }

    async fn known_tracks(&self, video: &VideoId) -> Result<Vec<ArchivedTrack>, V1Error> {
        self.context.transcripts.tracks(video).await.map_err(V1Error::from_store_error)
    }
}

/// The error for a video without an English transcript, with its languages.
fn no_english_error(tracks: Vec<ArchivedTrack>) -> V1Error {
    let languages = without_english(tracks.into_iter().map(|track| track.track));
    let listed = list_languages(&languages);
    let message =
        format!("This video has no English transcript. It has: {listed}; name one of them as lang.");
    NoTranscript::no_language(message, languages).into()
}

/// The tracks, except translations, of a video without an English transcript.
///
/// An English track that is known all the same has no text.
pub(super) fn without_english(tracks: impl IntoIterator<Item = TrackInfo>) -> Vec<TrackInfo> {
    let english = LanguageTag::english();
    let is_listed =
        |track: &TrackInfo| track.kind != TrackKind::Translated && !english.matches(&track.language);
    tracks.into_iter().filter(is_listed).collect()
}

/// The requested video: by its id, or by a YouTube link.
pub(super) fn parse_video(params: &TranscriptParams) -> Result<VideoId, V1Error> {
    let (parameter, link) = match (&params.video_id, &params.url) {
        (Some(id), None) => ("video_id", VideoId::new(Platform::YouTube, id).map(VideoLink::Video)),
        (None, Some(url)) => ("url", VideoLink::parse(url)),
        (None, None) => {
            return Err(bad_request("video_id: give the video's 11-character id, or its full link as url"));
        }
        (Some(_), Some(_)) => return Err(bad_request("video_id and url: give one of them, not both")),
    };
    match link.map_err(|error| bad_request(&format!("{parameter}: {}", link_message(&error))))? {
        VideoLink::Video(video) if video.platform() == Platform::YouTube => Ok(video),
        _ => Err(bad_request(
            "url: this endpoint is for videos on YouTube; send this link to POST /api/v1/jobs, for the same price, or to \
             /api/transcript with a lookup API key",
        )),
    }
}

/// The message of an error; another one if it names a platform that the v1 API refuses.
fn link_message(error: &LinkError) -> &str {
    let is_refused =
        |word: &str| Platform::ALL.into_iter().any(|one| one != Platform::YouTube && one.name() == word);
    match error.message().split(|c: char| !c.is_alphanumeric()).any(is_refused) {
        true => "this is no link to a YouTube video: use one such as https://www.youtube.com/watch?v=…",
        false => error.message(),
    }
}

/// The preference of the parameters `lang` and `translated`.
pub(super) fn parse_language(lang: Option<&str>, translated: bool) -> Result<LanguagePreference, V1Error> {
    let language = match lang {
        None if !translated => return Ok(LanguagePreference::English),
        None => LanguageTag::english(),
        Some(text) => LanguageTag::parse(text).map_err(|error| bad_request(&format!("lang: {error}")))?,
    };
    Ok(LanguagePreference::Language(TrackSelector::in_language(language, translated)))
}

/// Rejects a cursor of another transcript before anything is fetched or held.
fn check_cursor(archived: Option<&StoredTranscript>, view: TranscriptView) -> Result<(), V1Error> {
    let page = match archived {
        Some(stored) => SegmentPage::select(stored, view).map(|_| ()),
        None if view.page.is_some_and(|page| page.cursor.is_some()) => Err(CursorError),
        None => Ok(()),
    };
    page.map_err(|error| bad_request(&format!("cursor: {error}")))
}

fn bad_request(message: &str) -> V1Error {
    V1Error::BadRequest(message.to_owned())
}
