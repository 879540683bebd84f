//! The core's conformance suite, for stores written in Python.

use std::{
    panic::{self, Location},
    path::Path,
    sync::{Arc, Once},
};

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
        "archive" => start(archive_cases(), name, ports::archive(store, &mut Vec::new())?),
        "ledger" => start(ledger_cases(), name, ports::ledger(store, &mut Vec::new())?),
        "directory" => start(directory_cases(), name, ports::directory(store, &mut Vec::new())?),
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
    silence_cases();
    let work = async move { Ok(case.run(store).await) };
    Ok(PendingCall::new(work, |py, failure: Option<String>| match failure {
        None => Ok(py.None()),
        Some(why) => Err(PyAssertionError::new_err(broken_rule(&why))),
    }))
}

/// The rule that a failed case names, otherwise the expected value. The calls of the store show what it returned.
fn broken_rule(why: &str) -> String {
    let (text, values) = why.split_once("\n  left: ").unwrap_or((why, ""));
    let Some(rule) = text.strip_prefix("assertion `left == right` failed") else { return text.to_owned() };
    match (rule.strip_prefix(": "), values.split_once("\n right: ")) {
        (None, Some((_, expected))) => format!("the store must return {expected}"),
        (rule, _) => rule.unwrap_or(text).to_owned(),
    }
}

/// Prints no panics of cases, because they are how a case reports a broken rule. A task of a case can panic after it.
fn silence_cases() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let is_case = |place: &Location<'_>| Path::new(place.file()).iter().any(|name| name == "testing");
            if !info.location().is_some_and(is_case) {
                print(info);
            }
        }));
    });
}

/// The content digest of a transcript; the argument is JSON with the fields of the core's record.
#[pyfunction]
pub(crate) fn _content_digest<'py>(py: Python<'py>, transcript: &str) -> PyResult<Bound<'py, PyBytes>> {
    let transcript = serde_json::from_str(transcript);
    let transcript =
        transcript.map_err(|error| PyValueError::new_err(format!("not a transcript: {error}")))?;
    Ok(PyBytes::new(py, &content_digest(&transcript)))
}
