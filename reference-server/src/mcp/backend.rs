//! Backend port of the tools, implemented by a service and by the user's archive.

use std::{fmt, net::IpAddr, time::Duration};

use async_trait::async_trait;
use http::request::Parts;
use rmcp::model::Extensions;
use transcript_core::{
    Error, ErrorKind,
    accounts::V1Error,
    archive::{ArchivedTrack, StoredTranscript},
    chat::Chat,
    lookup::{Availability, EntitlementProof, LookupResponse, ReferenceError, VideoReference},
    transcript::LanguageTag,
    wire::v1::ChatCitation,
};

use crate::api::{ClientAddress, bearer, idempotency_key, proof};

/// Source of transcripts, languages and answers.
///
/// # Cancellation
/// Dropping a future releases its holds; undelivered results are not charged.
#[async_trait]
pub(super) trait ToolBackend: fmt::Debug + Send + Sync + 'static {
    /// Gets the requested transcript.
    async fn transcript(
        &self,
        query: TranscriptQuery,
        caller: ToolCaller,
    ) -> Result<ToolTranscript, ToolError>;

    /// Lists the known languages of a video.
    async fn languages(&self, video: String, caller: ToolCaller) -> Result<LanguageList, ToolError>;

    /// Answers a question about a video.
    async fn answer(
        &self,
        video: String,
        question: String,
        caller: ToolCaller,
    ) -> Result<ToolAnswer, ToolError>;

    /// The chat service, which also searches transcripts.
    fn chat(&self) -> &Chat;
}

/// Caller of a tool, from the headers of the request.
/// On standard input and output all fields are `None`.
#[derive(Clone, Default)]
pub(crate) struct ToolCaller {
    /// Bearer credential, if sent.
    pub(super) key: Option<String>,
    /// Proof of a paid plan, if sent.
    pub(super) proof: Option<EntitlementProof>,
    /// The header `Idempotency-Key`, if sent.
    pub(super) idempotency_key: Option<String>,
    /// Network address of the caller, if known.
    pub(super) client: Option<IpAddr>,
}

impl fmt::Debug for ToolCaller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys stay out of logs.
        f.debug_struct("ToolCaller").finish_non_exhaustive()
    }
}

impl ToolCaller {
    /// Reads the caller from the HTTP request of a message.
    pub(super) fn from_extensions(extensions: &Extensions) -> Self {
        let Some(parts) = extensions.get::<Parts>() else { return Self::default() };
        Self {
            key: bearer(&parts.headers),
            proof: proof(&parts.headers),
            idempotency_key: idempotency_key(&parts.headers),
            client: parts.extensions.get::<ClientAddress>().map(|address| address.0),
        }
    }
}

/// Requested transcript.
#[derive(Clone, Debug)]
pub(super) struct TranscriptQuery {
    /// Link or id of the video.
    pub(super) video: String,
    /// Language; `None`: English if available, else the spoken language.
    pub(super) language: Option<LanguageTag>,
    /// Whether a transcript that is not archived may be fetched and paid for.
    pub(super) may_fetch: bool,
}

impl TranscriptQuery {
    /// Creates a query for this video and, if given, this language.
    pub(super) fn new(video: &str, lang: Option<&str>) -> Result<Self, ToolError> {
        // Models send empty strings for optional arguments.
        let lang = lang.map(str::trim).filter(|lang| !lang.is_empty());
        let language = lang.map(LanguageTag::parse).transpose();
        let language = language.map_err(|error| ToolError::invalid(format!("lang: {error}")))?;
        Ok(Self { video: video.to_owned(), language, may_fetch: false })
    }

    /// Reference to the video.
    pub(super) fn reference(&self) -> VideoReference {
        VideoReference::Url(self.video.clone())
    }
}

/// Transcript as a tool result.
#[derive(Clone, Debug)]
pub(super) struct ToolTranscript {
    /// The transcript.
    pub(super) stored: StoredTranscript,
    /// Watch page of the video.
    pub(super) watch_url: String,
    /// What it cost, and how it differs from the request, as whole sentences.
    pub(super) notes: Vec<String>,
}

/// Languages of a video.
#[derive(Clone, Debug)]
pub(super) struct LanguageList {
    /// Transcript of the default track, which has the video's title and author.
    pub(super) stored: StoredTranscript,
    /// Tracks of the video.
    pub(super) tracks: Vec<ArchivedTrack>,
    /// Watch page of the video.
    pub(super) watch_url: String,
}

/// Answer to a question about a video.
#[derive(Clone, Debug)]
pub(super) struct ToolAnswer {
    /// The answer, with a marker for each cited passage.
    pub(super) response: String,
    /// The cited passages.
    pub(super) citations: Vec<ChatCitation>,
    /// Share of the transcript that was read for the answer, from 0 to 1.
    pub(super) coverage: f64,
    /// What it cost, as whole sentences.
    pub(super) notes: Vec<String>,
}

/// Failure of a tool call.
#[derive(Clone, Debug)]
pub(super) enum ToolError {
    /// The lookup finished, and there is no transcript: the expected answer to a valid request.
    Missing {
        /// Failure reason, as on the wire.
        reason: &'static str,
        /// Failure reason, as a sentence.
        message: String,
        /// Watch page of the video.
        watch_url: String,
        /// Time after which a retry may succeed, if known.
        retry_after: Option<Duration>,
    },
    /// The call is invalid, was rejected, or failed.
    Refused {
        /// HTTP status code of the failure.
        code: u16,
        /// Sentence that says what the caller can do.
        message: String,
        /// Watch page, if the call names a video.
        watch_url: Option<String>,
    },
}

impl ToolError {
    /// An argument is invalid; the message begins with its name.
    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::Refused { code: 400, message: message.into(), watch_url: None }
    }

    /// Internal error. The details are in the log.
    pub(super) fn fault() -> Self {
        let message = "Internal server error. Retry in a few seconds.".to_owned();
        Self::Refused { code: 500, message, watch_url: None }
    }

    /// Converts an error of the core: invalid arguments are described, internal errors are not.
    pub(super) fn from_error(error: &Error) -> Self {
        if error.kind() == ErrorKind::Invalid {
            return Self::invalid(error.message());
        }
        tracing::error!(%error, "MCP tool failed");
        Self::fault()
    }

    /// Converts an error of the v1 API about a video with a watch page.
    pub(super) fn from_v1_error(error: &V1Error, watch_url: String) -> Self {
        let watch_url = matches!(error, V1Error::NotFound(_)).then_some(watch_url);
        Self::Refused { code: error.code(), message: error.message().to_owned(), watch_url }
    }

    /// Converts an invalid video reference.
    pub(super) fn from_reference(reference: &ReferenceError) -> Self {
        Self::invalid(format!("video: {}", reference.message))
    }
}

/// Returns the transcript, watch page and `from_cache` of a lookup response, or the failure.
pub(super) fn available(answer: LookupResponse) -> Result<(StoredTranscript, String, bool), ToolError> {
    match answer.availability {
        Availability::Available { stored, from_cache } => Ok((stored, answer.watch_url, from_cache)),
        Availability::Unavailable { reason, message, retry_after, .. } => Err(ToolError::Missing {
            reason: reason.as_str(),
            message,
            watch_url: answer.watch_url,
            retry_after,
        }),
    }
}
