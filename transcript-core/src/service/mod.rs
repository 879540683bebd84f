//! The service as one interface: both APIs, within the process or of a server.
//!
//! Bindings, tools and commands call [`Service`] and do not know which implementation they have: the service within
//! the process, a user's own archive, or the HTTP client of a server. Values are owned, and a transcript is shared
//! instead of serialized. HTTP routes call [`crate::lookup`] and [`crate::accounts`] directly, because they need entity
//! tags, events and stored responses.

mod caller;
mod error;
mod reply;
mod request;

use std::fmt;

use async_trait::async_trait;

pub use caller::Caller;
pub use error::{ServiceError, ServiceErrorKind, ServiceResult};
pub use reply::{
    LookupReply, RateLimit, ResponseMeta, ServiceReply, TextResponse, TrackList, unarchived, v1_transcript,
};
pub use request::{ServiceLookup, ServiceQuestion};

pub use crate::captions::TextFormat;

use crate::{
    accounts::TranscriptParams,
    archive::StoredTranscript,
    error::Result,
    ids::JobId,
    page::PageRequest,
    search::SearchParams,
    wire::{
        lookup::{CreateKeyResponse, KeyRequest, KeyStatus},
        search::SearchResponse,
        v1::{
            AccountInfo, BuyCreditsRequest, ChatAnswer, CreditsCheckout, JobDeliveries, JobInfo, JobList,
            JobRequest, JobResults, PlanCheckout, RegisterRequest, RegisterResponse, RotateKeyResponse,
            SubscribeRequest, VerifyResponse, WebhookSecretInfo,
        },
    },
};

/// The name of a service as a supplier, and the source of its v1 transcripts, which do not name their own.
pub const SERVICE_SUPPLIER: &str = "verbatim-service";

/// The operations of both APIs, for one caller at a time.
///
/// An implementation without an operation inherits the default, which fails with
/// [`ErrorKind::Unsupported`](crate::ErrorKind::Unsupported).
///
/// # Errors
/// Every operation: [`ServiceError`]. An operation that the service refuses charges nothing; a fetch that goes on is
/// charged when it is ready, and the next request gets its transcript. If a server's response was lost, the outcome is
/// unknown, and the error of a charged call has its [`ServiceError::idempotency_key`].
///
/// # Cancellation
/// Dropping a future releases what it holds; a started fetch continues, and its transcript is archived.
#[async_trait]
#[expect(unused_variables, reason = "defaults of what a service may lack")]
pub trait Service: fmt::Debug + Send + Sync + 'static {
    /// Checks the form of a key before it is used. By default every text passes, and a call rejects an unknown key.
    ///
    /// # Errors
    /// [`ErrorKind::Invalid`](crate::ErrorKind::Invalid).
    fn check_key(&self, key: &str) -> Result<()> {
        Ok(())
    }

    /// Admits a call of a tool that reads archived transcripts for free. By default every call passes.
    async fn admit_tool_call(&self, caller: &Caller) -> Result<(), ServiceError> {
        Ok(())
    }

    /// Looks up a transcript. A missing transcript is a reply with a reason and the watch URL.
    async fn look_up(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<LookupReply>;

    /// Looks up a transcript as text, Markdown or subtitles.
    async fn text(
        &self,
        caller: &Caller,
        request: ServiceLookup,
        format: TextFormat,
    ) -> ServiceResult<TextResponse> {
        let ServiceReply { body, mut meta } = self.look_up(caller, request).await?;
        // The text does not name the reason.
        meta.failure_detail = meta.failure_detail.or_else(|| body.result.failure_reason.clone());
        Ok(ServiceReply { body: TextResponse::new(body, format), meta })
    }

    /// Lists the archived and known tracks of a video. It fetches nothing for credits or allowances.
    async fn tracks(&self, caller: &Caller, request: ServiceLookup) -> ServiceResult<TrackList> {
        Err(ServiceError::unsupported("This service does not list the tracks of a video."))
    }

    /// Finds the archived videos whose transcripts match a query, one page a call.
    async fn search(&self, caller: &Caller, params: SearchParams) -> ServiceResult<SearchResponse> {
        Err(no_search())
    }

    /// Returns the transcript of a YouTube video for credits.
    ///
    /// Requests with the same idempotency key are charged once.
    async fn transcript(
        &self,
        caller: &Caller,
        request: TranscriptParams,
    ) -> ServiceResult<StoredTranscript> {
        Err(no_accounts())
    }

    /// Answers a question about a video, for a credit where answers are charged.
    ///
    /// Requests with the same idempotency key are charged once.
    async fn chat(&self, caller: &Caller, request: ServiceQuestion) -> ServiceResult<ChatAnswer>;

    /// Creates a key of the lookup API, which only this reply contains. The caller's own key is not used.
    async fn create_key(&self, caller: &Caller, request: KeyRequest) -> ServiceResult<CreateKeyResponse> {
        Err(no_accounts())
    }

    /// The plan and the remaining allowance of the caller's key; the caller's proof of a paid plan renews it.
    async fn key_status(&self, caller: &Caller) -> ServiceResult<KeyStatus> {
        Err(no_accounts())
    }

    /// Requests a verification email. The reply is the same whether or not the address has an account.
    async fn register(&self, caller: &Caller, request: RegisterRequest) -> ServiceResult<RegisterResponse> {
        Err(no_accounts())
    }

    /// Redeems the token of a verification email for the account's key, which only this reply contains.
    ///
    /// Unless `confirmed`, a token that would replace a key fails with [`ServiceErrorKind::Conflict`].
    async fn verify(&self, caller: &Caller, token: String, confirmed: bool) -> ServiceResult<VerifyResponse> {
        Err(no_accounts())
    }

    /// The account of the caller's key.
    async fn me(&self, caller: &Caller) -> ServiceResult<AccountInfo> {
        Err(no_accounts())
    }

    /// Replaces the caller's key; the old one is invalid at once.
    async fn rotate_key(&self, caller: &Caller) -> ServiceResult<RotateKeyResponse> {
        Err(no_accounts())
    }

    /// Opens a checkout page for a plan.
    async fn subscribe(&self, caller: &Caller, request: SubscribeRequest) -> ServiceResult<PlanCheckout> {
        Err(no_payments())
    }

    /// Opens a checkout page for a credit pack.
    async fn buy_credits(
        &self,
        caller: &Caller,
        request: BuyCreditsRequest,
    ) -> ServiceResult<CreditsCheckout> {
        Err(no_payments())
    }

    /// Starts a job. Requests with the same idempotency key start one job.
    async fn start_job(&self, caller: &Caller, request: JobRequest) -> ServiceResult<JobInfo> {
        Err(no_jobs())
    }

    /// A job of the caller's account.
    async fn job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        Err(no_jobs())
    }

    /// A page of the jobs of the caller's account, the newest first.
    async fn jobs(&self, caller: &Caller, page: PageRequest) -> ServiceResult<JobList> {
        Err(no_jobs())
    }

    /// A page of the items of a job in the order of their links, with the transcripts so far.
    async fn job_results(&self, caller: &Caller, id: &JobId, page: PageRequest) -> ServiceResult<JobResults> {
        Err(no_jobs())
    }

    /// Cancels a job: what has not started costs nothing.
    async fn cancel_job(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobInfo> {
        Err(no_jobs())
    }

    /// The events of a job, and the attempts to send them.
    async fn job_deliveries(&self, caller: &Caller, id: &JobId) -> ServiceResult<JobDeliveries> {
        Err(no_jobs())
    }

    /// The secret that signs the webhooks of the caller's account.
    async fn webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        Err(no_jobs())
    }

    /// Replaces this secret; for a day the old one signs too.
    async fn rotate_webhook_secret(&self, caller: &Caller) -> ServiceResult<WebhookSecretInfo> {
        Err(no_jobs())
    }
}

fn no_search() -> ServiceError {
    ServiceError::unsupported("This service has no search in the whole archive.")
}

/// A service without accounts has no jobs.
fn no_jobs() -> ServiceError {
    ServiceError::unsupported("This service has no jobs. Use a server.")
}

fn no_accounts() -> ServiceError {
    ServiceError::unsupported("This service has no keys and accounts: everything is free.")
}

/// Only a server has payment pages.
fn no_payments() -> ServiceError {
    ServiceError::unsupported("The service in the process sells nothing. Use a server.")
}
