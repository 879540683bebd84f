//! The transcript that a tool needs, by a lookup or for a credit.

use std::{sync::Arc, time::Duration};

use tokio::{sync::OwnedSemaphorePermit, time::timeout};
use transcript_core::{
    accounts::TranscriptParams,
    archive::{StoredTranscript, TrackSelector},
    chat::Chat,
    transcript::{LanguageTag, best_track},
    video::{Platform, VideoId},
};
use verbatim::service::{Caller, LookupReply, ResponseMeta, ServiceError, ServiceLookup, ServiceReply};

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
        let is_not_for_credits = has_account_key && body.platform().is_some() && !is_for_credits;
        let LookupReply { result, transcript } = body;
        let is_lacking = match &transcript {
            Some(stored) if is_for_credits && language.is_none() => {
                self.is_other_language(stored, lookup.clone(), caller).await?
            }
            Some(_) => false,
            // It may be archived, and free.
            None => is_for_credits && !is_storage_failure(&meta),
        };
        let any_language = match (&language, &transcript) {
            _ if !is_lacking => None,
            (Some(_), _) => Some(false),
            (None, None) => Some(true),
            // Beside an archived default track only English is for sale; if that is unknown, nothing.
            (None, Some(_)) => {
                self.is_default_track_archived(lookup, caller).await.ok().map(|is_archived| !is_archived)
            }
        };
        if let Some(any_language) = any_language
            && let Ok(video) = VideoId::new(Platform::YouTube, &result.video_id)
        {
            let params = TranscriptParams {
                video_id: Some(video.id().to_owned()),
                lang: language.map(|language| language.as_str().to_owned()),
                any_language,
                ..TranscriptParams::default()
            };
            match self.buy_transcript(params, result.watch_url.clone(), caller).await {
                // The archived transcript in another language is free.
                Err(error) if transcript.is_some() && is_not_sold(&error) => {}
                bought => return Ok(bought?),
            }
        }
        let Some(stored) = transcript else {
            let missing = ToolError::missing(result, &meta);
            return Err(if may_fetch && is_not_for_credits { missing.for_account_key() } else { missing });
        };
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
        let ServiceReply { body, meta } = self.service.look_up(caller, lookup).await?;
        Ok(body.transcript.is_none() && !is_storage_failure(&meta))
    }

    /// Whether the best known track for the default of a video is archived, for another selector.
    ///
    /// Also if none is known: the video has an archived transcript, so the archive has failed.
    async fn is_default_track_archived(
        &self,
        lookup: ServiceLookup,
        caller: &Caller,
    ) -> Result<bool, ServiceError> {
        let tracks = self.service.tracks(caller, lookup).await?.body.tracks;
        let best = best_track(tracks.iter().map(|one| &one.track), &TrackSelector::Default);
        Ok(best.and_then(|index| tracks.get(index)).is_none_or(|one| !one.selectors.is_empty()))
    }

    /// Gets a transcript for a credit, as the v1 API does. The credit is charged at delivery.
    async fn buy_transcript(
        &self,
        params: TranscriptParams,
        watch_url: String,
        caller: &Caller,
    ) -> Result<ToolTranscript, ServiceError> {
        // A repeated call needs no idempotency key: the transcript is archived then, and free.
        let caller = Caller { idempotency_key: None, ..caller.clone() };
        let ServiceReply { body: stored, meta } = self.service.transcript(&caller, params).await?;
        let left = meta.credits_remaining.map_or(String::new(), |left| format!("; {left} are left"));
        let note = |cost| format!("Credits charged for this transcript: {cost}{left}.");
        let notes = meta.credits_charged.map(note).into_iter().collect();
        Ok(ToolTranscript { stored, watch_url, notes, _place: None })
    }
}

/// Whether the archive failed in a lookup: it may have the transcript that is missing.
fn is_storage_failure(meta: &ResponseMeta) -> bool {
    meta.failure_detail.as_deref() == Some("storage")
}

/// Whether the v1 API sells no default transcript to this account now. A fetch that continues is charged when it ends.
fn is_not_sold(error: &ServiceError) -> bool {
    error.meta.failure_detail.as_deref() != Some("still_working")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::Ordering::Relaxed;

    use serde_json::json;
    use transcript_core::{
        Clock, Timestamp,
        archive::{Archive, PutRequest},
        directory::{KeyAccess, RequestQuota},
        ledger::terms::AllowancePeriod,
        lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin},
        transcript::{TrackInfo, TrackKind, Transcript},
    };

    use super::*;
    use crate::{
        mcp::{
            tests::{call_as, tools_of},
            tools::{GET_TRANSCRIPT, LIST_LANGUAGES, SEARCH_TRANSCRIPT},
        },
        testing::{ARCHIVED, FRENCH, NEW, ServiceFixture, transcript},
    };

    fn track(tag: &str) -> TrackInfo {
        TrackInfo::new(LanguageTag::parse(tag).unwrap(), TrackKind::Human)
    }

    /// Archives a Welsh transcript for this selector.
    async fn archive_welsh(
        fixture: &ServiceFixture,
        video: &str,
        selector: TrackSelector,
        other_track: Option<TrackInfo>,
    ) {
        let video = VideoId::new(Platform::YouTube, video).unwrap();
        let request = PutRequest {
            video: video.clone(),
            selectors: vec![selector],
            known_tracks: [track("cy")].into_iter().chain(other_track).collect(),
            transcript: Arc::new(Transcript { track: track("cy"), ..transcript(&video) }),
            metadata: Default::default(),
            parser_version: 1,
            replace: false,
            now: Timestamp::from_millis(0),
        };
        fixture.archive.put(request).await.unwrap();
    }

    async fn credits(fixture: &ServiceFixture, key: &str) -> u64 {
        let account = fixture.get_with("/api/v1/me", key).await.json();
        account["credits_remaining"].as_u64().unwrap()
    }

    /// Calls with a lookup key that the operator limits.
    async fn limited_caller(fixture: &ServiceFixture, access: KeyAccess) -> Caller {
        let request =
            CreateKeyRequest { label: None, email: None, proof: None, origin: KeyOrigin::Operator, access };
        match fixture.app.lookup.keys().create(request).await.unwrap() {
            CreateKeyOutcome::Created(issued) => Caller::with_key(issued.key.reveal().to_owned()),
            other => panic!("{other:?}"),
        }
    }

    /// A transcript that the archive has is not missing.
    #[tokio::test]
    async fn call_with_expired_key_or_used_quota_is_error() {
        let fixture = ServiceFixture::start().await;
        let tools = tools_of(&fixture);
        let quota = Some(RequestQuota { max: 1, period: AllowancePeriod::Day });
        let over_quota = limited_caller(&fixture, KeyAccess { quota, ..KeyAccess::default() }).await;
        let expires_at = Some(fixture.clock.now().plus(Duration::from_secs(1)));
        let expired = limited_caller(&fixture, KeyAccess { expires_at, ..KeyAccess::default() }).await;
        let page = json!({ "video": ARCHIVED });
        for caller in [&over_quota, &expired] {
            let got = call_as(caller, &tools, GET_TRANSCRIPT, page.clone()).await;
            assert_eq!(got["isError"], false, "{got}");
        }
        fixture.clock.advance(Duration::from_secs(2));
        let search = json!({ "video": ARCHIVED, "query": "quiet" });
        for (caller, code, message) in [
            (&over_quota, 429, "This API key has used its 1 requests of the day."),
            (&expired, 401, "This API key expired at"),
        ] {
            for (tool, arguments) in [(GET_TRANSCRIPT, &page), (SEARCH_TRANSCRIPT, &search)] {
                let got = call_as(caller, &tools, tool, arguments.clone()).await;
                let meta = &got["_meta"];
                assert_eq!((&got["isError"], &meta["verbatim/code"]), (&json!(true), &json!(code)), "{got}");
                assert_eq!(meta["verbatim/retry_after"].is_u64(), code == 429, "{got}");
                assert!(meta["verbatim/failure_reason"].is_null(), "{got}");
                assert!(got["content"][0]["text"].as_str().unwrap().starts_with(message), "{got}");
            }
            let got = call_as(caller, &tools, LIST_LANGUAGES, page.clone()).await;
            assert_eq!(got["isError"], false, "it is no lookup: {got}");
        }
    }

    #[tokio::test]
    async fn new_video_without_english_costs_one_credit() {
        let fixture = ServiceFixture::start().await;
        let (tools, key) = (tools_of(&fixture), fixture.account("ann@example.org").await);
        let caller = Caller::with_key(key.clone());
        let all = credits(&fixture, &key).await;
        for is_charged in [true, false] {
            let got = call_as(&caller, &tools, GET_TRANSCRIPT, json!({ "video": FRENCH })).await;
            assert_eq!(got["_meta"]["verbatim/language"], "fr", "{got}");
            let text = got["content"][0]["text"].as_str().unwrap();
            assert_eq!(text.contains("Credits charged for this transcript: 1"), is_charged, "{text}");
            assert_eq!(credits(&fixture, &key).await, all - 1);
        }
    }

    #[tokio::test]
    async fn new_video_of_other_platform_needs_lookup_key() {
        let fixture = ServiceFixture::start().await;
        let caller = Caller::with_key(fixture.account("ann@example.org").await);
        let video = json!({ "video": "https://www.tiktok.com/@ann/video/7300000000000000000" });
        let missing = call_as(&caller, &tools_of(&fixture), GET_TRANSCRIPT, video).await;
        assert_eq!(missing["_meta"]["verbatim/failure_reason"], "needs_verification", "{missing}");
        let text = missing["content"][0]["text"].as_str().unwrap();
        assert!(text.contains("start_job transcribes it") && !text.contains("Send an API key"), "{text}");
    }

    /// The archived one is free. If it is the only known one, nothing else is the default.
    #[tokio::test]
    async fn default_without_english_is_sold_beside_other_language() {
        for (knows_french, language) in [(true, "fr"), (false, "cy")] {
            let fixture = ServiceFixture::start().await;
            let tools = tools_of(&fixture);
            let french = TrackInfo { original: true, ..track("fr") };
            let other_track = knows_french.then_some(french);
            archive_welsh(&fixture, FRENCH, track("cy").selector(), other_track).await;
            let caller = Caller::with_key(fixture.account("ann@example.org").await);
            let got = call_as(&caller, &tools, GET_TRANSCRIPT, json!({ "video": FRENCH })).await;
            assert_eq!(got["_meta"]["verbatim/language"], language, "{got}");
            let text = got["content"][0]["text"].as_str().unwrap();
            assert_eq!(text.contains("Credits charged"), knows_french, "{text}");
        }
    }

    #[tokio::test]
    async fn archived_transcript_costs_nothing_while_archive_fails() {
        for (video, lang, language, fails_tracks) in [
            (ARCHIVED, "", "en", false),
            (ARCHIVED, "en", "en", false),
            // The default.
            (NEW, "", "cy", false),
            // For its language only. No other one is known.
            (FRENCH, "", "cy", false),
            (FRENCH, "", "cy", true),
        ] {
            for number in 1..=3 {
                let fixture = ServiceFixture::start().await;
                archive_welsh(&fixture, NEW, TrackSelector::Default, None).await;
                archive_welsh(&fixture, FRENCH, track("cy").selector(), None).await;
                let (tools, key) = (tools_of(&fixture), fixture.account("ann@example.org").await);
                let all = credits(&fixture, &key).await;
                let archive = &fixture.archive;
                let failing = if fails_tracks { &archive.failing_tracks } else { &archive.failing_find };
                failing.store(number, Relaxed);
                let arguments = json!({ "video": video, "lang": lang });
                let got = call_as(&Caller::with_key(key.clone()), &tools, GET_TRANSCRIPT, arguments).await;
                let meta = &got["_meta"];
                let is_found = meta["verbatim/language"] == language;
                let is_failure = meta["verbatim/failure_reason"] == "fetch_error";
                // The first list of tracks is part of the lookup.
                let may_fail = !fails_tracks || number == 1;
                assert!(is_found || (is_failure && may_fail), "{number}: {got}");
                assert_eq!(credits(&fixture, &key).await, all, "{number}: {got}");
            }
        }
    }
}
