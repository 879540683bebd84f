//! Both APIs of a server as a [`Service`] (specification 4.1 to 4.11).
//!
//! Reads are retried after transient errors. A charged call has an idempotency key, so that retries are charged once.
//! A call that creates a key, sends a mail or rotates a key is sent once. If the outcome of a charged call stays
//! unknown, its error has the idempotency key.

use std::{borrow::Cow, sync::Arc};

use async_trait::async_trait;
use http::{HeaderValue, Method, header};
use serde::de::DeserializeOwned;
use transcript_core::{
    PageRequest, Result,
    accounts::TranscriptParams,
    archive::StoredTranscript,
    ids::JobId,
    search::SearchParams,
    service::{
        Caller, LookupReply, SERVICE_SUPPLIER, Service, ServiceError, ServiceLookup, ServiceQuestion,
        ServiceReply, ServiceResult, TextFormat, TextResponse, unarchived,
    },
    wire::{
        lookup::{CreateKeyResponse, KeyRequest, KeyStatus},
        search::SearchResponse,
        v1::{
            AccountInfo, BuyCreditsRequest, ChatAnswer, CreditsCheckout, JobDeliveries, JobInfo, JobList,
            JobRequest, JobResults, PlanCheckout, RegisterRequest, RegisterResponse, RotateKeyResponse,
            SubscribeRequest, VerifyResponse, VideoTranscript, WebhookSecretInfo,
        },
    },
};

use super::{
    IdempotencyKey, ServiceClient,
    api::{ServiceCall, ServiceConnection, ServiceResponse, TRANSCRIPT_MAX},
    call_error::CallError,
    lookup::{lookup, lookup_reply, text_reply, with_proof},
    retries::RetrySafety,
};

/// The path of jobs.
const JOBS: &[&str] = &["api", "v1", "jobs"];
/// The longest id of a job.
const JOB_ID_MAX: usize = 64;

impl ServiceClient {
    /// The connection with the caller's key.
    fn connection(&self, caller: &Caller) -> Result<Cow<'_, ServiceConnection>> {
        Ok(match &caller.key {
            Some(key) => Cow::Owned(self.api.with_key(key)?),
            None => Cow::Borrowed(&self.api),
        })
    }

    /// Sends a call with the caller's key, and reads its response.
    async fn send<T>(
        &self,
        caller: &Caller,
        call: ServiceCall,
        read: impl FnOnce(ServiceResponse) -> Result<T, CallError> + Send,
    ) -> Result<T, ServiceError> {
        let result = self.connection(caller)?.execute(&call).await.and_then(read);
        result.map_err(|error| call.repeat.service_error(error))
    }

    /// Sends a call and parses its JSON response.
    async fn json<T: DeserializeOwned>(&self, caller: &Caller, call: ServiceCall) -> ServiceResult<T> {
        self.send(caller, call, ServiceResponse::read).await
    }
}

#[async_trait]
impl Service for ServiceClient {
    fn check_key(&self, key: &str) -> Result<()> {
        self.api.with_key(key).map(|_| ())
    }

    async fn look_up(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<LookupReply> {
        let call = with_proof(lookup(&request, caller.src, None), caller)?;
        Ok(lookup_reply(self.json(caller, call).await?)?)
    }

    async fn text(
        &self,
        caller: &Caller,
        request: ServiceLookup,
        format: TextFormat,
    ) -> ServiceResult<TextResponse> {
        let call = with_proof(lookup(&request, caller.src, Some(format)), caller)?;
        self.send(caller, call, |response| text_reply(response, format)).await
    }

    async fn search(&self, caller: &Caller, params: SearchParams) -> ServiceResult<SearchResponse> {
        let SearchParams { query, language, platform, sort, limit, cursor, .. } = params;
        let mut parameters =
            vec![("q", query), ("sort", sort.as_str().to_owned()), ("limit", limit.to_string())];
        parameters.extend(language.map(|language| ("lang", language.as_str().to_owned())));
        parameters.extend(platform.map(|platform| ("platform", platform.as_str().to_owned())));
        parameters.extend(cursor.map(|cursor| ("cursor", cursor)));
        let call = ServiceCall::new(Method::GET, &["api", "search"]);
        self.json(caller, ServiceCall { query: parameters, ..call }).await
    }

    async fn transcript(
        &self,
        caller: &Caller,
        request: TranscriptParams,
    ) -> ServiceResult<StoredTranscript> {
        let TranscriptParams { video_id, url, lang, any_language, translated, view } = request;
        if any_language {
            return Err(ServiceError::unsupported(
                "The v1 API of a server has no request for any language. Name a language.",
            ));
        }
        let translated = translated.then(|| "true".to_owned());
        let parameters = [("video_id", video_id), ("url", url), ("lang", lang), ("translated", translated)];
        let parameters = parameters.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let query = parameters.chain(view.parameters("max_chars")).collect();
        let call = ServiceCall::new(Method::GET, &["api", "v1", "transcript"]);
        let call = with_idempotency_key(ServiceCall { query, max: TRANSCRIPT_MAX, ..call }, caller)?;
        self.send(caller, call, read_transcript).await
    }

    async fn chat(&self, caller: &Caller, request: ServiceQuestion) -> ServiceResult<ChatAnswer> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "chat"]).with_body(&request.to_wire()?)?;
        self.json(caller, with_idempotency_key(call, caller)?).await
    }

    async fn create_key(&self, caller: &Caller, request: KeyRequest) -> ServiceResult<CreateKeyResponse> {
        let call = ServiceCall::new(Method::POST, &["api", "keys"]).with_body(&request)?;
        let call = ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call };
        self.json(caller, with_proof(call, caller)?).await
    }

    async fn key_status(&self, caller: &Caller) -> ServiceResult<KeyStatus> {
        let call = ServiceCall::new(Method::GET, &["api", "keys", "me"]);
        self.json(caller, with_proof(call, caller)?).await
    }

    async fn register(&self, caller: &Caller, request: RegisterRequest) -> ServiceResult<RegisterResponse> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "register"]).with_body(&request)?;
        self.json(caller, ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call }).await
    }

    async fn verify(&self, caller: &Caller, token: String, confirmed: bool) -> ServiceResult<VerifyResponse> {
        let method = if confirmed { Method::POST } else { Method::GET };
        let call = ServiceCall::new(method, &["api", "v1", "verify"]);
        let mut call = match confirmed {
            // In the body the token does not appear in access logs.
            true => call.with_body(&serde_json::json!({ "token": token }))?,
            false => ServiceCall { query: vec![("token", token)], ..call },
        };
        // Requests JSON instead of a page.
        call.headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        // The key is shown once: a retry would lose it.
        self.json(caller, ServiceCall { is_keyed: false, repeat: RetrySafety::Never, ..call }).await
    }

    async fn me(&self, caller: &Caller) -> ServiceResult<AccountInfo> {
        self.json(caller, ServiceCall::new(Method::GET, &["api", "v1", "me"])).await
    }

    async fn rotate_key(&self, caller: &Caller) -> ServiceResult<RotateKeyResponse> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "rotate-key"]);
        // If the response is lost, a verification email restores access.
        self.json(caller, ServiceCall { repeat: RetrySafety::Never, ..call }).await
    }

    async fn subscribe(&self, caller: &Caller, request: SubscribeRequest) -> ServiceResult<PlanCheckout> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "subscribe"]).with_body(&request)?;
        self.json(caller, with_idempotency_key(call, caller)?).await
    }

    async fn buy_credits(
        &self,
        caller: &Caller,
        request: BuyCreditsRequest,
    ) -> ServiceResult<CreditsCheckout> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "buy-credits"]).with_body(&request)?;
        self.json(caller, with_idempotency_key(call, caller)?).await
    }

    async fn start_job(&self, caller: &Caller, request: JobRequest) -> ServiceResult<JobInfo> {
        let call = ServiceCall::new(Method::POST, JOBS).with_body(&request)?;
        self.json(caller, with_idempotency_key(call, caller)?).await
    }

    async fn job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        self.json(caller, job_call(Method::GET, id, None)?).await
    }

    async fn jobs(&self, caller: &Caller, page: PageRequest) -> ServiceResult<JobList> {
        let call = ServiceCall::new(Method::GET, JOBS);
        self.json(caller, ServiceCall { query: page_query(page), ..call }).await
    }

    async fn job_results(
        &self,
        caller: &Caller,
        id: &JobId,
        mut page: PageRequest,
    ) -> ServiceResult<JobResults> {
        let api = self.connection(caller)?;
        let mut call = ServiceCall { max: TRANSCRIPT_MAX, ..job_call(Method::GET, id, Some("results"))? };
        loop {
            call.query = page_query(page.clone());
            match api.execute(&call).await {
                // The server bounds the number of items and not their size. A cursor is good for any number.
                Err(CallError::TooLarge) if page.limit > 1 => page.limit /= 2,
                result => return Ok(result.and_then(ServiceResponse::read)?),
            }
        }
    }

    async fn cancel_job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        self.json(caller, job_call(Method::DELETE, id, None)?).await
    }

    async fn job_deliveries(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobDeliveries> {
        self.json(caller, job_call(Method::GET, id, Some("deliveries"))?).await
    }

    async fn webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        self.json(caller, ServiceCall::new(Method::GET, &["api", "v1", "webhook-secret"])).await
    }

    async fn rotate_webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        let call = ServiceCall::new(Method::POST, &["api", "v1", "webhook-secret", "rotate"]);
        // A second rotation would end the secret that is still in use.
        self.json(caller, ServiceCall { repeat: RetrySafety::Never, ..call }).await
    }
}

fn read_transcript(response: ServiceResponse) -> Result<ServiceReply<StoredTranscript>, CallError> {
    let ServiceReply { body, meta } = response.read::<VideoTranscript>()?;
    let details = Arc::new(body.details());
    let transcript = body.into_transcript(SERVICE_SUPPLIER).map_err(CallError::Unreadable)?;
    Ok(ServiceReply { body: StoredTranscript { details, ..unarchived(transcript) }, meta })
}

/// A call about a job. A segment of a path may be no text that a URL resolves, such as `..`.
fn job_call(method: Method, id: &JobId, part: Option<&'static str>) -> Result<ServiceCall, CallError> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if !(1..=JOB_ID_MAX).contains(&id.as_str().len()) || !id.as_str().bytes().all(is_plain) {
        return Err(CallError::Invalid("its id is not the id of a job"));
    }
    let mut call = ServiceCall::new(method, JOBS);
    call.path.push(Cow::Owned(id.as_str().to_owned()));
    call.path.extend(part.map(Cow::Borrowed));
    Ok(call)
}

fn page_query(page: PageRequest) -> Vec<(&'static str, String)> {
    let after = page.after.map(|after| ("cursor", after.as_str().to_owned()));
    after.into_iter().chain([("limit", page.limit.to_string())]).collect()
}

/// Adds the caller's idempotency key to a call, or a random one.
fn with_idempotency_key(call: ServiceCall, caller: &Caller) -> Result<ServiceCall, CallError> {
    let key = match &caller.idempotency_key {
        Some(key) => IdempotencyKey::new(key.as_str())?,
        None => IdempotencyKey::random(),
    };
    Ok(ServiceCall { repeat: RetrySafety::Keyed(key), ..call })
}
