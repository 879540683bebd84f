//! The argument `lang`, and requests in several languages.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
    types::PyString,
};
use transcript_core::{
    Error,
    accounts::TranscriptParams,
    archive::{StoredTranscript, view::TranscriptView},
    engine::FailureReason,
    supplier::SupplyReason,
    transcript::LanguageTag,
};
use verbatim::service::{
    Caller, LookupReply, Service, ServiceError, ServiceErrorKind, ServiceLookup, ServiceReply, ServiceResult,
    TextFormat, TextResponse,
};

use crate::exceptions::core_exception;

/// The most languages of a lookup.
const LOOKUPS_MAX: usize = 16;
/// The detail of [`FailureReason::NeedsVerification`] for a key that has expired.
const EXPIRED: &str = "expired";

/// Languages in order of preference: one, or several.
pub(crate) struct Languages(Vec<String>);

impl FromPyObject<'_, '_> for Languages {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        if let Ok(one) = value.cast::<PyString>() {
            return Ok(Self(vec![one.to_str()?.to_owned()]));
        }
        value.extract().map(Self).map_err(|_| {
            let kind = value.get_type();
            PyTypeError::new_err(format!("lang must be a language, a list of languages, or None, not {kind}"))
        })
    }
}

impl Languages {
    /// The languages in order.
    ///
    /// # Errors
    /// `ValueError` if there is none.
    pub(crate) fn into_list(self) -> PyResult<Vec<String>> {
        if self.0.is_empty() {
            return Err(PyValueError::new_err("lang must be a language, a list of at least one, or None"));
        }
        Ok(self.0)
    }

    /// The languages of a lookup in order; none for its default track.
    ///
    /// # Errors
    /// `ValueError` if there is none, `InvalidInput` for a malformed one.
    pub(crate) fn parse_tags(py: Python<'_>, languages: Option<Self>) -> PyResult<Vec<LanguageTag>> {
        let languages = languages.map_or(Ok(Vec::new()), Self::into_list)?;
        if languages.len() > LOOKUPS_MAX {
            let message = format!("lang: it has {} languages; at most {LOOKUPS_MAX}", languages.len());
            return Err(core_exception(py, &Error::invalid(message)));
        }
        let parse = |tag: &String| LanguageTag::parse(tag).map_err(|error| core_exception(py, &error));
        languages.iter().map(parse).collect()
    }
}

/// Requests one language after another, or the default track if there is none, until a reply is final. The reply to the
/// last language always is.
async fn first<L, T, F>(
    languages: Vec<L>,
    request: impl Fn(Option<L>) -> F,
    is_final: impl Fn(&ServiceResult<T>) -> bool,
) -> ServiceResult<T>
where
    F: Future<Output = ServiceResult<T>>,
{
    let mut languages = languages.into_iter().peekable();
    loop {
        let reply = request(languages.next()).await;
        if is_final(&reply) || languages.peek().is_none() {
            return reply;
        }
    }
}

/// Requests one language after another while the response is 404, which charges nothing.
///
/// A 404 of a call whose outcome is unknown is the reply: the language may have been charged.
pub(crate) async fn first_available(
    service: &dyn Service,
    caller: &Caller,
    link: String,
    languages: Vec<String>,
) -> ServiceResult<StoredTranscript> {
    let view = TranscriptView { words: true, description: true, ..TranscriptView::default() };
    let params =
        |lang| TranscriptParams { url: Some(link.clone()), lang, view, ..TranscriptParams::default() };
    let request = |language| service.transcript(caller, params(language));
    let is_missing =
        |error: &ServiceError| error.kind == ServiceErrorKind::NotFound && error.idempotency_key.is_none();
    first(languages, request, |reply| !reply.as_ref().is_err_and(is_missing)).await
}

/// Looks up one language after another until there is a transcript.
///
/// A failure that is not about the language is the reply: another language would fail for the same reason.
pub(crate) async fn look_up_first(
    service: &dyn Service,
    caller: &Caller,
    lookup: ServiceLookup,
    languages: Vec<LanguageTag>,
) -> ServiceResult<LookupReply> {
    let request = |language| service.look_up(caller, ServiceLookup { language, ..lookup.clone() });
    let is_final = |reply: &ServiceReply<LookupReply>| {
        let reason = reply.body.result.failure_reason.as_deref();
        let detail = reply.meta.failure_detail.as_deref().or(reason);
        reply.body.transcript.is_some() || !detail.is_some_and(is_about_language)
    };
    first(languages, request, |reply| reply.as_ref().map_or(true, is_final)).await
}

/// Whether there may be a transcript in another language, after this failure detail, or this reason without a detail.
///
/// An unknown detail ends the search: a text response has no reason next to it, and the next request may be charged.
fn is_about_language(detail: &str) -> bool {
    let reason = FailureReason::from_wire(detail);
    SupplyReason::is_video_detail(detail)
        || detail == EXPIRED
        || matches!(reason, Some(FailureReason::NoCaptions | FailureReason::NeedsVerification))
}

/// As [`look_up_first`], as text.
///
/// The response to a caller without a key has neither a detail nor a reason, and is free.
pub(crate) async fn text_first(
    service: &dyn Service,
    caller: &Caller,
    lookup: ServiceLookup,
    format: TextFormat,
    languages: Vec<LanguageTag>,
) -> ServiceResult<TextResponse> {
    let request = |language| service.text(caller, ServiceLookup { language, ..lookup.clone() }, format);
    let is_missing = |reply: &ServiceReply<TextResponse>| {
        matches!(reply.body, TextResponse::Missing { is_allowance_spent: false, .. })
            && reply.meta.failure_detail.as_deref().is_none_or(is_about_language)
    };
    first(languages, request, |reply| !reply.as_ref().is_ok_and(is_missing)).await
}
