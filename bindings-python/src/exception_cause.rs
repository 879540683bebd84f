//! Exceptions raised by custom components, as causes of the resulting exceptions.

use pyo3::{exceptions::PyException, prelude::*};
use transcript_core::ErrorCause;

/// The cause that an error of the core carries for this exception.
pub(crate) fn to_cause(py: Python<'_>, error: &PyErr) -> ErrorCause {
    ErrorCause::new(error.clone_ref(py))
}

/// Whether an error of the core carries an exception.
pub(crate) fn is_exception(cause: Option<&ErrorCause>) -> bool {
    cause.is_some_and(|cause| cause.error().is::<PyErr>())
}

/// Sets the exception that a cause carries as the cause of another one.
///
/// An exception that is not an `Exception`, such as `KeyboardInterrupt`, replaces the given one.
pub(crate) fn with_cause(py: Python<'_>, exception: PyErr, cause: Option<&ErrorCause>) -> PyErr {
    let Some(cause) = cause.and_then(|cause| cause.error().downcast_ref::<PyErr>()) else {
        return exception;
    };
    let cause = cause.clone_ref(py);
    if !cause.is_instance_of::<PyException>(py) {
        return cause;
    }
    exception.set_cause(py, Some(cause));
    exception
}
