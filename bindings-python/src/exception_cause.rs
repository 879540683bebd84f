//! Exceptions raised by custom components, kept to become the cause of the resulting exception.
//!
//! The core's errors carry messages only. The exception behind a message is kept for a short time, by that message.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyException, prelude::*};

/// Bound of kept exceptions: those of running calls, and some that no exception has used.
const EXCEPTIONS_MAX: usize = 256;

static EXCEPTIONS: Mutex<VecDeque<(u32, String, PyErr)>> = Mutex::new(VecDeque::new());

/// Stores an exception under the message of the error that it is mapped to.
pub(crate) fn record(message: &str, error: PyErr) {
    let mut exceptions = EXCEPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
    if exceptions.len() >= EXCEPTIONS_MAX {
        exceptions.pop_front();
    }
    exceptions.push_back((std::process::id(), message.to_owned(), error));
}

/// Sets the exception recorded for this message as the cause. An exception that is not an `Exception`, such as
/// `KeyboardInterrupt`, replaces the given one.
pub(crate) fn with_cause(py: Python<'_>, exception: PyErr, message: &str) -> PyErr {
    let pid = std::process::id();
    let cause = {
        let exceptions = EXCEPTIONS.lock().unwrap_or_else(PoisonError::into_inner);
        exceptions
            .iter()
            .rfind(|(owner, key, _)| *owner == pid && key == message)
            .map(|(_, _, error)| error.clone_ref(py))
    };
    match cause {
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause,
        cause => {
            if cause.is_some() {
                exception.set_cause(py, cause);
            }
            exception
        }
    }
}
