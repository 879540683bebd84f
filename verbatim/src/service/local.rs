//! The service within the process, with the rules of both APIs.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use serde::de::DeserializeOwned;
use tokio::runtime::Handle;
use transcript_core::{
    Error,
    accounts::{
        Accounts, ChatParams, PreparedChat, RequestGuard, StoredResponse, TranscriptParams, V1Admission,
        V1Endpoint, V1Error, V1Request, VerifyOutcome, jobs::ResultsPage,
    },
    archive::{StoredTranscript, view::TranscriptView},
    chat::Chat,
    directory::KeyAccess,
    headers::{IDEMPOTENT_REPLAYED, X_CACHE, X_CREDITS_REMAINING},
    ids::JobId,
    lookup::{CreateKeyOutcome, CreateKeyRequest, KeyOrigin, Lookup, LookupRequest, ReferenceError},
    page::PageRequest,
    service::{
        Caller, LookupReply, ResponseMeta, SERVICE_SUPPLIER, Service, ServiceError, ServiceErrorKind,
        ServiceLookup, ServiceQuestion, ServiceReply, ServiceResult, TrackList, unarchived,
    },
    time::ceil_seconds,
    video::VideoLink,
    wire::{
        lookup::{CreateKeyResponse, KeyRequest, KeyStatus},
        v1::{
            AccountInfo, ChatAnswer, JobDeliveries, JobInfo, JobList, JobRequest, JobResults,
            RegisterRequest, RegisterResponse, RotateKeyResponse, VerifyResponse, VideoTranscript,
            WebhookSecretInfo,
        },
    },
};

use super::jobs::{job_info, job_params, job_results};
#[cfg(feature = "search")]
use crate::SearchService;
use crate::{Verbatim, runtime::within};
#[cfg(feature = "search")]
use transcript_core::{
    lookup::SearchAdmission,
    search::{SearchParams, SearchResult},
    wire::search::SearchResponse,
};

/// Pauses before a request is repeated while another one with its idempotency key runs, as a client of a server pauses.
const CONFLICT_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];

/// The lookup API and the v1 API within the process: keys, allowances and credits, without HTTP.
///
/// It has no payment pages. Its jobs are worked on, and their events sent, by a process that called
/// [`Verbatim::start_jobs`] and `Verbatim::start_webhooks`. Clones are handles to the same service.
///
/// A call whose idempotency key belongs to a running one waits up to 3 seconds for it, as a call of a
/// `ServiceClient` does; then it fails with [`ServiceErrorKind::Conflict`].
#[derive(Clone, Debug)]
pub struct LocalService {
    lookup: Lookup,
    accounts: Accounts,
    chat: Chat,
    #[cfg(feature = "search")]
    search: Option<SearchService>,
    /// The runtime of the pauses; `None` without them.
    runtime: Option<Handle>,
}

impl LocalService {
    /// The service of these parts, which must use the same stores. It does not wait for a running call, and has no
    /// search in the whole archive.
    pub fn new(lookup: Lookup, accounts: Accounts, chat: Chat) -> Self {
        Self {
            lookup,
            accounts,
            chat,
            #[cfg(feature = "search")]
            search: None,
            runtime: None,
        }
    }

    /// Admits a request of the v1 API, or returns the stored response to replay as `Err`.
    async fn admit(
        &self,
        route: V1Endpoint,
        caller: &Caller,
        idempotency_key: Option<String>,
        body: Vec<u8>,
    ) -> Result<Result<RequestGuard, StoredResponse>, ServiceError> {
        let request = V1Request { route, bearer: caller.key.clone(), idempotency_key, body };
        let mut admitted = self.accounts.admission.admit(request.clone()).await;
        if let Some(runtime) = &self.runtime {
            for pause in CONFLICT_PAUSES {
                if !matches!(admitted, Err(V1Error::Conflict(_))) {
                    break;
                }
                within(runtime, async { tokio::time::sleep(pause).await }).await;
                admitted = self.accounts.admission.admit(request.clone()).await;
            }
        }
        match admitted {
            Ok(V1Admission::Admitted(guard)) => Ok(Ok(*guard)),
            Ok(V1Admission::Replayed(response)) => Ok(Err(response)),
            Err(error) => {
                let [wait, ..] = CONFLICT_PAUSES;
                let is_running = matches!(error, V1Error::Conflict(_));
                let error = ServiceError::from(error);
                Err(if is_running { error.with_retry_after(Some(wait)) } else { error })
            }
        }
    }

    /// Admits a request whose endpoint accepts no idempotency key.
    async fn admit_unkeyed(&self, route: V1Endpoint, caller: &Caller) -> Result<RequestGuard, ServiceError> {
        Ok(self.accounts.admission.admit_unkeyed(route, caller.key.as_deref()).await?)
    }

    /// The error of the v1 API for a video, with the watch page if there is no transcript.
    fn video_error(&self, error: V1Error, link: Option<VideoLink>, caller: &Caller) -> ServiceError {
        let link = link.filter(|_| matches!(error, V1Error::Unavailable(_)));
        let watch_url = link.map(|link| self.lookup.options().watch_url(&link, caller.src));
        ServiceError { watch_url, ..error.into() }
    }
}

impl From<&Verbatim> for LocalService {
    fn from(verbatim: &Verbatim) -> Self {
        let (lookup, accounts) = (verbatim.lookup().clone(), verbatim.accounts().clone());
        Self {
            lookup,
            accounts,
            chat: verbatim.chat().clone(),
            #[cfg(feature = "search")]
            search: Some(verbatim.search().clone()),
            runtime: Some(verbatim.runtime.clone()),
        }
    }
}

#[async_trait]
impl Service for LocalService {
    async fn admit_tool_call(&self, caller: &Caller) -> Result<(), ServiceError> {
        match self.lookup.admit_tool_call(caller.key.clone(), caller.client).await? {
            None => Ok(()),
            Some(refusal) => {
                let message = match refusal.has_key {
                    true => "Too many tool calls with this API key.",
                    false => "Too many tool calls without an API key from this network.",
                };
                Err(rate_limited(message, Some(refusal.retry_after_ms)))
            }
        }
    }

    async fn look_up(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<LookupReply> {
        let lookup = &self.lookup;
        let (may_fetch, request) = (request.may_fetch, lookup_request(caller, request));
        let response = match may_fetch {
            true => lookup.look_up(request).await,
            false => lookup.look_up_archived(request).await,
        };
        Ok(response.map_err(reference_error)?.into())
    }

    async fn tracks(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<TrackList> {
        let found = self.lookup.languages(lookup_request(caller, request)).await;
        let (response, tracks) = found.map_err(reference_error)?;
        let ServiceReply { body: lookup, meta } = response.into();
        Ok(ServiceReply { body: TrackList { lookup, tracks }, meta })
    }

    #[cfg(feature = "search")]
    async fn search(&self, caller: &Caller, params: SearchParams) -> ServiceResult<SearchResponse> {
        let Some(search) = &self.search else {
            return Err(ServiceError::unsupported("This service has no search in the whole archive."));
        };
        let admission = self.lookup.admit_search(caller.key.clone(), caller.client, false).await?;
        if let SearchAdmission::Limited { retry_after_ms } = admission {
            return Err(rate_limited("Too many searches.", Some(retry_after_ms)));
        }
        let page = search.search(&params).await?;
        let watch_url = |hit: &SearchResult| {
            let link = VideoLink::Video(hit.stored.transcript.video.clone());
            self.lookup.options().watch_url(&link, None)
        };
        Ok(SearchResponse::new(&params.query, &page, watch_url).into())
    }

    async fn transcript(
        &self,
        caller: &Caller,
        request: TranscriptParams,
    ) -> ServiceResult<StoredTranscript> {
        let TranscriptParams { video_id, url, lang, any_language, translated, .. } = &request;
        let mut fingerprint = format!("{:?}", (video_id, url, lang, translated)).into_bytes();
        if *any_language {
            fingerprint.extend(b" any language");
        }
        let link = video_id.as_deref().or(url.as_deref()).and_then(|link| VideoLink::parse(link).ok());
        let key = caller.idempotency_key.clone();
        let guard = match self.admit(V1Endpoint::Transcript, caller, key, fingerprint).await? {
            Ok(guard) => guard,
            Err(replayed) => {
                let body: VideoTranscript = read(&replayed)?;
                let details = Arc::new(body.details());
                let transcript = body.into_transcript(SERVICE_SUPPLIER).map_err(defect)?;
                let body = StoredTranscript { details, ..unarchived(transcript) };
                return Ok(ServiceReply { body, meta: replay_meta(&replayed) });
            }
        };
        let failed = |error| self.video_error(error, link.clone(), caller);
        let ready = self.accounts.delivery.transcript(guard, request).await.map_err(failed)?;
        let stored = ready.stored.clone();
        let meta = ResponseMeta {
            credits_remaining: ready.credits_remaining,
            credits_charged: Some(self.accounts.options().credits_per_transcript),
            is_cached: Some(ready.from_cache),
            ..ResponseMeta::default()
        };
        // A replay returns what the first call did.
        let view = TranscriptView { words: true, description: true, ..TranscriptView::default() };
        let response = stored_response(caller, &meta, || VideoTranscript::json(&stored, None, view))?;
        let delivered = ready.deliver(response).await.map_err(failed)?;
        // A long transcript is made again for a replay.
        let is_replayed = delivered.header(IDEMPOTENT_REPLAYED).is_some();
        let meta = if is_replayed { replay_meta(&delivered) } else { meta };
        Ok(ServiceReply { body: stored, meta })
    }

    async fn chat(&self, caller: &Caller, request: ServiceQuestion) -> ServiceResult<ChatAnswer> {
        let question = request.to_wire()?;
        let fingerprint =
            serde_json::to_vec(&question).map_err(|_| defect("a question cannot be encoded as JSON"))?;
        let key = caller.idempotency_key.clone();
        let guard = match self.admit(V1Endpoint::Chat, caller, key, fingerprint).await? {
            Ok(guard) => guard,
            Err(replayed) => {
                return Ok(ServiceReply { body: read(&replayed)?, meta: replay_meta(&replayed) });
            }
        };
        let link = VideoLink::parse(&question.video_id).ok();
        let failed = |error| self.video_error(error, link.clone(), caller);
        let ServiceQuestion { message, history, .. } = request;
        let params = ChatParams { video_id: question.video_id, message, history };
        let (caller_copy, cost) = (caller.clone(), self.accounts.options().credits_per_message);
        let render = move |ready: &PreparedChat| {
            let answer = ChatAnswer::from(ready);
            let meta = ResponseMeta {
                credits_remaining: Some(ready.credits.remaining),
                credits_charged: Some(cost),
                is_cached: Some(ready.from_cache),
                ..ResponseMeta::default()
            };
            // A response with an error is neither stored nor charged.
            match stored_response(&caller_copy, &meta, || serde_json::to_vec(&answer)) {
                Ok(response) => (response, Ok(ServiceReply { body: answer, meta })),
                Err(error) => (unstored(500), Err(error)),
            }
        };
        let delivered = self.accounts.delivery.chat(guard, &self.chat, params, render).await;
        let (_, reply) = delivered.map_err(failed)?;
        reply
    }

    async fn create_key(&self, caller: &Caller, request: KeyRequest) -> ServiceResult<CreateKeyResponse> {
        let KeyRequest { label, email } = request;
        let origin = match caller.client {
            Some(client) => KeyOrigin::Network(Some(client)),
            None => KeyOrigin::Operator,
        };
        let request = CreateKeyRequest {
            label,
            email,
            proof: caller.proof.clone(),
            origin,
            access: KeyAccess::default(),
        };
        match self.lookup.keys().create(request).await? {
            CreateKeyOutcome::Created(created) => Ok(CreateKeyResponse::from(&created).into()),
            CreateKeyOutcome::Invalid(error) => Err(Error::invalid(error.to_string()).into()),
            CreateKeyOutcome::SubjectFull { limit, retry_after_ms } => {
                let message = format!("This plan already has {limit} active keys, the maximum.");
                Err(rate_limited(message, retry_after_ms))
            }
            CreateKeyOutcome::Limited { retry_after_ms } => {
                Err(rate_limited("Too many keys were created. Retry later.", Some(retry_after_ms)))
            }
        }
    }

    async fn key_status(&self, caller: &Caller) -> ServiceResult<KeyStatus> {
        let key = caller.key.as_deref().unwrap_or_default();
        match self.lookup.keys().status(key, caller.proof.as_ref()).await? {
            Some(status) => Ok(KeyStatus::from(&status).into()),
            None => Err(ServiceError::rejected(401, "Unknown API key.")),
        }
    }

    async fn register(&self, caller: &Caller, request: RegisterRequest) -> ServiceResult<RegisterResponse> {
        self.accounts.keys.register(&request.email, caller.client).await?;
        let message = "A verification email is on its way.".to_owned();
        Ok(RegisterResponse { success: true, message }.into())
    }

    async fn verify(&self, caller: &Caller, token: String, confirmed: bool) -> ServiceResult<VerifyResponse> {
        match self.accounts.keys.verify(&token, confirmed, caller.client).await? {
            VerifyOutcome::Issued(issued) => Ok(VerifyResponse::from(&issued).into()),
            VerifyOutcome::NeedsConfirmation => {
                let message = "The account has an active key. Confirm to replace it.";
                Err(ServiceError::rejected(409, message))
            }
        }
    }

    async fn me(&self, caller: &Caller) -> ServiceResult<AccountInfo> {
        let guard = self.admit_unkeyed(V1Endpoint::Me, caller).await?;
        Ok(AccountInfo::from(&self.accounts.credits.profile(guard).await?).into())
    }

    async fn rotate_key(&self, caller: &Caller) -> ServiceResult<RotateKeyResponse> {
        let guard = self.admit_unkeyed(V1Endpoint::RotateKey, caller).await?;
        Ok(RotateKeyResponse::from(&self.accounts.keys.rotate(guard).await?).into())
    }

    async fn start_job(&self, caller: &Caller, request: JobRequest) -> ServiceResult<JobInfo> {
        let fingerprint =
            serde_json::to_vec(&request).map_err(|_| defect("a job cannot be encoded as JSON"))?;
        let key = caller.idempotency_key.clone();
        let guard = match self.admit(V1Endpoint::StartJob, caller, key, fingerprint).await? {
            Ok(guard) => guard,
            Err(replayed) => {
                return Ok(ServiceReply { body: read(&replayed)?, meta: replay_meta(&replayed) });
            }
        };
        let created = self.accounts.jobs.create(guard, job_params(request)).await?;
        let info = job_info(&self.accounts, &created.view);
        let response = stored_response(caller, &ResponseMeta::default(), || serde_json::to_vec(&info))?;
        created.deliver(StoredResponse { status: 202, ..response }).await?;
        Ok(info.into())
    }

    async fn job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        let guard = self.admit_unkeyed(V1Endpoint::ReadJobs, caller).await?;
        let view = self.accounts.jobs.job(guard, id.as_str()).await?;
        Ok(job_info(&self.accounts, &view).into())
    }

    async fn jobs(&self, caller: &Caller, page: PageRequest) -> ServiceResult<JobList> {
        let guard = self.admit_unkeyed(V1Endpoint::ReadJobs, caller).await?;
        let found = self.accounts.jobs.list(guard, page).await?;
        let jobs = found.jobs.iter().map(|view| job_info(&self.accounts, view)).collect();
        let next_cursor = found.next.map(|next| next.as_str().to_owned());
        Ok(JobList { success: true, jobs, next_cursor }.into())
    }

    async fn job_results(&self, caller: &Caller, id: &JobId, page: PageRequest) -> ServiceResult<JobResults> {
        let guard = self.admit_unkeyed(V1Endpoint::ReadJobs, caller).await?;
        let from = page.after.map_or(Ok(0), |cursor| ResultsPage::position(cursor.as_str()))?;
        let found = self.accounts.jobs.results(guard, id.as_str(), from, page.limit).await?;
        Ok(job_results(&self.accounts, found).await?.into())
    }

    async fn cancel_job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        let guard = self.admit_unkeyed(V1Endpoint::CancelJob, caller).await?;
        let view = self.accounts.jobs.cancel(guard, id.as_str()).await?;
        Ok(job_info(&self.accounts, &view).into())
    }

    async fn job_deliveries(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobDeliveries> {
        let guard = self.admit_unkeyed(V1Endpoint::ReadJobs, caller).await?;
        let (job, log) = self.accounts.webhooks.deliveries(guard, id.as_str()).await?;
        Ok(JobDeliveries::new(&job, &log).into())
    }

    async fn webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        let guard = self.admit_unkeyed(V1Endpoint::WebhookSecret, caller).await?;
        Ok(WebhookSecretInfo::from(&self.accounts.webhooks.secret(guard).await?).into())
    }

    async fn rotate_webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        let guard = self.admit_unkeyed(V1Endpoint::RotateWebhookSecret, caller).await?;
        Ok(WebhookSecretInfo::from(&self.accounts.webhooks.rotate_secret(guard).await?).into())
    }
}

fn lookup_request(caller: &Caller, request: ServiceLookup) -> LookupRequest {
    LookupRequest {
        language: request.language,
        translated: request.translated,
        src: caller.src,
        key: caller.key.clone(),
        proof: caller.proof.clone(),
        client: caller.client,
        default_only: request.default_only,
        ..LookupRequest::new(request.reference)
    }
}

fn reference_error(error: ReferenceError) -> ServiceError {
    Error::invalid(error.message).into()
}

#[cold]
fn defect(what: &str) -> ServiceError {
    ServiceError { kind: ServiceErrorKind::ServerError, ..ServiceError::rejected(500, what) }
}

/// The rejection by a rate limit. Its wait is in whole seconds, as over HTTP.
fn rate_limited(message: impl Into<String>, retry_after_ms: Option<u64>) -> ServiceError {
    let wait = retry_after_ms.map(Duration::from_millis).map(ceil_seconds).map(Duration::from_secs);
    ServiceError::rejected(429, message).with_retry_after(wait)
}

/// The response for the idempotency store, with a JSON body; an empty one for a request that is not stored.
fn stored_response<E>(
    caller: &Caller,
    meta: &ResponseMeta,
    body: impl FnOnce() -> Result<Vec<u8>, E>,
) -> Result<StoredResponse, ServiceError> {
    if caller.idempotency_key.is_none() {
        return Ok(unstored(200));
    }
    let body = body().map_err(|_| defect("a response cannot be encoded as JSON"))?;
    let response = StoredResponse::json(200, body);
    Ok(match meta.is_cached {
        Some(is_cached) => response.with_origin(is_cached, meta.credits_remaining),
        None => response,
    })
}

/// A response without content.
fn unstored(status: u16) -> StoredResponse {
    StoredResponse { status, headers: Vec::new(), body: Vec::new() }
}

fn read<T: DeserializeOwned>(response: &StoredResponse) -> Result<T, ServiceError> {
    serde_json::from_slice(&response.body).map_err(|_| defect("a stored response cannot be decoded"))
}

/// Metadata of a replayed response, which costs nothing.
fn replay_meta(response: &StoredResponse) -> ResponseMeta {
    ResponseMeta {
        credits_remaining: response.header(X_CREDITS_REMAINING).and_then(|left| left.parse().ok()),
        is_cached: response.header(X_CACHE).map(|cache| cache == "HIT"),
        is_replayed: true,
        ..ResponseMeta::default()
    }
}
