//! Order of the languages, what ends it, and the key of each request.

use std::{
    collections::VecDeque,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use async_trait::async_trait;
use transcript_core::wire::{lookup::TranscriptResult, v1::ChatAnswer};

use super::*;
use crate::service::{ResponseMeta, ServiceQuestion};

/// A service without transcripts: its responses in order, and the language and key of each request.
#[derive(Debug, Default)]
struct FakeService {
    /// A failure detail, or an error.
    responses: Mutex<VecDeque<Result<Option<&'static str>, ServiceError>>>,
    requests: Mutex<Vec<(Option<String>, Option<String>)>>,
}

impl FakeService {
    fn new(responses: impl IntoIterator<Item = Result<Option<&'static str>, ServiceError>>) -> Self {
        Self { responses: Mutex::new(responses.into_iter().collect()), ..Self::default() }
    }

    /// The failure detail of the next response; that of the last one has none.
    fn respond(&self, caller: &Caller, language: Option<&str>) -> Result<ResponseMeta, ServiceError> {
        self.requests.lock().unwrap().push((language.map(str::to_owned), caller.key.clone()));
        let detail = self.responses.lock().unwrap().pop_front().unwrap_or(Ok(None))?;
        Ok(ResponseMeta { failure_detail: detail.map(str::to_owned), ..ResponseMeta::default() })
    }

    fn requested(&self) -> Vec<Option<String>> {
        self.requests.lock().unwrap().iter().map(|(language, _)| language.clone()).collect()
    }

    fn keys(&self) -> Vec<Option<String>> {
        self.requests.lock().unwrap().iter().map(|(_, key)| key.clone()).collect()
    }
}

#[async_trait]
impl Service for FakeService {
    async fn look_up(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<LookupReply> {
        let meta = self.respond(caller, request.language.as_ref().map(LanguageTag::as_str))?;
        let failure_reason = Some(FailureReason::NoCaptions.as_str().to_owned());
        let result = TranscriptResult { failure_reason, ..TranscriptResult::default() };
        Ok(ServiceReply { body: LookupReply { result, transcript: None }, meta })
    }

    async fn text(
        &self,
        caller: &Caller,
        request: ServiceLookup,
        _: TextFormat,
    ) -> ServiceResult<TextResponse> {
        let meta = self.respond(caller, request.language.as_ref().map(LanguageTag::as_str))?;
        let (message, watch_url) = (String::new(), String::new());
        Ok(ServiceReply {
            body: TextResponse::Missing { is_allowance_spent: false, message, watch_url },
            meta,
        })
    }

    async fn transcript(
        &self,
        caller: &Caller,
        request: TranscriptParams,
    ) -> ServiceResult<StoredTranscript> {
        let meta = self.respond(caller, request.lang.as_deref())?;
        Err(ServiceError { meta: Box::new(meta), ..ServiceError::rejected(404, "No.") })
    }

    async fn chat(&self, _: &Caller, _: ServiceQuestion) -> ServiceResult<ChatAnswer> {
        Err(ServiceError::unsupported("No."))
    }
}

const LANGUAGES: [&str; 3] = ["de", "en", "fr"];

fn tags(languages: &[&str]) -> Vec<LanguageTag> {
    languages.iter().map(|tag| LanguageTag::parse(tag).unwrap()).collect()
}

fn lookup() -> ServiceLookup {
    ServiceLookup::url("dQw4w9WgXcQ")
}

async fn buy(
    service: &FakeService,
    caller: impl Fn(Option<String>) -> Caller + Send + Sync,
    languages: &[&str],
) -> ServiceError {
    let languages = languages.iter().map(|&tag| tag.to_owned()).collect();
    buy_in_order(service, caller, "dQw4w9WgXcQ".to_owned(), languages).await.unwrap_err()
}

/// The languages that a lookup, a text and a purchase request of a service whose responses have this detail.
async fn requested_after(detail: Option<&'static str>, languages: &[&str]) -> [Vec<Option<String>>; 3] {
    let services = [(); 3].map(|()| FakeService::new([(); 3].map(|()| Ok(detail))));
    let [looked_up, text, bought] = &services;
    look_up_in_order(looked_up, Caller::default, lookup(), tags(languages)).await.unwrap();
    fetch_text_in_order(text, Caller::default, lookup(), TextFormat::Srt, tags(languages)).await.unwrap();
    buy(bought, |_| Caller::default(), languages).await;
    [looked_up.requested(), text.requested(), bought.requested()]
}

#[tokio::test]
async fn languages_are_requested_in_order_while_one_may_exist() {
    let all: Vec<_> = LANGUAGES.map(|tag| Some(tag.to_owned())).into();
    for (detail, count) in [
        (None, 3),
        (Some("no_language"), 3),
        (Some("no_captions"), 3),
        (Some("needs_verification"), 3),
        (Some("private"), 1),
        (Some("removed"), 1),
        (Some("withdrawn"), 1),
        (Some("live"), 1),
        (Some("expired"), 1),
        (Some("novel"), 1),
    ] {
        for requested in requested_after(detail, &LANGUAGES).await {
            assert_eq!(requested, all[..count], "{detail:?}");
        }
    }
    // Without languages, the default.
    assert_eq!(requested_after(None, &[]).await, [(); 3].map(|()| vec![None]));
}

#[tokio::test]
async fn purchase_of_unknown_outcome_ends_languages() {
    let lost = ServiceError { idempotency_key: Some("key".into()), ..ServiceError::rejected(404, "No.") };
    for error in [lost, ServiceError::rejected(402, "No."), ServiceError::rejected(500, "No.")] {
        let service = FakeService::new([Err(error.clone())]);
        assert_eq!(buy(&service, |_| Caller::default(), &LANGUAGES).await, error);
        assert_eq!(service.requested().len(), 1);
    }
}

#[tokio::test]
async fn purchase_has_caller_of_its_language() {
    let service = FakeService::default();
    let caller = |language: Option<String>| Caller { key: language, ..Caller::default() };
    buy(&service, caller, &LANGUAGES).await;
    assert_eq!(service.keys(), service.requested());
}

#[tokio::test]
async fn refused_request_is_repeated_once_with_replaced_key() {
    let refused = || Err(ServiceError::rejected(401, "No."));
    let lost = ServiceError { idempotency_key: Some("key".into()), ..ServiceError::rejected(401, "No.") };
    for (responses, is_replaced, keys) in [
        (vec![refused()], true, vec!["0", "1"]),
        (vec![refused(), refused()], true, vec!["0", "1"]),
        (vec![refused()], false, vec!["0"]),
        (vec![Err(lost)], true, vec!["0"]),
    ] {
        let (service, calls) = (FakeService::new(responses), AtomicUsize::new(0));
        let key = || calls.fetch_add(usize::from(is_replaced), Ordering::Relaxed).to_string();
        buy(&service, |_| Caller::with_key(key()), &["de"]).await;
        assert_eq!(service.keys(), keys.iter().map(|&key| Some(key.to_owned())).collect::<Vec<_>>());
    }
}
