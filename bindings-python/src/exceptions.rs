//! Conversion of errors to Python exceptions.

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};
use transcript_core::{
    Error, ErrorKind,
    engine::FailureReason,
    transcript::{LanguageTag, TrackInfo, TrackKind, distinct_languages},
    video::VideoLink,
};
use verbatim::{
    UnavailableTranscript,
    service::{ServiceError, ServiceErrorKind},
};

use crate::{
    exception_cause,
    video_list::{self, ListFailure},
    wording::{for_python, with_missing_certificates},
};

/// An error of the bindings.
#[derive(Debug)]
pub(crate) enum BindingError {
    /// There is no transcript.
    Missing(Box<UnavailableTranscript>),
    /// A list of videos was not read.
    List(Box<ListFailure>),
    /// A failed call: a store error, an invalid argument, or a failure of a service.
    Service(ServiceError),
    /// The call was interrupted.
    Interrupted,
    /// The object is closed.
    Closed,
}

impl From<Error> for BindingError {
    fn from(error: Error) -> Self {
        Self::Service(error.into())
    }
}

impl From<ServiceError> for BindingError {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl BindingError {
    pub(crate) fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Missing(missing) => unavailable(py, &missing),
            Self::List(failure) => video_list::list_exception(py, &failure),
            Self::Service(error) => service_exception(py, &error),
            Self::Interrupted => interrupted(),
            Self::Closed => exception(py, "ClosedError", "the object is closed", []),
        }
    }
}

/// The exception of a call that panicked or was aborted.
pub(crate) fn interrupted() -> PyErr {
    PyRuntimeError::new_err("the call was interrupted")
}

/// An attribute of an exception, passed as a keyword argument.
type ErrorAttribute<'a> = (&'a str, Option<AttributeValue<'a>>);

/// The value of an attribute.
pub(crate) enum AttributeValue<'a> {
    Text(&'a str),
    Texts(Vec<&'a str>),
    Seconds(f64),
    Number(u64),
}

/// Creates an exception of the package by calling its Python class.
pub(crate) fn exception<'a>(
    py: Python<'_>,
    class: &str,
    message: &str,
    attributes: impl IntoIterator<Item = ErrorAttribute<'a>>,
) -> PyErr {
    call_python(py, ("verbatim_transcripts._errors", class), message, attributes)
}

/// Creates an exception by calling the Python function that selects its class by the reason.
pub(crate) fn exception_of_reason<'a>(
    py: Python<'_>,
    function: &str,
    message: &str,
    attributes: impl IntoIterator<Item = ErrorAttribute<'a>>,
) -> PyErr {
    call_python(py, ("verbatim_transcripts._reasons", function), message, attributes)
}

/// Creates an exception by calling this function or class of a module.
fn call_python<'a>(
    py: Python<'_>,
    (module, name): (&str, &str),
    message: &str,
    attributes: impl IntoIterator<Item = ErrorAttribute<'a>>,
) -> PyErr {
    let create = || {
        let keywords = PyDict::new(py);
        for (name, value) in attributes {
            match value {
                Some(AttributeValue::Text(text)) => keywords.set_item(name, text)?,
                Some(AttributeValue::Texts(texts)) => keywords.set_item(name, texts)?,
                Some(AttributeValue::Seconds(seconds)) => keywords.set_item(name, seconds)?,
                Some(AttributeValue::Number(number)) => keywords.set_item(name, number)?,
                None => {}
            }
        }
        py.import(module)?.getattr(name)?.call((message,), Some(&keywords))
    };
    create().map_or_else(|error| error, PyErr::from_value)
}

/// The languages of tracks, without machine translations: they are no captions of the video.
fn caption_languages(tracks: &[TrackInfo]) -> Vec<LanguageTag> {
    distinct_languages(tracks.iter().filter(|track| track.kind != TrackKind::Translated))
}

fn unavailable(py: Python<'_>, missing: &UnavailableTranscript) -> PyErr {
    let available = caption_languages(&missing.languages);
    // The function is also for the responses of servers.
    let error = exception_of_reason(
        py,
        "unavailable",
        &for_python(&missing.message),
        [
            ("reason", Some(AttributeValue::Text(missing.reason.as_str()))),
            ("detail", missing.detail.as_deref().map(AttributeValue::Text)),
            ("watch_url", Some(AttributeValue::Text(&missing.watch_url))),
            ("platform", Some(AttributeValue::Text(missing.platform.name()))),
            ("video_id", Some(AttributeValue::Text(&missing.video_id))),
            ("retry_after", missing.retry_after.map(|wait| AttributeValue::Seconds(wait.as_secs_f64()))),
            ("available", Some(AttributeValue::Texts(available.iter().map(LanguageTag::as_str).collect()))),
        ],
    );
    exception_cause::with_cause(py, error, missing.cause.as_ref())
}

/// The error of a call for a link: that of an invalid argument if the service refused a malformed link.
///
/// The link is not parsed before, because a newer server may accept more forms of links.
pub(crate) fn link_error(link: &str, error: ServiceError) -> ServiceError {
    if error.kind == ServiceErrorKind::BadRequest && VideoLink::parse(link).is_err() {
        ServiceError { kind: ServiceErrorKind::Core(ErrorKind::Invalid), ..error }
    } else {
        error
    }
}

/// The exception of a core error. `Invalid` always concerns an argument.
pub(crate) fn core_exception(py: Python<'_>, error: &Error) -> PyErr {
    service_exception(py, &error.clone().into())
}

fn service_exception(py: Python<'_>, error: &ServiceError) -> PyErr {
    use ServiceErrorKind as Kind;

    let class = match error.kind {
        Kind::Core(ErrorKind::Invalid) if error.status.is_some() => "RefusedInput",
        Kind::Core(ErrorKind::Invalid) => "InvalidInput",
        Kind::Core(ErrorKind::Unavailable) => "StorageUnavailable",
        Kind::Core(ErrorKind::NotFound) => "NotFoundError",
        Kind::Core(ErrorKind::Conflict) => "ConflictError",
        Kind::Core(ErrorKind::Corrupt) => "StorageCorrupt",
        Kind::Core(ErrorKind::Unsupported) => "UnsupportedError",
        // Of the kinds that remain, only errors of custom stores carry an exception.
        Kind::Core(_) if exception_cause::is_exception(error.cause.as_ref()) => "StorageError",
        Kind::Core(_) => "VerbatimError",
        Kind::Timeout => "ServiceTimeout",
        Kind::Unreachable | Kind::CutOff => "ServiceUnreachable",
        Kind::Unreadable => "ServiceError",
        Kind::Unauthorized => "Unauthorized",
        Kind::PaymentRequired => "PaymentRequired",
        Kind::NotFound => "ServiceNotFound",
        Kind::NoServer => "NoServer",
        Kind::Conflict => "ServiceConflict",
        Kind::RateLimited => "TooManyRequests",
        _ => "ServiceRefused",
    };
    let retry_after = error.retry_after().map(|wait| AttributeValue::Seconds(wait.as_secs_f64()));
    let available = caption_languages(&error.languages);
    let available: Vec<_> = available.iter().map(LanguageTag::as_str).collect();
    let reason = error.reason.map(FailureReason::as_str).or(error.meta.failure_detail.as_deref());
    let attributes = [
        ("status", error.status.map(|status| AttributeValue::Number(status.into()))),
        ("reason", reason.map(AttributeValue::Text)),
        ("watch_url", error.watch_url.as_deref().map(AttributeValue::Text)),
        ("retry_after", retry_after),
        ("credits_remaining", error.meta.credits_remaining.map(AttributeValue::Number)),
        ("request_id", error.meta.request_id.as_deref().map(AttributeValue::Text)),
        ("available", Some(AttributeValue::Texts(available)).filter(|_| !error.languages.is_empty())),
        ("idempotency_key", error.idempotency_key.as_deref().map(AttributeValue::Text)),
    ];
    let message = match error.kind {
        // The message of a status is that of a server.
        Kind::Core(_) if error.status.is_none() => for_python(&error.message),
        Kind::Unreachable => with_missing_certificates(error.message.as_str().into()),
        _ => error.message.as_str().into(),
    };
    let created = exception(py, class, &message, attributes);
    exception_cause::with_cause(py, created, error.cause.as_ref())
}
