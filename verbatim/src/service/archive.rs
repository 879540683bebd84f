//! The service over the user's own archive.

use std::time::Duration;

use async_trait::async_trait;
use transcript_core::{
    chat::Question,
    engine::NoTranscript,
    lookup::{Availability, FailureReason, LookupResponse, VideoReference},
    service::{
        Caller, LookupReply, Service, ServiceError, ServiceLookup, ServiceQuestion, ServiceReply,
        ServiceResult, TrackList,
    },
    video::{VideoId, VideoLink},
    wire::v1::{ChatAnswer, ChatBalance, ChatCitation},
};

use crate::{Batch, FoundTranscript, GetOutcome, GetRequest, UnavailableTranscript, Verbatim};

/// A user's own archive: a transcript that is not archived is fetched if the request permits, and everything is free.
///
/// It has no keys and no accounts.
#[derive(Clone, Debug)]
pub struct ArchiveService {
    verbatim: Verbatim,
    batch: Batch,
}

impl ArchiveService {
    /// The service over this archive.
    pub fn new(verbatim: Verbatim) -> Self {
        Self { verbatim, batch: Batch::new(Duration::ZERO) }
    }

    /// The same service, whose lookups wait for paused sources as calls of this batch.
    #[must_use]
    pub fn with_batch(self, batch: Batch) -> Self {
        Self { batch, ..self }
    }

    /// The reply to a lookup of a link with this outcome.
    pub fn reply(&self, link: &str, caller: &Caller, outcome: GetOutcome) -> LookupReply {
        ServiceReply::<LookupReply>::from(self.response(link, caller, outcome)).body
    }

    fn response(&self, link: &str, caller: &Caller, outcome: GetOutcome) -> LookupResponse {
        let watch_url = |link: &VideoLink| self.verbatim.lookup().options().watch_url(link, caller.src);
        match outcome {
            GetOutcome::Found(FoundTranscript { stored, from_cache }) => {
                let video = stored.transcript.video.clone();
                LookupResponse {
                    platform: video.platform(),
                    video_id: video.id().to_owned(),
                    watch_url: watch_url(&VideoLink::Video(video)),
                    key: None,
                    requested_language: None,
                    languages: Vec::new(),
                    availability: Availability::Available { stored, from_cache },
                }
            }
            GetOutcome::Missing(missing) => {
                let UnavailableTranscript { platform, video_id, reason, message, .. } = missing;
                let video = VideoId::new(platform, &video_id).map(VideoLink::Video);
                // If a short link could not be resolved, the watch page is the short link's.
                let page = video.or_else(|_| VideoLink::parse(link)).map(|link| watch_url(&link));
                LookupResponse {
                    platform,
                    video_id,
                    watch_url: page.unwrap_or_default(),
                    key: None,
                    requested_language: None,
                    languages: missing.languages.clone(),
                    availability: Availability::Unavailable(NoTranscript {
                        detail: missing.detail,
                        retry_after: missing.retry_after,
                        languages: missing.languages,
                        attempted: missing.attempted,
                        cause: missing.cause,
                        ..NoTranscript::new(reason, message)
                    }),
                }
            }
        }
    }
}

#[async_trait]
impl Service for ArchiveService {
    async fn look_up(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<LookupReply> {
        let (VideoReference::Url(link) | VideoReference::Id(link)) = request.reference;
        let language = request.language.map(|language| language.as_str().to_owned());
        let archived_only = !request.may_fetch;
        let translated = request.translated;
        let get =
            GetRequest { link: link.clone(), language, translated, archived_only, ..GetRequest::default() };
        let outcome = self.batch.get(&self.verbatim, get).await?;
        Ok(self.response(&link, caller, outcome).into())
    }

    async fn tracks(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<TrackList> {
        let ServiceReply { body: lookup, meta } = self.look_up(caller, request).await?;
        let tracks = match &lookup.transcript {
            Some(stored) => self.verbatim.transcripts().tracks(&stored.transcript.video).await?,
            None => Vec::new(),
        };
        Ok(ServiceReply { body: TrackList { lookup, tracks }, meta })
    }

    async fn chat(&self, caller: &Caller, request: ServiceQuestion) -> ServiceResult<ChatAnswer> {
        let ServiceQuestion { reference, message, history } = request;
        let question = Question::new(&message, history)
            .map_err(|error| ServiceError::rejected(400, error.to_string()))?;
        let lookup = ServiceLookup { reference, ..ServiceLookup::url("") };
        let ServiceReply { body: LookupReply { result, transcript }, meta } =
            self.look_up(caller, lookup).await?;
        let Some(stored) = transcript else {
            let (languages, message) = (result.details().tracks, result.failure_message.unwrap_or_default());
            return Err(ServiceError {
                reason: result.failure_reason.as_deref().and_then(FailureReason::from_wire),
                languages,
                watch_url: Some(result.watch_url),
                meta: Box::new(meta),
                ..ServiceError::rejected(404, message)
            });
        };
        let stored = question.best_transcript(self.verbatim.transcripts(), stored).await;
        let answer = self.verbatim.chat().answer(stored.transcript, question).await.map_err(|error| {
            tracing::error!(%error, "chat model call failed");
            ServiceError::rejected(500, "The chat model did not respond. Retry in a few seconds.")
        })?;
        let body = ChatAnswer {
            video_id: result.video_id,
            citations: answer.citations.iter().map(ChatCitation::from).collect(),
            response: answer.response,
            coverage: answer.coverage,
            credits: ChatBalance { used: 0, limit: 0, remaining: 0 },
        };
        Ok(body.into())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use transcript_core::{
        ErrorKind,
        lookup::AttributionTag,
        service::{ServiceErrorKind, TextFormat, TextResponse},
        supplier::{
            Supplier, SupplierInfo, SupplyError, SupplyMonitor, SupplyOutput, SupplyReason, SupplyRequest,
        },
        transcript::LanguageTag,
        video::Platform,
        wire::{lookup::KeyRequest, v1::SubscribeRequest},
    };

    use super::*;
    use crate::{ImportRequest, Options, SupplierOptions};

    const LINK: &str = "https://youtu.be/dQw4w9WgXcQ";
    const CAPTIONS: &str = "1\n00:00:01,000 --> 00:00:03,000\nThe gate opens at nine.\n";

    async fn service() -> ArchiveService {
        let options = Options { suppliers: SupplierOptions::none(), ..Options::default() };
        let verbatim = Verbatim::open(options).await.unwrap();
        let import = ImportRequest {
            link: LINK.to_owned(),
            captions: CAPTIONS.into(),
            language: Some("en".to_owned()),
            title: None,
            author: None,
            generated: false,
            replace: false,
        };
        verbatim.tools().import(import).await.unwrap();
        ArchiveService::new(verbatim)
    }

    fn question(link: &str, message: &str) -> ServiceQuestion {
        let reference = VideoReference::Url(link.to_owned());
        ServiceQuestion { reference, message: message.to_owned(), history: Vec::new() }
    }

    #[tokio::test]
    async fn archive_service_is_free_for_every_caller() {
        let service = service().await;
        let caller = Caller { src: Some(AttributionTag::McpOther), ..Caller::with_key("vba_unknown") };
        let found = service.look_up(&caller, ServiceLookup::url(LINK)).await.unwrap().body;
        assert!(found.result.from_cache && found.result.key.is_none() && found.transcript.is_some());
        assert!(found.result.watch_url.ends_with("/watch/video_site/dQw4w9WgXcQ?src=mcp_other"));
        let text = service.text(&caller, ServiceLookup::id("dQw4w9WgXcQ"), TextFormat::Text).await.unwrap();
        assert_eq!(text.body, TextResponse::Text("The gate opens at nine.\n".to_owned()));
        assert_eq!(service.tracks(&caller, ServiceLookup::url(LINK)).await.unwrap().body.tracks.len(), 1);
        let answer = service.chat(&caller, question(LINK, "When does the gate open?")).await.unwrap();
        assert!(answer.body.response.contains("gate opens at nine"), "{answer:?}");
        assert_eq!((answer.body.credits.remaining, answer.meta.credits_charged), (0, None));
    }

    #[tokio::test]
    async fn archive_service_answers_from_track_in_language_of_question() {
        let (service, caller) = (service().await, Caller::default());
        let import = ImportRequest {
            link: LINK.to_owned(),
            captions: "1\n00:00:01,000 --> 00:00:03,000\nDas Tor öffnet um neun.\n".into(),
            language: Some("de".to_owned()),
            title: None,
            author: None,
            generated: false,
            replace: false,
        };
        service.verbatim.tools().import(import).await.unwrap();
        for (message, expect) in [
            ("Wann öffnet das Tor?", "“Das Tor öffnet um neun.” [0:01]"),
            ("When does the gate open?", "“The gate opens at nine.” [0:01]"),
            ("Gate?", "“The gate opens at nine.” [0:01]"),
            ("Wann öffnet?", "“Das Tor öffnet um neun.” [0:01]"),
        ] {
            let answer = service.chat(&caller, question(LINK, message)).await.unwrap();
            assert_eq!(answer.body.response, expect, "{message}");
        }
    }

    #[tokio::test]
    async fn archive_service_missing_transcript_has_reason_and_page() {
        let (service, caller) = (service().await, Caller::default());
        let missing = service.tracks(&caller, ServiceLookup::id("aaaaaaaaaaa")).await.unwrap().body;
        assert!(missing.tracks.is_empty() && missing.lookup.transcript.is_none());
        assert_eq!(missing.lookup.result.failure_reason.as_deref(), Some("config_error"));
        let error = service.chat(&caller, question("aaaaaaaaaaa", "What?")).await.unwrap_err();
        let page = Some(missing.lookup.result.watch_url);
        assert_eq!(
            (error.status, error.reason, error.watch_url),
            (Some(404), Some(FailureReason::ConfigError), page)
        );
        let empty = service.chat(&caller, question(LINK, " ")).await.unwrap_err();
        assert_eq!(empty.status, Some(400));
    }

    #[derive(Debug)]
    struct ThrottledSupplier;

    #[async_trait]
    impl Supplier for ThrottledSupplier {
        fn info(&self) -> SupplierInfo {
            SupplierInfo::captions("throttled", &[Platform::YouTube])
        }

        async fn supply(
            &self,
            _: SupplyRequest,
            _: Arc<dyn SupplyMonitor>,
        ) -> Result<SupplyOutput, SupplyError> {
            let reason = SupplyReason::Throttled(Some(Duration::from_secs(30)));
            Err(SupplyError::new(reason, "This video is throttled."))
        }
    }

    #[tokio::test]
    async fn archive_service_question_about_throttled_video_has_retry_time() {
        let options = Options::default().without_suppliers().with_supplier(Arc::new(ThrottledSupplier));
        let service = ArchiveService::new(Verbatim::open(options).await.unwrap());
        let error = service.chat(&Caller::default(), question(LINK, "What?")).await.unwrap_err();
        assert_eq!(error.reason, Some(FailureReason::RateLimited), "{error:?}");
        let wait = error.retry_after().map(|wait| wait.as_secs());
        assert!(wait.is_some_and(|seconds| (25..=30).contains(&seconds)), "{error:?}");
    }

    #[tokio::test]
    async fn archive_service_without_permission_does_not_fetch() {
        let (service, caller) = (service().await, Caller::default());
        let reason = async |link: &str, language: Option<&str>| {
            let language = language.map(|tag| LanguageTag::parse(tag).unwrap());
            let lookup = ServiceLookup { may_fetch: false, language, ..ServiceLookup::url(link) };
            let found = service.look_up(&caller, lookup).await.unwrap().body;
            assert!(!found.result.watch_url.is_empty());
            (found.transcript.is_some(), found.result.failure_reason)
        };
        let not_archived = || (false, Some("needs_verification".to_owned()));
        assert_eq!(reason(LINK, None).await, (true, None));
        assert_eq!(reason(LINK, Some("en")).await, (true, None));
        assert_eq!(reason(LINK, Some("de")).await, not_archived());
        // A call of a supplier would end with `config_error`, as none is configured.
        assert_eq!(reason("https://youtu.be/aaaaaaaaaaa", None).await, not_archived());
        assert_eq!(reason("https://vm.tiktok.com/ZMabcdef/", None).await, not_archived());
    }

    #[tokio::test]
    async fn archive_service_has_no_keys_and_accounts() {
        let (service, caller) = (service().await, Caller::default());
        let unsupported = ServiceErrorKind::Core(ErrorKind::Unsupported);
        assert_eq!(service.me(&caller).await.unwrap_err().kind, unsupported);
        let plan = SubscribeRequest { plan: "pro".to_owned() };
        assert_eq!(service.subscribe(&caller, plan).await.unwrap_err().kind, unsupported);
        let created = service.create_key(&caller, KeyRequest::default()).await;
        assert_eq!(created.unwrap_err().kind, unsupported);
    }
}
