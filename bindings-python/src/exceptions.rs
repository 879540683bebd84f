//! Conversion of errors to Python exceptions.

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};
use transcript_core::{Error, ErrorKind, Retry, accounts::V1Error, lookup::FailureReason};
use verbatim::{UnavailableTranscript, service::ServiceError};

use crate::exception_cause;

/// An error of the bindings.
#[derive(Debug)]
pub(crate) enum BindingError {
    /// There is no transcript.
    Missing(Box<UnavailableTranscript>),
    /// A store error, or an invalid argument.
    Core(Error),
    /// An error response of another server, or a failed request to it.
    Service(ServiceError),
    /// An error of the service in the process.
    V1(Box<V1Error>),
    /// The call was interrupted.
    Interrupted,
    /// The object is closed.
    Closed,
}

impl From<Error> for BindingError {
    fn from(error: Error) -> Self {
        Self::Core(error)
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
            Self::Core(error) => core_exception(py, &error),
            Self::Service(error) => service_exception(py, &error),
            Self::V1(error) => v1_exception(py, &error),
            Self::Interrupted => PyRuntimeError::new_err("the call was interrupted"),
            Self::Closed => exception(py, "ClosedError", "the object is closed", []),
        }
    }
}

/// An attribute of an exception, passed as a keyword argument.
type ErrorAttribute<'a> = (&'a str, Option<AttributeValue<'a>>);

/// The value of an attribute.
pub(crate) enum AttributeValue<'a> {
    Text(&'a str),
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
    let create = || {
        let keywords = PyDict::new(py);
        for (name, value) in attributes {
            match value {
                Some(AttributeValue::Text(text)) => keywords.set_item(name, text)?,
                Some(AttributeValue::Seconds(seconds)) => keywords.set_item(name, seconds)?,
                Some(AttributeValue::Number(number)) => keywords.set_item(name, number)?,
                None => {}
            }
        }
        py.import("verbatim_transcripts._errors")?.getattr(class)?.call((message,), Some(&keywords))
    };
    create().map_or_else(|error| error, PyErr::from_value)
}

fn unavailable(py: Python<'_>, missing: &UnavailableTranscript) -> PyErr {
    let class = match missing.reason {
        FailureReason::NoCaptions => "NoCaptions",
        FailureReason::RateLimited => "RateLimited",
        FailureReason::ConfigError => "NotConfigured",
        FailureReason::FetchError => "FetchFailed",
        _ => "TranscriptUnavailable",
    };
    let error = exception(
        py,
        class,
        &missing.message,
        [
            ("reason", Some(AttributeValue::Text(missing.reason.as_str()))),
            ("watch_url", Some(AttributeValue::Text(&missing.watch_url))),
            ("platform", Some(AttributeValue::Text(missing.platform.as_str()))),
            ("video_id", Some(AttributeValue::Text(&missing.video_id))),
        ],
    );
    exception_cause::with_cause(py, error, &missing.message)
}

/// The exception of a core error. `Invalid` always concerns an argument.
pub(crate) fn core_exception(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Invalid => "InvalidInput",
        ErrorKind::Unavailable => "StorageUnavailable",
        ErrorKind::NotFound => "NotFoundError",
        ErrorKind::Conflict => "ConflictError",
        ErrorKind::Corrupt => "StorageCorrupt",
        ErrorKind::Unsupported => "UnsupportedError",
        _ => "VerbatimError",
    };
    let retry_after = match error.retry() {
        Retry::After(wait) => Some(AttributeValue::Seconds(wait.as_secs_f64())),
        _ => None,
    };
    let created = exception(py, class, error.message(), [("retry_after", retry_after)]);
    exception_cause::with_cause(py, created, error.message())
}

fn service_exception(py: Python<'_>, error: &ServiceError) -> PyErr {
    let message = error.to_string();
    let Some(refusal) = error.rejection() else {
        let class = match error {
            ServiceError::Invalid(_) => "InvalidInput",
            ServiceError::Timeout => "ServiceTimeout",
            ServiceError::Unreachable(_) | ServiceError::CutOff => "ServiceUnreachable",
            _ => "ServiceError",
        };
        return exception(py, class, &message, []);
    };
    let class = status_class(refusal.status);
    let meta = &refusal.meta;
    exception(
        py,
        class,
        &message,
        [
            ("status", Some(AttributeValue::Number(refusal.status.into()))),
            ("reason", refusal.failure_reason.map(|reason| AttributeValue::Text(reason.as_str()))),
            ("retry_after", meta.retry_after.map(|wait| AttributeValue::Seconds(wait.as_secs_f64()))),
            ("credits_remaining", meta.credits_remaining.map(AttributeValue::Number)),
            ("request_id", meta.request_id.as_deref().map(AttributeValue::Text)),
        ],
    )
}

/// The exception class of an error response with this status.
fn status_class(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        402 => "PaymentRequired",
        404 => "ServiceNotFound",
        409 => "ServiceConflict",
        429 => "TooManyRequests",
        _ => "ServiceRefused",
    }
}

fn v1_exception(py: Python<'_>, error: &V1Error) -> PyErr {
    let (retry_after, credits_remaining) = match error {
        V1Error::RateLimited { retry_after_s, .. } => (Some(*retry_after_s as f64), None),
        V1Error::PaymentRequired { credits_remaining, .. } => (None, Some(*credits_remaining)),
        _ => (None, None),
    };
    let status = Some(AttributeValue::Number(error.code().into()));
    let (retry_after, credits_remaining) =
        (retry_after.map(AttributeValue::Seconds), credits_remaining.map(AttributeValue::Number));
    let attributes =
        [("status", status), ("retry_after", retry_after), ("credits_remaining", credits_remaining)];
    let created = exception(py, status_class(error.code()), error.message(), attributes);
    exception_cause::with_cause(py, created, error.message())
}
