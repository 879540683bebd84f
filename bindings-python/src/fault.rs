//! From what went wrong to the exception that says so.

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};
use transcript_core::{Error, ErrorKind, Retry, accounts::Refused, lookup::FailureReason};
use verbatim::{Missing, service::ServiceError};

use crate::raised;

/// What went wrong.
#[derive(Debug)]
pub(crate) enum Fault {
    /// There is no transcript.
    Missing(Box<Missing>),
    /// A fault of a store, or a wrong argument.
    Core(Error),
    /// Another server said no, or could not be asked.
    Service(ServiceError),
    /// The service within the process said no.
    Refused(Box<Refused>),
    /// The work was interrupted.
    Stopped,
    /// It was closed before.
    Closed,
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Core(error)
    }
}

impl From<ServiceError> for Fault {
    fn from(error: ServiceError) -> Self {
        Self::Service(error)
    }
}

impl Fault {
    pub(crate) fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Missing(missing) => unavailable(py, &missing),
            Self::Core(error) => of_core(py, &error),
            Self::Service(error) => of_service(py, &error),
            Self::Refused(refused) => of_refused(py, &refused),
            Self::Stopped => PyRuntimeError::new_err("the work broke down"),
            Self::Closed => exception(py, "Closed", "it was closed", []),
        }
    }
}

/// An attribute of an exception, by its keyword.
type Attribute<'a> = (&'a str, Option<Value<'a>>);

/// What an attribute may be.
pub(crate) enum Value<'a> {
    Text(&'a str),
    Seconds(f64),
    Number(u64),
}

/// An exception of the package's own, made as Python would make it.
pub(crate) fn exception<'a>(
    py: Python<'_>,
    class: &str,
    message: &str,
    attributes: impl IntoIterator<Item = Attribute<'a>>,
) -> PyErr {
    let make = || {
        let named = PyDict::new(py);
        for (name, value) in attributes {
            match value {
                Some(Value::Text(text)) => named.set_item(name, text)?,
                Some(Value::Seconds(seconds)) => named.set_item(name, seconds)?,
                Some(Value::Number(number)) => named.set_item(name, number)?,
                None => {}
            }
        }
        py.import("verbatim._errors")?.getattr(class)?.call((message,), Some(&named))
    };
    make().map_or_else(|error| error, PyErr::from_value)
}

fn unavailable(py: Python<'_>, missing: &Missing) -> PyErr {
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
            ("reason", Some(Value::Text(missing.reason.as_str()))),
            ("watch_url", Some(Value::Text(&missing.watch_url))),
            ("platform", Some(Value::Text(missing.platform.as_str()))),
            ("video_id", Some(Value::Text(&missing.video_id))),
        ],
    );
    raised::with_cause(py, error, &missing.message)
}

/// The exception that a fault of the core is. `Invalid` is always about an argument.
pub(crate) fn of_core(py: Python<'_>, error: &Error) -> PyErr {
    let class = match error.kind() {
        ErrorKind::Invalid => "InvalidInput",
        ErrorKind::Unavailable => "StorageUnavailable",
        ErrorKind::NotFound => "NotFound",
        ErrorKind::Conflict => "Conflict",
        ErrorKind::Corrupt => "StorageCorrupt",
        ErrorKind::Unsupported => "Unsupported",
        _ => "VerbatimError",
    };
    let after = match error.retry() {
        Retry::After(wait) => Some(Value::Seconds(wait.as_secs_f64())),
        _ => None,
    };
    let made = exception(py, class, error.message(), [("retry_after", after)]);
    raised::with_cause(py, made, error.message())
}

fn of_service(py: Python<'_>, error: &ServiceError) -> PyErr {
    let message = error.to_string();
    let Some(refusal) = error.refusal() else {
        let class = match error {
            ServiceError::Invalid(_) => "InvalidInput",
            ServiceError::Timeout => "ServiceTimeout",
            ServiceError::Unreachable(_) | ServiceError::CutOff => "ServiceUnreachable",
            _ => "ServiceError",
        };
        return exception(py, class, &message, []);
    };
    let class = class_of(refusal.status);
    let facts = &refusal.facts;
    exception(
        py,
        class,
        &message,
        [
            ("status", Some(Value::Number(refusal.status.into()))),
            ("reason", refusal.failure_reason.map(|reason| Value::Text(reason.as_str()))),
            ("retry_after", facts.retry_after.map(|wait| Value::Seconds(wait.as_secs_f64()))),
            ("credits_remaining", facts.credits_remaining.map(Value::Number)),
            ("request_id", facts.request_id.as_deref().map(Value::Text)),
        ],
    )
}

/// The exception for a refusal with this status.
fn class_of(status: u16) -> &'static str {
    match status {
        401 => "Unauthorized",
        402 => "PaymentRequired",
        404 => "NotOffered",
        409 => "ServiceConflict",
        429 => "TooManyRequests",
        _ => "ServiceRefused",
    }
}

fn of_refused(py: Python<'_>, refused: &Refused) -> PyErr {
    let (after, left) = match refused {
        Refused::RateLimited { retry_after_s, .. } => (Some(*retry_after_s as f64), None),
        Refused::PaymentRequired { credits_remaining, .. } => (None, Some(*credits_remaining)),
        _ => (None, None),
    };
    let status = Some(Value::Number(refused.code().into()));
    let (after, left) = (after.map(Value::Seconds), left.map(Value::Number));
    let attributes = [("status", status), ("retry_after", after), ("credits_remaining", left)];
    let error = exception(py, class_of(refused.code()), refused.message(), attributes);
    raised::with_cause(py, error, refused.message())
}
