//! The core's conformance suite, for stores written in Python.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyAssertionError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use transcript_core::{
    archive::content_digest,
    testing::{ConformanceCase, archive_cases, directory_cases, ledger_cases},
};

use crate::{pending::PendingCall, ports};

fn unknown_port(port: &str) -> PyErr {
    PyValueError::new_err(format!("there is no suite for {port:?}; suites: 'archive', 'ledger', 'directory'"))
}

/// The names of the cases of a port.
#[pyfunction]
pub(crate) fn _cases(port: &str) -> PyResult<Vec<&'static str>> {
    Ok(match port {
        "archive" => archive_cases().iter().map(|case| case.name).collect(),
        "ledger" => ledger_cases().iter().map(|case| case.name).collect(),
        "directory" => directory_cases().iter().map(|case| case.name).collect(),
        _ => return Err(unknown_port(port)),
    })
}

/// Runs one case on a fresh store. The call raises `AssertionError` with the reason of a failure.
#[pyfunction]
pub(crate) fn _run_case(port: &str, name: &str, store: Bound<'_, PyAny>) -> PyResult<PendingCall> {
    match port {
        "archive" => start(archive_cases(), name, ports::archive(store)?),
        "ledger" => start(ledger_cases(), name, ports::ledger(store)?),
        "directory" => start(directory_cases(), name, ports::directory(store)?),
        _ => Err(unknown_port(port)),
    }
}

fn start<S: ?Sized + Send + Sync + 'static>(
    cases: Vec<ConformanceCase<S>>,
    name: &str,
    store: Arc<S>,
) -> PyResult<PendingCall> {
    let case = cases.into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| PyValueError::new_err(format!("unknown case {name:?}")))?;
    let work = async move { Ok(case.run(store).await) };
    Ok(PendingCall::new(work, |py, failure: Option<String>| match failure {
        None => Ok(py.None()),
        Some(why) => Err(PyAssertionError::new_err(why)),
    }))
}

/// The content digest of a transcript; the argument is JSON with the fields of the core's record.
#[pyfunction]
pub(crate) fn _content_digest<'py>(py: Python<'py>, transcript: &str) -> PyResult<Bound<'py, PyBytes>> {
    let transcript = serde_json::from_str(transcript);
    let transcript =
        transcript.map_err(|error| PyValueError::new_err(format!("not a transcript: {error}")))?;
    Ok(PyBytes::new(py, &content_digest(&transcript)))
}
