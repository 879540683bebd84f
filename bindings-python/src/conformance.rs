//! The core's conformance suite, for stores written in Python.

use std::sync::Arc;

use pyo3::{
    exceptions::{PyAssertionError, PyValueError},
    prelude::*,
    types::PyBytes,
};
use transcript_core::{
    archive::{Archive, content_digest},
    directory::Directory,
    ledger::Ledger,
    testing::{Case, archive_cases, directory_cases, ledger_cases},
};

use crate::{pending::Pending, ports::PyStore};

fn unknown(port: &str) -> PyErr {
    PyValueError::new_err(format!("there is no suite for {port:?}: it is 'archive', 'ledger' or 'directory'"))
}

/// The names of a port's cases.
#[pyfunction]
pub(crate) fn _cases(port: &str) -> PyResult<Vec<&'static str>> {
    Ok(match port {
        "archive" => archive_cases().iter().map(|case| case.name).collect(),
        "ledger" => ledger_cases().iter().map(|case| case.name).collect(),
        "directory" => directory_cases().iter().map(|case| case.name).collect(),
        _ => return Err(unknown(port)),
    })
}

/// Runs one case on a fresh store: the reason why it fails, or None.
#[pyfunction]
pub(crate) fn _run_case(port: &str, name: &str, store: Bound<'_, PyAny>) -> PyResult<Pending> {
    match port {
        "archive" => {
            begin(archive_cases(), name, Arc::new(PyStore::new(store, "archive")) as Arc<dyn Archive>)
        }
        "ledger" => begin(ledger_cases(), name, Arc::new(PyStore::new(store, "ledger")) as Arc<dyn Ledger>),
        "directory" => {
            begin(directory_cases(), name, Arc::new(PyStore::new(store, "directory")) as Arc<dyn Directory>)
        }
        _ => Err(unknown(port)),
    }
}

fn begin<S: ?Sized + Send + Sync + 'static>(
    cases: Vec<Case<S>>,
    name: &str,
    store: Arc<S>,
) -> PyResult<Pending> {
    let case = cases.into_iter().find(|case| case.name == name);
    let case = case.ok_or_else(|| PyValueError::new_err(format!("there is no case {name:?}")))?;
    let work = async move { Ok(case.broken_rule(store).await) };
    Ok(Pending::new(work, |py, failure: Option<String>| match failure {
        None => Ok(py.None()),
        Some(why) => Err(PyAssertionError::new_err(why)),
    }))
}

/// The digest of a transcript's content; the transcript is JSON, with the fields of the core's record.
#[pyfunction]
pub(crate) fn _content_digest<'py>(py: Python<'py>, transcript: &str) -> PyResult<Bound<'py, PyBytes>> {
    let read = serde_json::from_str(transcript);
    let transcript =
        read.map_err(|error| PyValueError::new_err(format!("this is no transcript: {error}")))?;
    Ok(PyBytes::new(py, &content_digest(&transcript)))
}
