//! What the tools work with: transcripts, languages and answers, of a service or of one's own archive.

use std::{fmt, net::IpAddr, time::Duration};

use async_trait::async_trait;
use http::request::Parts;
use rmcp::model::Extensions;
use transcript_core::{
    Error, ErrorKind,
    accounts::Refused,
    archive::{ArchivedTrack, StoredTranscript},
    chat::Chat,
    lookup::{Availability, BadReference, LookupAnswer, Proof, Reference},
    transcript::LanguageTag,
    wire::v1::ChatCitation,
};

use crate::{
    http::ClientAddress,
    routes::{bearer, proof, v1::door::idempotency_key},
};

/// Where transcripts, languages and answers come from.
///
/// # Cancellation
/// Dropping a future gives back what it took; nothing is charged that was not delivered.
#[async_trait]
pub(super) trait Source: fmt::Debug + Send + Sync + 'static {
    /// The transcript that is wanted.
    async fn transcript(&self, wanted: Wanted, caller: Caller) -> Result<Got, No>;

    /// The languages that a video is known to have.
    async fn languages(&self, video: String, caller: Caller) -> Result<Languages, No>;

    /// An answer about a video.
    async fn ask(&self, video: String, question: String, caller: Caller) -> Result<Told, No>;

    /// Who searches transcripts.
    fn chat(&self) -> &Chat;
}

/// Who calls a tool: the headers of the request say it. On standard input and output nobody is told from anybody.
#[derive(Clone, Default)]
pub(crate) struct Caller {
    /// The text of the bearer credential, where one came.
    pub(super) key: Option<String>,
    /// A proof of a paid plan, where one came.
    pub(super) proof: Option<Proof>,
    /// The header `Idempotency-Key`, where one came.
    pub(super) idempotency_key: Option<String>,
    /// The caller's network address, where it is known.
    pub(super) client: Option<IpAddr>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Keys stay out of logs.
        f.debug_struct("Caller").finish_non_exhaustive()
    }
}

impl Caller {
    /// Whoever sent the request that a message came in.
    pub(super) fn of(extensions: &Extensions) -> Self {
        let Some(parts) = extensions.get::<Parts>() else { return Self::default() };
        Self {
            key: bearer(&parts.headers),
            proof: proof(&parts.headers),
            idempotency_key: idempotency_key(&parts.headers),
            client: parts.extensions.get::<ClientAddress>().map(|address| address.0),
        }
    }
}

/// Which transcript is wanted.
#[derive(Clone, Debug)]
pub(super) struct Wanted {
    /// The video.
    pub(super) video: String,
    /// Its language; none: English where there is English, else the spoken language.
    pub(super) language: Option<LanguageTag>,
    /// Whether it may be fetched, and paid for, where it is not archived.
    pub(super) may_fetch: bool,
}

impl Wanted {
    /// The transcript of this video, in this language where one is named.
    pub(super) fn of(video: &str, lang: Option<&str>) -> Result<Self, No> {
        // Models fill in what may be left out.
        let lang = lang.map(str::trim).filter(|lang| !lang.is_empty());
        let language = lang.map(LanguageTag::parse).transpose();
        let language = language.map_err(|error| No::bad(format!("lang: {error}")))?;
        Ok(Self { video: video.to_owned(), language, may_fetch: false })
    }

    /// The reference to the video.
    pub(super) fn reference(&self) -> Reference {
        Reference::Url(self.video.clone())
    }
}

/// A transcript.
#[derive(Clone, Debug)]
pub(super) struct Got {
    /// The transcript.
    pub(super) stored: StoredTranscript,
    /// Where a person can read it.
    pub(super) watch_url: String,
    /// What it cost, or in what it differs from what was wanted: whole sentences.
    pub(super) notes: Vec<String>,
}

/// The languages of a video.
#[derive(Clone, Debug)]
pub(super) struct Languages {
    /// Its transcript, which names it.
    pub(super) of: StoredTranscript,
    /// Its tracks.
    pub(super) tracks: Vec<ArchivedTrack>,
    /// Where a person can read its transcript.
    pub(super) watch_url: String,
}

/// An answer about a video.
#[derive(Clone, Debug)]
pub(super) struct Told {
    /// The answer, with a marker for each moment that it rests on.
    pub(super) response: String,
    /// Those moments.
    pub(super) citations: Vec<ChatCitation>,
    /// The share of the transcript that was read for it, from 0 to 1.
    pub(super) coverage: f64,
    /// What it cost: whole sentences.
    pub(super) notes: Vec<String>,
}

/// Why a call of a tool does not give what was asked for.
#[derive(Clone, Debug)]
pub(super) enum No {
    /// The look-up is done, and there is no transcript: the answer to a sound question.
    Missing {
        /// Why, in one word of the interface.
        reason: &'static str,
        /// Why, in a sentence.
        message: String,
        /// Where a person can read the transcript.
        watch_url: String,
        /// After how long it may be of use to ask again, where that is known.
        again_after: Option<Duration>,
    },
    /// The call is wrong, was refused, or failed.
    Refused {
        /// The number that HTTP has for it.
        code: u16,
        /// Why, in a sentence that the caller can act on.
        message: String,
        /// Where a person can read the transcript, where there is a video.
        watch_url: Option<String>,
    },
}

impl No {
    /// An argument is wrong; the sentence begins with its name.
    pub(super) fn bad(message: impl Into<String>) -> Self {
        Self::Refused { code: 400, message: message.into(), watch_url: None }
    }

    /// A fault of ours. What it was is for the log.
    pub(super) fn fault() -> Self {
        let message = "Something went wrong on our side: please try again in a moment.".to_owned();
        Self::Refused { code: 500, message, watch_url: None }
    }

    /// An error of the core: what was wrong with the arguments is told, what is wrong with the service is not.
    pub(super) fn of_error(error: &Error) -> Self {
        if error.kind() == ErrorKind::Invalid {
            return Self::bad(error.message());
        }
        tracing::error!(%error, "a tool failed");
        Self::fault()
    }

    /// A refusal of the v1 API about a video whose page is there.
    pub(super) fn of_refused(refused: &Refused, watch_url: String) -> Self {
        let watch_url = matches!(refused, Refused::NotFound(_)).then_some(watch_url);
        Self::Refused { code: refused.code(), message: refused.message().to_owned(), watch_url }
    }

    /// A reference that names no video.
    pub(super) fn of_reference(reference: &BadReference) -> Self {
        Self::bad(format!("video: {}", reference.message))
    }
}

/// The transcript of a look-up's answer, or why there is none.
pub(super) fn available(answer: LookupAnswer) -> Result<(StoredTranscript, String, bool), No> {
    match answer.availability {
        Availability::Available { stored, from_cache } => Ok((stored, answer.watch_url, from_cache)),
        Availability::Unavailable { reason, message, retry_after, .. } => Err(No::Missing {
            reason: reason.as_str(),
            message,
            watch_url: answer.watch_url,
            again_after: retry_after,
        }),
    }
}
