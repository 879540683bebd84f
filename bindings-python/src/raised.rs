//! What Python code raised while it answered for a port, so that the exception which tells of it has it as its cause.
//!
//! The core's errors are sentences. The exception behind a sentence is kept for a short while, under that sentence.

use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

use pyo3::{exceptions::PyException, prelude::*};

/// How many are kept: those of calls that are under way, and some nobody asked for.
const KEPT_MAX: usize = 256;

static RAISED: Mutex<VecDeque<(u32, String, PyErr)>> = Mutex::new(VecDeque::new());

/// Keeps what was raised under the sentence that it becomes.
pub(crate) fn keep(sentence: &str, error: PyErr) {
    let mut raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
    if raised.len() >= KEPT_MAX {
        raised.pop_front();
    }
    raised.push_back((std::process::id(), sentence.to_owned(), error));
}

/// The exception, with what was raised under its sentence as its cause. What is no error but an end, as
/// `KeyboardInterrupt` is, comes back in its place.
pub(crate) fn with_cause(py: Python<'_>, told: PyErr, sentence: &str) -> PyErr {
    let pid = std::process::id();
    let found = {
        let raised = RAISED.lock().unwrap_or_else(PoisonError::into_inner);
        raised
            .iter()
            .rfind(|(of, known, _)| *of == pid && known == sentence)
            .map(|(_, _, error)| error.clone_ref(py))
    };
    match found {
        Some(cause) if !cause.is_instance_of::<PyException>(py) => cause,
        cause => {
            if cause.is_some() {
                told.set_cause(py, cause);
            }
            told
        }
    }
}
