//! The transcript that a tool needs, by a lookup or for a credit.

use std::{sync::Arc, time::Duration};

use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use transcript_core::{
    accounts::TranscriptParams,
    archive::StoredTranscript,
    chat::Chat,
    transcript::LanguageTag,
    video::{Platform, VideoId},
};
use verbatim::service::{Caller, LookupReply, ServiceError, ServiceLookup, ServiceReply};

use super::{McpTools, error::ToolError};

/// Calls that work on a long transcript at the same time: one is searched while the next is read.
pub(super) const PLACES: usize = 2;
/// Longest wait for a place among them.
const PLACE_WAIT_MAX: Duration = Duration::from_secs(10);

/// The message of a call without a place.
const BUSY: &str = "The server is working on other long transcripts.";

/// Requested transcript.
#[derive(Clone, Debug)]
pub(super) struct TranscriptQuery {
    /// Link or id of the video.
    video: String,
    /// Language; `None`: English if available, else the spoken language.
    language: Option<LanguageTag>,
    /// Whether a transcript that is not archived may be fetched and paid for.
    may_fetch: bool,
}

impl TranscriptQuery {
    /// Creates a query for this video and, if given, this language.
    pub(super) fn new(video: &str, lang: Option<&str>, may_fetch: bool) -> Result<Self, ToolError> {
        let language = lang.map(LanguageTag::parse).transpose();
        let language = language.map_err(|error| ToolError::invalid(format!("lang: {error}")))?;
        Ok(Self { video: video.to_owned(), language, may_fetch })
    }
}

/// Transcript as a tool result.
#[derive(Debug)]
pub(super) struct ToolTranscript {
    /// The transcript.
    pub(super) stored: StoredTranscript,
    /// Watch page of the video.
    pub(super) watch_url: String,
    /// What it cost, and how it differs from the request, as whole sentences.
    pub(super) notes: Vec<String>,
    /// Place among the calls that work on a long transcript; `None` with a short one.
    _place: Option<OwnedSemaphorePermit>,
}

impl McpTools {
    /// Gets a transcript, and a place to work on it if it is long.
    ///
    /// A call that waits for a place holds no transcript: it reads the archive again, which charges nothing. A call
    /// that has paid keeps its transcript until it has a place: payments bound the number of such calls.
    pub(super) async fn transcript(
        &self,
        query: TranscriptQuery,
        caller: &Caller,
    ) -> Result<ToolTranscript, ToolError> {
        let got = self.find_or_buy(query.clone(), caller).await?;
        if !Chat::is_long(&got.stored.transcript) {
            return Ok(got);
        }
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Ok(ToolTranscript { _place: Some(place), ..got });
        }
        if !got.notes.is_empty() {
            let place = Arc::clone(&self.places).acquire_owned().await;
            return Ok(ToolTranscript { _place: place.ok(), ..got });
        }
        drop(got);
        let place = timeout(PLACE_WAIT_MAX, Arc::clone(&self.places).acquire_owned()).await;
        // The semaphore is never closed.
        let Ok(Ok(place)) = place else { return Err(ToolError::busy(BUSY)) };
        let got = self.find_or_buy(TranscriptQuery { may_fetch: false, ..query }, caller).await?;
        Ok(ToolTranscript { _place: Some(place), ..got })
    }

    /// Gets a transcript: by the rules of the lookup API, or for a credit of an account.
    async fn find_or_buy(
        &self,
        query: TranscriptQuery,
        caller: &Caller,
    ) -> Result<ToolTranscript, ToolError> {
        let TranscriptQuery { video, language, may_fetch } = query;
        let has_account_key = caller.has_account_key();
        let lookup = ServiceLookup {
            language: language.clone(),
            may_fetch: may_fetch && !has_account_key,
            ..ServiceLookup::url(video)
        };
        let ServiceReply { body, meta } = self.service.look_up(caller, lookup.clone()).await?;
        let is_for_credits = may_fetch && has_account_key && body.platform() == Some(Platform::YouTube);
        let LookupReply { result, transcript } = body;
        let is_lacking = match &transcript {
            Some(stored) if is_for_credits && language.is_none() => {
                self.is_other_language(stored, lookup, caller).await?
            }
            Some(_) => false,
            None => is_for_credits,
        };
        if is_lacking && let Ok(video) = VideoId::new(Platform::YouTube, &result.video_id) {
            match self.buy_transcript(&video, language, result.watch_url.clone(), caller).await {
                // The archived transcript in another language is free.
                Err(error) if transcript.is_some() && is_not_sold(&error) => {}
                bought => return Ok(bought?),
            }
        }
        let Some(stored) = transcript else { return Err(ToolError::missing(result, &meta)) };
        let mut notes = Vec::new();
        if let Some(key) = result.key.filter(|_| !result.from_cache) {
            let (used, allowance) = (key.used, key.allowance);
            notes.push(format!("New transcript, charged to the API key: {used} of {allowance} are used."));
        }
        Ok(ToolTranscript { stored, watch_url: result.watch_url, notes, _place: None })
    }

    /// Whether an archived transcript stands in for the default one of its video, which is not archived.
    async fn is_other_language(
        &self,
        stored: &StoredTranscript,
        lookup: ServiceLookup,
        caller: &Caller,
    ) -> Result<bool, ServiceError> {
        if LanguageTag::english().matches(&stored.transcript.track.language) {
            return Ok(false);
        }
        let lookup = ServiceLookup { default_only: true, ..lookup };
        Ok(self.service.look_up(caller, lookup).await?.body.transcript.is_none())
    }

    /// Gets a transcript for a credit, as the v1 API does. The credit is charged at delivery.
    async fn buy_transcript(
        &self,
        video: &VideoId,
        language: Option<LanguageTag>,
        watch_url: String,
        caller: &Caller,
    ) -> Result<ToolTranscript, ServiceError> {
        let params = TranscriptParams {
            video_id: Some(video.id().to_owned()),
            url: None,
            lang: language.map(|language| language.as_str().to_owned()),
            ..TranscriptParams::default()
        };
        // A repeated call needs no idempotency key: the transcript is archived then, and free.
        let caller = Caller { idempotency_key: None, ..caller.clone() };
        let ServiceReply { body: stored, meta } = self.service.transcript(&caller, params).await?;
        let left = meta.credits_remaining.map_or(String::new(), |left| format!("; {left} are left"));
        let note = |cost| format!("Credits charged for this transcript: {cost}{left}.");
        let notes = meta.credits_charged.map(note).into_iter().collect();
        Ok(ToolTranscript { stored, watch_url, notes, _place: None })
    }
}

/// Whether the v1 API sells no default transcript to this account now. A fetch that continues is charged when it ends.
fn is_not_sold(error: &ServiceError) -> bool {
    error.meta.failure_detail.as_deref() != Some("still_working")
}
